"""Which mode a daemon says that it served, and whether that is measured."""

import json
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.raw_http import serving
from memconform.contract.wire import Mode
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.runs.events import RunFinished
from memconform.runs.results import RunResult
from memconform.runs.schedule import execute
from tests.adversarial.inprocess import QUESTIONS, FaultyRun, plan_of, write_dataset
from tests.fakes.scripted import ScriptedBrain, ScriptedDaemon

Says = Callable[[str, str], dict[str, Any]]
"""What a trace says, in addition, of a requested mode and a query."""

_HYBRID = {"effectiveMode": "hybrid", "embedderUsed": True}
_BM25 = {"effectiveMode": "bm25", "embedderUsed": False}
_CLAIMS = (Mode.AUTO, Mode.BM25)


class _Daemon(ScriptedDaemon):
    """Ranks by words whatever the mode, and says of it what it is told to say."""

    def __init__(self, says: Says, *, forgets: str = "") -> None:
        """Searches by meaning do not find a text with `forgets`."""
        super().__init__("", "", None)
        self._says = says
        self._forgets = forgets

    def _counts(self, brain_id: str) -> dict[str, Any]:
        counts = super()._counts(brain_id)
        return counts | {"vectors": counts["chunks"]}

    def _retrieve(self, brain: ScriptedBrain, query: str, body: dict[str, Any]) -> dict[str, Any]:
        result = super()._retrieve(brain, query, body)
        result["trace"] |= self._says(body["mode"], query)
        if self._forgets and body["mode"] == "semantic":
            chunks = [chunk for chunk in result["chunks"] if self._forgets not in chunk["text"]]
            result["chunks"] = chunks
        return result


class _Runner(SdkRunner):
    name = "says"

    def __init__(self, daemon: _Daemon, modes: tuple[Mode, ...] | None) -> None:
        self._daemon = daemon
        self.modes = modes

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[Any]:
        async with (
            serving(self._daemon.answer, "127.0.0.1", 0) as port,
            UrlRunner(f"http://127.0.0.1:{port}").serve(launch) as daemon,
        ):
            yield daemon


async def _run(
    folder: Path,
    says: Says,
    *,
    modes: tuple[Mode, ...] | None = _CLAIMS,
    mode: Mode = Mode.AUTO,
    scenario: str = "search-retrieve-only",
    forgets: str = "",
    resumed: Path | None = None,
    dataset: Path | None = None,
) -> RunResult:
    plan = plan_of(FaultyRun((), scenario, 1, mode), dataset or write_dataset(folder), folder)
    plan = replace(plan, resumed=resumed)
    async for event in execute(plan, _Runner(_Daemon(says, forgets=forgets), modes)):
        if isinstance(event, RunFinished):
            return RunResult.model_validate_json(event.result.read_bytes())
    raise AssertionError("the run ended without its result")


def _journal(folder: Path, result: RunResult) -> Path:
    [journal] = folder.glob(f"*/runs/{result.run_id}/journal.jsonl")
    return journal


def _errors(result: RunResult) -> dict[str, str]:
    return {q.id: q.error.code for q in result.questions if q.error is not None}


def _auto_is(trace: dict[str, Any]) -> Says:
    return lambda mode, _: trace if mode == "auto" else {}


@pytest.mark.parametrize("scenario", ["search-retrieve-only", "ask-basic", "ask-augmented"])
async def test_auto_is_measured_in_the_mode_that_the_daemon_chose(
    tmp_path: Path, scenario: str
) -> None:
    """Each question was `mode_not_served`, because the manifest did not claim hybrid."""
    result = await _run(tmp_path, _auto_is(_HYBRID), scenario=scenario)
    assert (_errors(result), result.served_modes) == ({}, {"hybrid": QUESTIONS})


async def test_auto_stands_for_one_mode_in_all_questions(tmp_path: Path) -> None:
    def says(mode: str, query: str) -> dict[str, Any]:
        return {} if mode != "auto" else _BM25 if "box7?" in query else _HYBRID

    result = await _run(tmp_path, says)
    assert _errors(result) == {"q7": "mode_not_served"}
    assert result.served_modes == {"hybrid": QUESTIONS - 1}
    error = result.questions[7].error
    assert error is not None
    assert "auto, which stands for hybrid here, but the daemon served bm25" in error.message
    assert "--mode bm25" in error.hint


def _file_of(command: str) -> bytes:
    """What the file contains that a command reads."""
    *_, option, body = shlex.split(command)
    assert (option, body[0]) == ("--data-binary", "@")
    return Path(body[1:]).read_bytes()


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.HYBRID])
async def test_the_command_of_a_long_question_reads_a_file_of_the_run(
    tmp_path: Path, mode: Mode
) -> None:
    """It named FILE-OF-10000-BYTES, which nobody wrote; also where a claim is refuted with it."""
    dataset = write_dataset(tmp_path)
    long = "What is the secret word of box0? " + "please " * 1_500
    dataset.write_text(dataset.read_text().replace("What is the secret word of box0?", long))

    def says(_: str, query: str) -> dict[str, Any]:
        return {"requestedMode": "magic"} if mode is Mode.AUTO and query == long else _BM25

    result = await _run(tmp_path, says, modes=None, mode=mode, dataset=dataset)
    if mode is Mode.AUTO:
        assert _errors(result) == {"q0": "bad_trace"}
        assert result.questions[0].error is not None
        command = result.questions[0].error.curl
    else:
        assert result.incident is not None
        command = result.incident.excerpt.splitlines()[-1]
    assert json.loads(_file_of(command))["query"] == long
    [folder] = tmp_path.glob("*/runs/*/bodies")  # noqa: ASYNC240 - nothing else runs
    assert len(list(folder.iterdir())) == 1


async def test_a_resumed_run_serves_auto_as_before(tmp_path: Path) -> None:
    def fails_once(mode: str, query: str) -> dict[str, Any]:
        lie = {"requestedMode": "magic"} if "box7?" in query else {}
        return _HYBRID | lie if mode == "auto" else {}

    first = await _run(tmp_path, fails_once)
    assert _errors(first) == {"q7": "bad_trace"}
    journal = _journal(tmp_path, first)
    other = await _run(tmp_path, _auto_is(_BM25), resumed=journal)
    assert other.incident is not None
    assert (other.incident.code, other.pass_rate) == ("mode_not_served", None)
    same = await _run(tmp_path, _auto_is(_HYBRID), resumed=journal)
    assert (_errors(same), same.served_modes) == ({}, {"hybrid": QUESTIONS})


async def test_auto_outside_the_claim_is_one_finding_with_the_flag_to_type(tmp_path: Path) -> None:
    semantic = _HYBRID | {"effectiveMode": "semantic"}
    result = await _run(tmp_path, _auto_is(semantic), modes=(*_CLAIMS, Mode.HYBRID))
    assert (result.counts["not_run"], result.pass_rate) == (QUESTIONS, None)  # type: ignore[index]
    incident = result.incident
    assert incident is not None
    assert incident.code == "claim_refuted"
    assert "auto, which stands for hybrid or bm25 here" in incident.message
    assert "--mode semantic" in incident.hint
    assert "take hybrid" in incident.hint
    assert incident.excerpt.count("curl ") == 1


async def test_auto_may_be_bm25_where_hybrid_is_claimed_and_served(tmp_path: Path) -> None:
    """So it is with the feature hash; nobody knows the embedder of every daemon."""
    result = await _run(tmp_path, _auto_is(_BM25), modes=(*_CLAIMS, Mode.HYBRID))
    assert (_errors(result), result.served_modes) == ({}, {"bm25": QUESTIONS})


async def test_auto_is_not_measured_where_a_claimed_hybrid_is_bm25(tmp_path: Path) -> None:
    """Its embedder is missing, and bm25 no choice."""
    result = await _run(tmp_path, lambda *_: _BM25, modes=(*_CLAIMS, Mode.HYBRID))
    assert (result.counts["not_run"], result.pass_rate) == (QUESTIONS, None)  # type: ignore[index]
    assert result.incident is not None
    assert result.incident.code == "claim_refuted"
    assert "does not serve mode hybrid" in result.incident.message


async def test_a_mode_of_which_nothing_is_claimed_is_one_finding(tmp_path: Path) -> None:
    result = await _run(tmp_path, lambda *_: _BM25, modes=None, mode=Mode.HYBRID)
    assert result.incident is not None
    assert (result.incident.code, result.counts["not_run"]) == ("claim_refuted", QUESTIONS)  # type: ignore[index]
    assert "--mode bm25" in result.incident.hint


async def test_an_unclaimed_hybrid_is_proven_in_both_legs(tmp_path: Path) -> None:
    """Without the proof of its vectors, a lost one would only rank lower."""
    result = await _run(tmp_path, _auto_is(_HYBRID), forgets="word9x")
    assert result.pass_rate is None
    assert result.incident is not None
    assert result.incident.code == "not_searchable"


_CONVERSES = (*_CLAIMS, Mode.SEMANTIC, Mode.HYBRID, Mode.CONVERSATION)


def _served(**traces: dict[str, Any]) -> Says:
    """Every mode is served as itself, unless `traces` has another trace for it."""

    def says(mode: str, _: str) -> dict[str, Any]:
        compares = mode in ("semantic", "hybrid")
        return traces.get(mode, {"effectiveMode": mode, "embedderUsed": compares})

    return says


async def test_a_claim_of_conversation_needs_turns_that_a_run_does_not_have(
    tmp_path: Path,
) -> None:
    """Each run of the reference daemons was `claim_refuted`, when they began to claim the mode."""
    says = _served(auto=_HYBRID, conversation=_BM25)
    result = await _run(tmp_path, says, modes=_CONVERSES)
    assert (_errors(result), result.served_modes) == ({}, {"hybrid": QUESTIONS})


async def test_conversation_without_turns_is_not_measured_and_says_why(tmp_path: Path) -> None:
    """It was said that the mode is "still" served as bm25, because of the embedder's address."""
    says = _served(auto=_BM25, conversation=_BM25)
    result = await _run(tmp_path, says, modes=_CONVERSES, mode=Mode.CONVERSATION)
    assert result.incident is not None
    assert "requested mode conversation, but the daemon served bm25" in result.incident.message
    assert "metadata.session_id" in result.incident.hint
    assert result.pass_rate is None


async def test_conversation_waits_for_vectors_as_hybrid_does(tmp_path: Path) -> None:
    """It was proven by words alone while a daemon had no vectors yet, under the same name."""
    says = _served(auto=_BM25, hybrid=_BM25)
    result = await _run(tmp_path, says, modes=_CONVERSES, mode=Mode.CONVERSATION)
    assert result.incident is not None
    assert "does not serve mode hybrid" in result.incident.message


@pytest.mark.parametrize(("auto", "used"), [(_HYBRID, False), (_BM25, True)])
async def test_conversation_compares_vectors_where_auto_does(
    tmp_path: Path,
    auto: dict[str, Any],
    used: bool,  # noqa: FBT001
) -> None:
    conversation = {"effectiveMode": "conversation", "embedderUsed": used}
    says = _served(auto=auto, conversation=conversation)
    result = await _run(tmp_path, says, modes=_CONVERSES, mode=Mode.CONVERSATION)
    assert result.incident is not None
    assert f"embedderUsed is {used} in mode conversation" in result.incident.message
    agreeing = _served(auto=auto, conversation={**conversation, "embedderUsed": not used})
    (tmp_path / "agreeing").mkdir()
    measured = await _run(tmp_path / "agreeing", agreeing, modes=_CONVERSES, mode=Mode.CONVERSATION)
    assert (_errors(measured), measured.served_modes) == ({}, {"conversation": QUESTIONS})


_RERANKED = {"effectiveMode": "hybrid-rerank", "embedderUsed": True, "reranked": True}
_SKIPPED = _RERANKED | {"reranked": False}


def _skips(on: str, reason: dict[str, Any]) -> Says:
    def says(mode: str, query: str) -> dict[str, Any]:
        if mode != "hybrid-rerank":
            return {}
        return _SKIPPED | reason if on in query else _RERANKED

    return says


_RERANKS = {"modes": (*_CLAIMS, Mode.HYBRID_RERANK), "mode": Mode.HYBRID_RERANK}


async def test_a_daemon_that_says_why_it_skipped_reranking_is_measured(tmp_path: Path) -> None:
    says = _skips("box1", {"rerankSkipReason": "unanimity"})
    result = await _run(tmp_path, says, **_RERANKS)  # type: ignore[arg-type]
    assert (_errors(result), result.served_modes) == ({}, {"hybrid-rerank": QUESTIONS})
    assert result.skipped_stages == {"reranking (unanimity)": 11}


@pytest.mark.parametrize(
    "reason",
    [
        {},
        {"rerankSkipReason": ""},
        {"rerankSkipReason": "rerank_failed"},
        {"rerankSkipReason": "http 503"},
    ],
)
async def test_reranking_that_failed_or_was_skipped_in_silence_is_not_measured(
    tmp_path: Path, reason: dict[str, str]
) -> None:
    result = await _run(tmp_path, _skips("box3?", reason), **_RERANKS)  # type: ignore[arg-type]
    assert (_errors(result), result.skipped_stages) == ({"q3": "bad_trace"}, {})
    error = result.questions[3].error
    assert error is not None
    assert "hybrid-rerank without reranking" in error.message
    assert "--mode hybrid" in error.hint


async def test_a_daemon_without_a_reranker_does_not_serve_hybrid_rerank(tmp_path: Path) -> None:
    says = _skips("", {"rerankSkipReason": "no_reranker"})
    result = await _run(tmp_path, says, **_RERANKS)  # type: ignore[arg-type]
    assert result.incident is not None
    assert result.incident.code == "seed_failed"
    assert "without reranking: no_reranker" in result.incident.message
    assert "--mode hybrid" in result.incident.hint
