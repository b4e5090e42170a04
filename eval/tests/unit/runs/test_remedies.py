"""What doctor proposes after a failed step."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.contract.wire import Mode
from memconform.daemons.discovery import find_runner
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.runs.preflight import verify_claims
from memconform.runs.remedies import Remedy, flag_remedy, mode_remedy, remedies, toml

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


async def test_a_mode_that_a_dialect_cannot_say_is_refuted_without_a_request(
    runner: SdkRunner,
) -> None:
    """The command of a request that was never sent was an IndexError, exit code 70."""

    class _Client:
        async def search(self, *_: object) -> None:
            raise DaemonFailedError("not_in_dialect", "the dialect has no mode bm25")

    client, plan = cast("Any", _Client()), cast("Any", SimpleNamespace())
    plan.settings = SimpleNamespace(mode=Mode.BM25)
    with pytest.raises(DaemonError) as caught:
        await verify_claims(client, plan, runner, "b", "Where?")
    assert (caught.value.code, caught.value.excerpt) == ("claim_refuted", "")
    assert "not_in_dialect" in caught.value.message


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
    flag, line = remedies("search bm25", error, (), runner)
    assert (flag.label, "--rank-by position" in flag.line) == ("or", True)
    assert (line.label, "rank_by" in line.line) == ("add to sdk.toml", True)
    assert toml([flag]) == ""
    assert remedies("ingest", error, (), runner) == [flag, line]
    [route] = remedies("ask", DaemonFailedError("http_404", "GET /healthz: 404"), (), runner)
    assert route.label == "add to sdk.toml"


_SCRIPTED = """
[upstream]
modes = ["hybrid", "hybrid-rerank"]

[upstream.scripted]
OPENAI_BASE_URL = "{upstream}"
"""


def _runner(folder: Path, *, upstream: Literal["own", "scripted"] | None) -> SdkRunner:
    """The runner of an SDK that uses an upstream; None for one that can use none."""
    (folder / "sdk.toml").write_text(_SDK + (_SCRIPTED if upstream else ""))
    runner = find_runner(str(folder / "sdk.toml"), folder)
    if upstream is not None:
        runner.use_upstream(upstream)
    return runner


_FAILURES = [
    ("reader_failed", "the daemon reported an error: no LLM provider configured"),
    ("bad_trace", "effectiveMode hybrid-rerank without reranking: no_reranker"),
    ("bad_trace", "effectiveMode hybrid without an embedder"),
    ("bad_ranking", "the score rises from chunk 0 to chunk 1"),
    ("mode_not_served", "requested mode hybrid, but the daemon served bm25"),
    ("http_500", "POST /v1/brains/b/search: 500"),
]


@pytest.mark.parametrize(("code", "message"), _FAILURES)
def test_a_remedy_names_only_what_is_not_in_use(tmp_path: Path, code: str, message: str) -> None:
    """`use --upstream scripted` was printed where it was in use already."""
    own = _runner(tmp_path, upstream="own")
    offered = flag_remedy(code, message, own)
    assert ("--upstream scripted" in offered) == (code in ("reader_failed", "bad_trace"))
    for upstream in ("scripted", None):
        other = flag_remedy(code, message, _runner(tmp_path, upstream=upstream))
        assert "--upstream" not in other
    assert "--rank-by" not in flag_remedy(code, message, own, rank_by="position")


def test_each_flag_is_named_where_it_helps(tmp_path: Path) -> None:
    runner = _runner(tmp_path, upstream="scripted")
    shown = [flag_remedy(code, message, runner) for code, message in _FAILURES]
    flags = ["", "--mode hybrid", "--mode bm25", "--rank-by position", "--mode bm25", ""]
    for remedy, flag in zip(shown, flags, strict=True):
        assert flag in remedy
        assert bool(remedy) == bool(flag)


def test_an_unclaimed_mode_names_the_upstream_unless_it_is_in_use(tmp_path: Path) -> None:
    for upstream, has_flag in (("own", True), ("scripted", False), (None, False)):
        runner = _runner(tmp_path, upstream=upstream)  # type: ignore[arg-type]
        mode = Mode.SEMANTIC if upstream == "scripted" else Mode.HYBRID
        with pytest.raises(UsageError, match="does not claim mode") as caught:
            runner.require_claimed(mode)
        assert ("--upstream scripted" in caught.value.hint) == has_flag
    _runner(tmp_path, upstream="scripted").require_claimed(Mode.HYBRID_RERANK)


def test_a_refuted_claim_that_is_not_needed_names_the_manifest_and_no_mode(tmp_path: Path) -> None:
    runner = _runner(tmp_path, upstream="scripted")
    error = DaemonFailedError(*_FAILURES[4])
    assert "--mode bm25" in mode_remedy(error, Mode.HYBRID, Mode.HYBRID, runner)
    other = mode_remedy(error, Mode.HYBRID, Mode.BM25, runner)
    assert "--mode" not in other
    assert "take hybrid out of [capabilities] modes" in other


def test_an_embedder_that_works_from_the_next_start_on_is_thought_of(tmp_path: Path) -> None:
    """`configure an embedder` was the advice for one that was configured."""
    message = "effectiveMode hybrid without an embedder"
    managed = _runner(tmp_path, upstream=None)
    assert "set [seed] restart = true" in flag_remedy("bad_trace", message, managed)
    running = find_runner("url:http://127.0.0.1:1", tmp_path)
    assert "restart it and measure what it has by --brain" in flag_remedy(
        "bad_trace", message, running
    )
    (tmp_path / "sdk.toml").write_text(_SDK + "[seed]\nrestart = true\n")
    restarted = find_runner(str(tmp_path / "sdk.toml"), tmp_path)
    assert "restart" not in flag_remedy("bad_trace", message, restarted)
