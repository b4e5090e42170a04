"""The daemon as a process: stops, open streams, and secrets in its output."""

import asyncio
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from memoryd.daemon.protocol import deadline_protocol

_SOURCES = Path(__file__).parents[1] / "src"

_HANG_SECONDS = 90
"""Timeout of the upstream and of the test client."""
_STOP_SECONDS = 60
"""Limit for a stop, which takes longer on a machine that is busy with other tests."""
_GRACE_EXCEEDED = "timeout graceful shutdown exceeded"
"""What uvicorn logs if it had to cancel a request after the grace period of two seconds."""


class _Daemon:
    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self.http = httpx.Client(base_url=f"http://{address}", timeout=_STOP_SECONDS)

    def stop(self) -> int:
        """Stop the daemon, which must not wait for the upstream; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_SECONDS)

    @contextmanager
    def listening(self, target: str, body: bytes | None = None) -> Iterator[socket.socket]:
        """A stream whose first bytes have arrived."""
        host, port = self.address.split(":")
        with socket.create_connection((host, int(port)), timeout=_STOP_SECONDS) as connection:
            method = "GET" if body is None else "POST"
            head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n"
            length = f"Content-Length: {len(body or b'')}\r\n\r\n"
            connection.sendall((head + length).encode() + (body or b""))
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            yield connection


@contextmanager
def _daemon(home: Path, **env: str) -> Iterator[_Daemon]:
    """A daemon with a brain `b`."""
    command = [sys.executable, "-m", "memoryd", "serve", "--addr", "127.0.0.1:0"]
    with (
        (home / "log").open("w") as log,
        subprocess.Popen(
            [*command, "--root", str(home / "state")],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_SOURCES), **env},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip().removeprefix("listening on http://")
            daemon = _Daemon(process, address)
            with closing(daemon.http):
                daemon.http.headers["Authorization"] = f"Bearer {env.get('JB_AUTH_TOKEN', 'x')}"
                daemon.http.post("/v1/brains", json={"brainId": "b"}).raise_for_status()
                yield daemon
        finally:
            process.kill()


class _Hanging(http.server.BaseHTTPRequestHandler):
    """A language model that hangs after one word, and an embedder that never answers."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/chat/completions"):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            delta = {"choices": [{"index": 0, "delta": {"content": "Well"}}]}
            self.wfile.write(f"data: {json.dumps(delta)}\n\n".encode())
        self.connection.settimeout(_HANG_SECONDS)
        self.rfile.read(1)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hanging) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def _rest(connection: socket.socket) -> bytes:
    read = b""
    while piece := connection.recv(65536):
        read += piece
    return read


def test_a_stop_ends_idle_connections_and_exits_with_0(tmp_path: Path) -> None:
    with _daemon(tmp_path) as daemon:
        assert daemon.stop() == 0
    assert (tmp_path / "log").read_text() == ""


def test_a_stop_ends_event_streams_promptly(tmp_path: Path) -> None:
    with (
        _daemon(tmp_path) as daemon,
        daemon.listening("/v1/brains/b/events") as one,
        daemon.listening("/v1/brains/b/events") as two,
    ):
        daemon.http.put("/v1/brains/b/documents?path=a", content=b"zebra").raise_for_status()
        assert daemon.stop() == 0
        for connection in (one, two):
            rest = _rest(connection)
            assert b'"kind": "created"' in rest
            assert rest.endswith(b"0\r\n\r\n")
    assert _GRACE_EXCEEDED not in (tmp_path / "log").read_text()


def test_a_stop_ends_an_answer_with_an_error(tmp_path: Path, upstream: str) -> None:
    env = {
        "JB_LLM_PROVIDER": "openai",
        "JB_LLM_MODEL": "m",
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": upstream,
        "JB_UPSTREAM_TIMEOUT": str(_HANG_SECONDS),
    }
    ask = b'{"question": "Who?"}'
    with _daemon(tmp_path, **env) as daemon, daemon.listening("/v1/brains/b/ask", ask) as answer:
        while b"Well" not in answer.recv(65536):
            pass
        assert daemon.stop() == 0
        rest = _rest(answer)
    assert b"event: error" in rest
    assert b'event: done\ndata: {"ok":false}' in rest
    assert _GRACE_EXCEEDED not in (tmp_path / "log").read_text()


def test_a_stop_does_not_wait_for_reader_or_embedder(tmp_path: Path, upstream: str) -> None:
    env = {
        "JB_EMBED_PROVIDER": "openai",
        "JB_EMBED_MODEL": "m",
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": upstream,
        "JB_UPSTREAM_TIMEOUT": str(_HANG_SECONDS),
    }

    def write() -> None:
        with pytest.raises(httpx.HTTPError):
            httpx.put(
                f"http://{daemon.address}/v1/brains/b/documents?path=a",
                content=b"x",
                timeout=_HANG_SECONDS,
            ).raise_for_status()

    with _daemon(tmp_path, **env) as daemon, daemon.listening("/v1/brains/b/events"):
        writing = threading.Thread(target=write)
        writing.start()
        ops = [{"type": "write", "path": "_" + "x" * 200, "content_base64": ""}] * 1024
        for _ in range(40):
            body = {"ops": ops, "reason": "x" * 500}
            daemon.http.post("/v1/brains/b/documents/batch-ops", json=body).raise_for_status()
        assert daemon.stop() == 0
        writing.join(_HANG_SECONDS)
        assert not writing.is_alive()
    assert not (tmp_path / "state" / "brains" / "b" / "a").exists()


def test_white_space_around_the_confirmation_is_not_part_of_it(tmp_path: Path) -> None:
    with _daemon(tmp_path) as daemon:
        host, port = daemon.address.split(":")
        with socket.create_connection((host, int(port)), 30) as connection:
            connection.sendall(
                b"DELETE /v1/brains/b HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                b"X-Confirm-Delete: \tyes \r\n\r\n"
            )
            assert connection.makefile("rb").readline().split()[1] == b"204"


def test_an_empty_root_is_not_the_working_folder(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "memoryd", "serve", "--addr", "127.0.0.1:0", "--root", ""],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_SOURCES), "JB_HOME": "home"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 2
    assert "--root: must not be empty" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_incomplete_body_stores_nothing(tmp_path: Path) -> None:
    with _daemon(tmp_path) as daemon:
        host, port = daemon.address.split(":")
        for method, target in (("PUT", "?path=a"), ("POST", "/append?path=a")):
            with socket.create_connection((host, int(port))) as connection:
                head = f"{method} /v1/brains/b/documents{target} HTTP/1.1\r\nHost: localhost\r\n"
                connection.sendall(f"{head}Content-Length: 9\r\n\r\nzeb".encode())
        # short limit: a stall would hide something that was stored, and fail nothing
        time.sleep(0.2)
        assert daemon.http.get("/v1/brains/b/documents").json() == {"items": []}


def test_the_daemon_never_prints_the_token(tmp_path: Path) -> None:
    token = "canary-7"  # noqa: S105 - of this test alone
    with _daemon(tmp_path, JB_AUTH_TOKEN=token) as daemon:
        assert daemon.http.get("/version").is_success
        # Refused before its body is read, and the connection is usable afterwards.
        refused = daemon.http.put(
            "/v1/brains/b/documents?path=a", content=b"zebra", headers={"Authorization": "Bearer x"}
        )
        assert refused.status_code == 403
        assert daemon.http.get("/v1/brains/b/documents").json() == {"items": []}
        daemon.stop()
        assert daemon.process.stdout is not None
        assert token not in daemon.process.stdout.read()
    assert token not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "request_",
    [
        "",
        "POST /v1/br",
        "POST /v1/brains HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nzeb",
    ],
)
def test_a_request_that_never_ends_is_ended(tmp_path: Path, request_: str) -> None:
    # short limit: the request is endless, and no other is sent
    with _daemon(tmp_path, JB_REQUEST_TIMEOUT="0.5") as daemon:
        host, port = daemon.address.split(":")
        with socket.create_connection((host, int(port)), timeout=_STOP_SECONDS) as connection:
            connection.sendall(request_.encode())
            with suppress(ConnectionResetError):
                assert connection.recv(65536) == b""
        assert daemon.process.poll() is None


def test_the_request_timeout_does_not_end_streams(tmp_path: Path) -> None:
    with (
        # short limit: what is tested is that nothing comes for longer
        _daemon(tmp_path, JB_REQUEST_TIMEOUT="0.5") as daemon,
        daemon.listening("/v1/brains/b/events") as stream,
    ):
        # short limit: what is tested is that nothing comes for that long
        stream.settimeout(2)
        with pytest.raises(TimeoutError):
            _rest(stream)


async def test_a_client_that_does_not_read_is_disconnected() -> None:
    gone = asyncio.Event()

    async def endless(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

        async def stream() -> None:
            while not gone.is_set():
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})

        sending = asyncio.create_task(stream())
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()
        await sending

    http_ = deadline_protocol(_STOP_SECONDS, stalled_s=0.1)
    server = uvicorn.Server(uvicorn.Config(endless, http=http_, ws="none", lifespan="off"))
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        _, writer = await asyncio.open_connection(*listener.getsockname(), limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(gone.wait(), _STOP_SECONDS)
        writer.transport.abort()
        server.should_exit = True
        await serving
