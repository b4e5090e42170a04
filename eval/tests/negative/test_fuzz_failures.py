"""`fuzz` tells a reset connection from a process that ended, and both from silence."""

import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memconform.conformance.rules import rules
from memconform.contract.wire import Profile
from memconform.fuzzing import failures, program_runner
from memconform.fuzzing.counterexample_search import FuzzResult
from memconform.fuzzing.failures import BrainLostError, FuzzTarget
from memconform.fuzzing.normalized_answer import ProgramAnswer
from memconform.fuzzing.program_runner import ProgramRunner
from memconform.fuzzing.programs import BRAIN, Call, Program
from memconform.fuzzing.session import find_disagreement
from tests.conftest import Ended

_READ = Program((Call("brain", "GET", f"/v1/brains/{BRAIN}"),))


class _Server(ThreadingHTTPServer):
    """Answers every request alike, except those that `fails` selects, which `fail` ends."""

    def __init__(
        self,
        fail: Callable[["_Handler"], None],
        fails: Callable[[str, int], bool] = lambda line, _: line.startswith("GET"),
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fail, self.fails = fail, fails
        self.lines: list[str] = []
        self.brains: set[str] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        del format, args

    def _any(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        line = f"{self.command} {self.path}"
        brain = json.loads(sent)["brainId"] if line == "POST /v1/brains" else ""
        # A program may create its own brain again, which is a request like any other.
        again = brain in self.server.brains
        self.server.lines.append("again" if again else self.command)
        if not again and self.server.fails(line, self.server.lines.count(self.command)):
            self.close_connection = True
            self.server.fail(self)
            return
        self.server.brains |= {brain} - {""}
        status = {"POST /v1/brains": 201}.get(line, 204 if self.command == "DELETE" else 200)
        body = b"" if status == 204 else b"{}"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = _any  # noqa: N815


def _reset(handler: _Handler) -> None:
    """End the connection with a TCP reset."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def _close(handler: _Handler) -> None:
    """End the connection properly, without a response."""
    handler.connection.shutdown(socket.SHUT_RDWR)


def _cut(handler: _Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")


def _babble(handler: _Handler) -> None:
    handler.wfile.write(b"good morning\r\n\r\n")


def _hang(handler: _Handler) -> None:
    """Be silent until the client gives up."""
    handler.rfile.read(1)


@contextmanager
def _serving(server: _Server) -> Iterator[_Server]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _run(target: FuzzTarget, program: Program = _READ) -> list[ProgramAnswer]:
    runner = ProgramRunner(target)
    try:
        return runner.run(program)
    finally:
        runner.close()


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the end of a process that cannot end."""
    # short limit: nothing is waited for.
    monkeypatch.setattr(failures, "_DEATH_SECONDS", 0.02)


def _alive() -> str:
    return ""


@pytest.mark.parametrize(
    ("fail", "status", "failure"),
    [
        (_reset, None, "connection reset"),
        (_close, None, "connection reset"),
        (_cut, 200, "broken"),
        (_babble, None, "broken"),
        (_hang, None, "timeout"),
    ],
)
def test_each_failure_of_a_living_daemon_has_its_kind(
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[[_Handler], None],
    status: int | None,
    failure: str,
) -> None:
    """A reset connection was reported as the death of the daemon."""
    if fail is _hang:
        # short limit: the silence is endless.
        monkeypatch.setattr(program_runner, "_SECONDS", 1.0)
    with _serving(_Server(fail)) as server:
        [answer] = _run(FuzzTarget(server.address, _alive))
    assert (answer.status, answer.failure) == (status, failure)


_CHILD = """
import os, sys
from http.server import HTTPServer
sys.path.insert(0, sys.argv[1])
from tests.negative.test_fuzz_failures import _Handler, _Server

def fail(handler):
    os._exit(3) if sys.argv[2] == "exits" else os.kill(os.getpid(), 9)

prefix = sys.argv[3]
server = _Server(fail, lambda line, _: line.startswith(prefix))
print(server.address, flush=True)
server.serve_forever()
"""


@contextmanager
def _child(how: str, prefix: str) -> Iterator[FuzzTarget]:
    """A daemon of its own process, which ends at requests that begin with `prefix`."""
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD, root, how, prefix], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()

        def exit_status() -> str:
            return "" if process.poll() is None else f"exit status {process.returncode}"

        try:
            yield FuzzTarget(address, exit_status)
        finally:
            process.kill()


@pytest.mark.parametrize(("how", "status"), [("exits", 3), ("is killed", -9)])
def test_a_process_that_ended_is_named_with_its_status(how: str, status: int) -> None:
    with _child(how, "GET") as target:
        [answer] = _run(target)
    assert (answer.status, answer.failure) == (None, f"process ended: exit status {status}")


def test_a_process_that_ends_while_a_brain_is_created_ends_the_search() -> None:
    with _child("exits", "POST") as target, pytest.raises(BrainLostError) as lost:
        _run(target)
    assert (lost.value.kind, lost.value.detail) == ("process ended", "exit status 3")
    assert str(lost.value.of("mine")) == "mine: POST /v1/brains: process ended (exit status 3)"


def test_a_server_that_is_gone_is_no_reset() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(BrainLostError) as lost:
        _run(FuzzTarget(f"http://127.0.0.1:{port}", _alive))
    assert lost.value.kind == "connection refused"


def _find(bad: _Server, good: _Server) -> FuzzResult:
    return find_disagreement(
        {name: FuzzTarget(s.address, _alive) for name, s in (("good", good), ("bad", bad))},
        {Profile.CORE},
        examples=30,
        seed_value=1,
        tried=lambda: None,
        stop=threading.Event(),
    )


def _never(_line: str, _number: int) -> bool:
    return False


@pytest.mark.usefixtures("_hasty")
def test_a_reset_is_a_disagreement_of_its_own_kind() -> None:
    def fails(line: str, _: int) -> bool:
        return line != "POST /v1/brains" and not line.startswith("DELETE")

    with _serving(_Server(_reset, fails)) as bad, _serving(_Server(_reset, _never)) as good:
        result = _find(bad, good)
    found = result.disagreement
    assert found is not None
    assert found.difference.pointer == "/failure"
    assert found.difference.values == {"good": "", "bad": "connection reset"}
    assert found.steady
    assert len(found.program.calls) == 1
    assert result.resets == {}


def _every_third_creation(line: str, number: int) -> bool:
    return line == "POST /v1/brains" and number % 3 == 0


@pytest.mark.usefixtures("_hasty")
def test_a_reset_of_the_harness_s_own_request_is_found_and_the_search_goes_on() -> None:
    """It ended the search, and the message said that the daemon had stopped working."""
    with (
        _serving(_Server(_reset, _every_third_creation)) as bad,
        _serving(_Server(_reset, _never)) as good,
    ):
        result = _find(bad, good)
    assert result.disagreement is None
    assert result.examples >= 20
    assert list(result.resets) == ["bad"]
    assert result.resets["bad"]["POST /v1/brains"] > 1


def test_a_request_that_is_always_reset_ends_the_search_as_such() -> None:
    with (
        _serving(_Server(_close, lambda line, _: line == "POST /v1/brains")) as bad,
        _serving(_Server(_reset, _never)) as good,
        pytest.raises(BrainLostError) as lost,
    ):
        _find(bad, good)
    assert lost.value.kind == "connection reset"
    assert str(lost.value) == "bad: POST /v1/brains: connection reset (the process lives)"


Memconform = Callable[..., Ended]


def _healthy(fails: Callable[[str, int], bool]) -> _Server:
    return _Server(_reset, fails)


def test_the_report_names_the_reset(memconform: Memconform) -> None:
    with (
        _serving(_healthy(_every_third_creation)) as bad,
        _serving(_healthy(_never)) as good,
    ):
        flags = ("--examples", "20", "--seed", "1", "--json", "-")
        ended = memconform("fuzz", f"--sdk=url:{good.address}", f"--sdk=url:{bad.address}", *flags)
    assert ended.code == 1, ended.err
    report = json.loads(ended.out)
    [(sdk, requests)] = report["connection_resets"].items()
    assert sdk.endswith(str(bad.server_address[1]))
    assert requests["POST /v1/brains"] > 0
    assert f"RESET      {sdk}" in ended.err
    assert f"connection reset by {sdk}" in ended.err


def test_a_daemon_that_resets_every_creation_is_not_called_lost(memconform: Memconform) -> None:
    with (
        _serving(_healthy(lambda line, _: line == "POST /v1/brains")) as bad,
        _serving(_healthy(_never)) as good,
    ):
        ended = memconform("fuzz", f"--sdk=url:{good.address}", f"--sdk=url:{bad.address}")
    assert ended.code == 3
    assert "connection_reset" in ended.err
    assert "daemon_lost" not in ended.err
    assert "daemon_died" not in ended.err


def test_findings_of_one_daemon_name_rules_and_become_cases(
    memconform: Memconform, tmp_path: Path
) -> None:
    """A server that answers everything alike violates many rules, the most basic one first."""
    cases, corpus = tmp_path / "cases", tmp_path / "corpus"
    with _serving(_healthy(_never)) as server:
        ended = memconform(
            "fuzz", f"--sdk=url:{server.address}", "--against=oracle", "--examples=12", "--seed=1",
            "--keep-going", f"--output={cases}", f"--corpus={corpus}", "--json=-",
        )  # fmt: skip
    assert ended.code == 1, ended.err
    report = json.loads(ended.out)
    found = report["disagreements"]
    assert len(found) > 2
    assert report["disagreement"] == found[0]
    assert len({(item["rule"], item["pointer"]) for item in found}) > 1
    ranks = [list(rules()).index(item["rule"]) for item in found]
    assert ranks == sorted(ranks)
    for item in found:
        assert item["compared"][0] == "oracle"
        assert Path(item["file"]).parent == cases
        assert f"rule      {item['rule']}: " in ended.err
        assert item["curl"][0] in ended.err.replace("\n", "")
    assert f"DISAGREE with the oracle in {len(found)} ways" in ended.err
    assert len(list(corpus.glob("*.json"))) == report["corpus_added"] > 0
