"""What doctor proposes after a failed step."""

from pathlib import Path

import pytest

from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.daemons.discovery import find_runner
from memconform.daemons.runner import SdkRunner
from memconform.errors import DaemonError
from memconform.runs.remedies import Remedy, remedies, toml

_SDK = """
name = "mine"
language = "python"

[serve]
argv = ["daemon"]

[capabilities]
profiles = ["core"]
modes = ["bm25"]

[dialect.routes]
search = "POST /spaces/{brain}/query"
"""


@pytest.fixture
def runner(tmp_path: Path) -> SdkRunner:
    (tmp_path / "sdk.toml").write_text(_SDK)
    return find_runner(str(tmp_path / "sdk.toml"), tmp_path)


def _lines(found: list[Remedy]) -> list[str]:
    return [remedy.line.partition("   #")[0] for remedy in found]


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        ("GET /healthz: 404", ['[dialect.routes] health = "GET /PATH"']),
        ("POST /v1/brains: 405", ['[dialect.routes] create_brain = "POST /PATH"']),
        ("POST /v1/brains/b/ask: 404", ['[dialect.routes] ask = "POST /{brain}/PATH"']),
        # The dialect names this route, so the 404 is about something else.
        ("POST /v1/brains/b/search: 404", []),
        ("POST /spaces/b/query: 404", []),
        ("POST /v1/brains/b/ask: 500", []),
    ],
)
def test_a_404_names_the_route_of_the_dialect(
    runner: SdkRunner, message: str, lines: list[str]
) -> None:
    code = "http_" + message[-3:]
    assert _lines(remedies("ask", DaemonFailedError(code, message), (), runner)) == lines


def test_a_404_while_it_starts_names_the_path_of_readiness(runner: SdkRunner) -> None:
    def proposed(status: int) -> list[str]:
        message = f"mine did not become healthy within 3 s: last answer of /healthz: {status} x"
        error = DaemonError(message, code="daemon_not_ready", hint="")
        return _lines(remedies("start", error, (), runner))

    assert proposed(404) == ['[ready] path = "/PATH"']
    assert proposed(503) == []


def test_a_flag_is_not_called_a_line_of_the_manifest(runner: SdkRunner) -> None:
    error = ContractViolatedError("bad_ranking", "the score rises from 1 to 2")
    [flag, line] = remedies("search bm25", error, (), runner)
    assert (flag.label, "--rank-by position" in flag.line) == ("or", True)
    assert toml([flag]) == ""
    assert line.line.startswith('[dialect] rank_by = "position"')
    assert remedies("ingest", error, (), runner) == [flag, line]
    [route] = remedies("ask", DaemonFailedError("http_404", "GET /healthz: 404"), (), runner)
    assert route.label == "add to sdk.toml"
