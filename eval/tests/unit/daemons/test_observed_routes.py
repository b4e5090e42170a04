"""`init --url` states what a daemon answered, changes nothing in it, and guesses nothing."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memconform.daemons.dialects import read_dialect
from memconform.daemons.observed_routes import draft_dialect, observe
from memconform.errors import DaemonError, UsageError


class _Handler(BaseHTTPRequestHandler):
    answers: ClassVar[Mapping[str, Any]]
    asked: ClassVar[list[str]]

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        known = self.path in self.answers or "*" in self.answers
        body = json.dumps(self.answers.get(self.path)).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_OPTIONS = do_HEAD = do_GET  # noqa: N815 - as above

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@contextmanager
def _serving(answers: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    handler = type("Handler", (_Handler,), {"answers": answers, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", handler.asked  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_OPENAPI = {
    "paths": {
        "/v1/brains/{id}/search": {"post": {}, "parameters": []},
        "/memories\n[routes]": {"put": {}},
        "/broken": None,
    }
}


def test_observed_routes_become_lines_of_a_valid_dialect(tmp_path: Path) -> None:
    with _serving({"/health": {}, "/v1/brains": [], "/openapi.json": _OPENAPI}) as (url, asked):
        text = draft_dialect(observe(url))
    assert {line.partition(" ")[0] for line in asked} == {"GET"}
    path = tmp_path / "dialect.toml"
    path.write_text(text)
    dialect = read_dialect(str(path))
    # Only what was seen is claimed: a path of health that answers, and that there is no version.
    assert dialect.routes == {"health": "GET /health", "version": False}
    lines = text.splitlines()
    assert "#   200 /health" in lines
    assert "#   404 /healthz" in lines
    assert "# list_brains: GET /v1/brains answered 200, as in the contract" in lines
    assert "# search: POST /v1/brains/{brain}/search is documented, as in the contract" in lines
    assert "#   PUT /memories?[routes]" in lines
    assert any(line.startswith('# create_brain = "POST /PATH"     # POST') for line in lines)


@pytest.mark.parametrize("answers", [{"/health": 1, "/ping": 1}, {"*": 1}, {}])
def test_health_is_not_guessed(answers: dict[str, Any]) -> None:
    """Two candidates, a server that answers everything, and one that answers nothing."""
    with _serving(answers) as (url, _):
        observation = observe(url)
    assert observation.health == ""
    assert "\nhealth = " not in draft_dialect(observation)
    assert observation.answers_everything == ("*" in answers)


@pytest.mark.parametrize(
    "document", [None, [], "x", {"paths": []}, {"paths": {"/a": [1]}}, {"paths": {}}]
)
def test_a_document_that_lists_no_operation_is_none(document: Any) -> None:
    with _serving({"/openapi.json": document}) as (url, _):
        observation = observe(url)
    assert (observation.document, observation.documented) == ("", ())
    assert "# No OpenAPI document was found." in draft_dialect(observation)


@pytest.mark.parametrize(
    "address",
    [
        *("http://192.0.2.1:80", "http://example.org", "ftp://127.0.0.1", "127.0.0.1:80", ""),
        *("http://127.0.0.1:1/?a=b", "http://127.0.0.1@example.org/"),
    ],
)
def test_only_an_address_of_this_machine_is_asked(address: str) -> None:
    with pytest.raises(UsageError, match="is not an address of this machine") as caught:
        observe(address)
    assert caught.value.code == "bad_url"


def test_a_daemon_that_does_not_run_is_reported() -> None:
    with _serving({}) as (url, _):
        pass
    with pytest.raises(DaemonError) as caught:
        observe(url)
    assert caught.value.code == "daemon_unreachable"
