"""A server of one file, on this machine alone, that can be scripted to serve it badly."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = bytes(range(256)) * 1200


@dataclass
class Reply:
    """One answer that is not as it should be."""

    status: int = 200
    body: bytes = CONTENT
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    """Bytes of the body after which the connection ends."""
    stated: bool = True
    """Whether the body's length is said."""
    hold: bool = False
    """Whether the connection stays open, silent, until the server ends."""


class FileServer(ThreadingHTTPServer):
    """Serves `content` below any path, ranges too; `script` comes first, one reply a request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = CONTENT
        self.etag: str | None = '"one"'
        self.script: list[Reply] = []
        self.requests: list[dict[str, str]] = []
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    @property
    def ranges(self) -> list[str | None]:
        return [headers.get("range") for headers in self.requests]


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Say nothing: the tests look at `requests`."""

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(headers | {"path": self.path})
        reply = self.server.script.pop(0) if self.server.script else self._honest(headers)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.stated:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body[: reply.cut])
        self.wfile.flush()
        if reply.hold:
            self.server.released.wait(60)

    def _honest(self, headers: dict[str, str]) -> Reply:
        content, etag = self.server.content, self.server.etag
        response_headers = {"ETag": etag} if etag is not None else {}
        wanted = headers.get("range")
        if wanted is None or headers.get("if-range", etag) != etag:
            return Reply(body=content, headers=response_headers)
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            return Reply(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        response_headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return Reply(206, content[start:], response_headers)


@contextmanager
def file_server() -> Iterator[FileServer]:
    with FileServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
