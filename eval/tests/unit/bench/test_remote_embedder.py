"""Vectors from a server, for baselines that run inside the harness."""

import json
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from memconform.bench.remote import RemoteEmbedder
from memconform.errors import DaemonError


class _Server(HTTPServer):
    vectors: dict[str, list[float]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        vectors = [self.server.vectors.get(text, [3.0, 4.0]) for text in texts]
        data = [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: standard error is the test's."""


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as listening:
        listening.vectors = {}
        thread = Thread(target=listening.serve_forever)
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


def _embed(server: _Server, texts: Sequence[str]) -> list[list[float]]:
    embedder = RemoteEmbedder(f"http://127.0.0.1:{server.server_port}/v1", "m", None)
    return [list(vector) for vector in embedder.embed(texts)]


def test_vectors_have_length_1(server: _Server) -> None:
    assert _embed(server, ["a", "b"]) == [[0.6, 0.8]] * 2


def test_a_zero_vector_of_a_text_is_a_failure(server: _Server) -> None:
    """Zero vectors ranked the items in the order of the file, as a measured row."""
    server.vectors = {"a cat": [0.0, 0.0], "": [0.0, 0.0]}
    assert _embed(server, ["", "b"]) == [[0.0, 0.0], [0.6, 0.8]]
    with pytest.raises(DaemonError, match="the vector of 'a cat' is zero") as caught:
        _embed(server, ["b", "a cat"])
    assert caught.value.code == "embedder_failed"
