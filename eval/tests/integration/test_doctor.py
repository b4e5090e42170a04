"""`doctor`: diagnoses an SDK and suggests what to try."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Ended

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_QUESTION = "Who carries the post uphill?"


@pytest.mark.capability("doctor")
def test_the_reference_daemon_passes_every_step(installed: Call) -> None:
    ended = installed("doctor", "--sdk", CHECKOUT / "sdks" / "py" / "sdk.toml")
    assert ended.code == 0, ended.out
    # The lines of the verdicts begin with the SDK's name.
    lines = [line.split() for line in ended.out.splitlines()]
    steps = [word for mark, word, *_ in lines if mark == "ok"]
    assert steps == [
        *("build", "start", "health", "version", "ingest"),
        # In each claimed mode: auto, bm25, semantic, hybrid, conversation.
        *["search"] * 5,
        *("ask", "ask", "list", "error", "delete", "stop"),
        *["client"] * 3,
    ]
    assert "\npy: ok\n" in ended.out
    assert ended.out.endswith("py, client: ok\n")


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        ("exits", 3, "exiting at once"),
        ("other_contract", 1, "implements contract '2'"),
        ("not_searchable", 1, "a search for their own words (mode bm25) does not find"),
        ("miscounts", 1, "3 documents were sent, but the brain counts 2"),
        ("stays_pending", 1, "conform --case 'brain-counts*'"),
        ("mode_not_served", 1, "requested mode bm25, but the daemon served semantic"),
        ("http_500", 3, "500 internal_error: boom"),
        ("other_shape", 1, "chunks: missing"),
        ("done_twice", 1, "'done' came after done"),
        ("error", 3, "the upstream is unavailable"),
        ("dies", 3, "search auto"),
        ("foreign_chunk", 1, "made/up.md was retrieved but never ingested"),
        ("keeps_brain", 1, "deleting it answers 404"),
        ("brain_500", 3, "repeat the call with: curl -sS -N"),
        ("error_without_code", 3, 'code: missing; the daemon reports {"message": "out of quota"}'),
        ("ignores_sigterm", 1, "still running 5 s after SIGTERM"),
    ],
)
def test_names_the_failing_step(
    memconform: Call, scripted: Scripted, fault: str, code: int, says: str
) -> None:
    ended = memconform("doctor", "--sdk", scripted(fault, on=_QUESTION))
    assert ended.code == code, ended.out
    assert "FAIL" in ended.out
    assert says in ended.out
    # Each failure says what to change.
    failures = ended.out.split("FAIL ")[1:]
    assert all("\n       change: " in failure for failure in failures), ended.out
    assert "scripted: " in ended.out
    assert "Traceback" not in ended.out + ended.err
    if fault == "exits":
        assert "FAIL start" in ended.out
    if fault == "http_500":
        assert "repeat the call with: curl -sS -N" in ended.out


@pytest.mark.parametrize(
    ("fault", "step", "says"),
    [
        ("lists_no_brain", "list brains", "is not among the 0 listed"),
        ("no_batch", "ingest batch", "http_404: POST /v1/brains/"),
        ("plain_errors", "error response", "Content-Type 'application/json'"),
    ],
)
def test_what_no_measurement_needs_is_a_warning(
    memconform: Call, scripted: Scripted, fault: str, step: str, says: str
) -> None:
    ended = memconform("doctor", "--sdk", scripted(fault))
    assert ended.code == 0, ended.out
    assert f"warn {step}" in ended.out
    assert says in ended.out
    assert ended.out.endswith("scripted: ok, 1 warning: conform decides\n")


@pytest.mark.parametrize(("fault", "step"), [("dies_on_ingest", "ingest"), ("dies", "search auto")])
def test_reports_the_death_of_the_daemon(
    memconform: Call, scripted: Scripted, fault: str, step: str
) -> None:
    ended = memconform("doctor", "--sdk", scripted(fault, on=_QUESTION))
    assert ended.code == 3, ended.out
    assert f"FAIL {step}" in ended.out
    assert "daemon_died: the daemon died during this step" in ended.out
    assert "killed by SIGKILL" in ended.out
    if fault == "dies":
        assert "| scripted: dying by SIGKILL" in ended.out
    assert "stop" not in ended.out
    assert ended.out.endswith("scripted: 1 step failed\n")


def test_one_fault_of_the_reader_is_one_failed_step(memconform: Call, scripted: Scripted) -> None:
    ended = memconform("doctor", "--sdk", scripted("error", on=_QUESTION))
    assert ended.code == 3
    assert ended.out.count("FAIL") == 1, ended.out
    assert "skip ask augmented        fails as ask does (reader_failed)" in ended.out
    assert ended.out.endswith("scripted: 1 step failed, 1 untested\n"), ended.out


def test_a_missing_toolchain_is_named(memconform: Call, scripted: Scripted) -> None:
    sdk = scripted()
    sdk.write_text(f'requires = ["no-such-tool"]\n{sdk.read_text()}')
    ended = memconform("doctor", "--sdk", sdk)
    assert ended.code == 3
    assert "install no-such-tool, or run without scripted" in ended.out


_OWN_ROUTES = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        known = {"GET /up": 200, "POST /v1/brains": 201}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(known.get(f"{self.command} {self.path}", 404))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.replace(b"brainId", b"brain_id") or b"{}")

    do_POST = do_PUT = do_DELETE = do_GET

HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def _examined(memconform: Call, workspace: Path, profiles: str) -> Ended:
    """What doctor says of a daemon with routes of its own."""
    (workspace / "own.py").write_text(_OWN_ROUTES)
    (workspace / "sdk.toml").write_text(
        'name = "own"\nlanguage = "python"\n[ready]\npath = "/up"\n'
        '[serve]\nargv = ["{python}", "own.py", "{host}", "{port}"]\n'
        f'[capabilities]\nprofiles = {profiles}\nmodes = ["bm25"]\n'
    )
    return memconform("doctor", "--sdk", "sdk.toml")


def test_a_step_that_is_tried_again_fails_once(memconform: Call, workspace: Path) -> None:
    ended = _examined(memconform, workspace, '["core"]')
    assert ended.out.count("FAIL ingest") > 1, ended.out
    assert 'health = "GET /PATH"' in ended.out
    failed = {line for line in ended.out.splitlines() if line.startswith("FAIL")}
    skipped = [line for line in ended.out.splitlines() if line.startswith("skip")]
    assert ended.out.endswith(
        f"own: {len(failed)} steps failed, {len(skipped)} untested, 2 warnings: conform decides\n"
    ), ended.out


def test_what_a_failed_ingest_leaves_untested_is_listed(memconform: Call, workspace: Path) -> None:
    ended = _examined(memconform, workspace, '["core", "ask"]')
    assert ended.code == 3, ended.out
    skipped = {
        line[5:26].strip(): line[26:] for line in ended.out.splitlines() if line[:4] == "skip"
    }
    assert list(skipped) == ["search bm25", "ask", "ask augmented", "ingest batch", "delete brain"]
    assert "measure with --mode bm25" in ended.out
    for step, route in (
        ("search bm25", "/search"),
        ("ask", "/ask"),
        ("ingest batch", "/ingest/batch"),
    ):
        assert skipped[step].startswith("untested, because ingest failed (http_404: POST ")
        assert f"{route}: 404" in skipped[step]
    # What fails for a reason of its own is shown as such.
    assert "warn list brains" in ended.out
    assert "warn error response" in ended.out
