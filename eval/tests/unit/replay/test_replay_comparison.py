"""Comparisons of SDKs in the replay, and figures of their results."""

from pathlib import Path
from typing import Any

import pytest

from memconform.cli.lme.plan import benchmark_modes
from memconform.cli.main import cli
from memconform.client.failures import ContractViolatedError
from memconform.contract.ask import Retrieve
from memconform.contract.core import Version
from memconform.contract.wire import Mode
from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.errors import ExitCode, UsageError
from memconform.ingest.records import IndexVerified
from memconform.measuring.requirements import require_complete
from memconform.replay.arbitration import _kappa
from memconform.replay.documents import Fact, SharedBrain, fact_documents, session_document
from memconform.replay.journal import RetrievalJournal
from memconform.replay.records import HitRecord, LmeParity, ReplayJournalHeader, ReplayRetrieval
from memconform.replay.sdk_agreement import compare_sdks
from memconform.stats.paired_comparison import ParityVerdict
from tests.unit.lme_results import question, result_of


def _hit(rank: int, path: str, score: float) -> HitRecord:
    return HitRecord(
        rank=rank, path=path, kind="session", session=path, score=score, text_sha256="0", preview=""
    )


def _compared(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> LmeParity:
    sides = [
        result_of([question(f"q-{n}", **fields) for n, fields in enumerate(side)], sdk=sdk)
        for sdk, side in (("go", first), ("ts", second))
    ]
    return compare_sdks(sides, command=("memconform",), session_filter="off")


_SAME = {"hits": [_hit(1, "a", 1.0), _hit(2, "b", 0.5)], "answer": "It rains."}


def test_equal_hits_scores_and_answers_are_identical() -> None:
    parity = _compared([_SAME] * 3, [_SAME] * 3)
    [pair] = parity.pairs
    assert (parity.verdict, pair.gold.verdict) == (ParityVerdict.IDENTICAL,) * 2
    assert (pair.divergences, parity.exit_code) == ([], ExitCode.OK)


def test_other_scores_of_the_same_chunks_are_not_identical() -> None:
    """The verdict on retrieval once ignored the scores that its own list of divergences named."""
    other = _SAME | {"hits": [_hit(1, "a", 1.0), _hit(2, "b", 0.3)]}
    [pair] = _compared([_SAME] * 3, [_SAME, _SAME, other]).pairs
    assert pair.gold.verdict is not ParityVerdict.IDENTICAL
    [divergence] = pair.divergences
    assert (divergence.question, divergence.stage) == ("q-2", "scores")
    assert divergence.detail == "at rank 2 0.500000 and 0.300000"


def test_a_question_that_failed_on_both_sides_is_not_identical() -> None:
    """Two empty rankings of failed searches once counted as equal."""
    failed = {"verdict": "not_run", "retrieval_ms": None, "gold_retrieved": None}
    [pair] = _compared([_SAME, _SAME, failed], [_SAME, _SAME, failed]).pairs
    assert pair.gold.verdict is not ParityVerdict.IDENTICAL
    assert pair.gold.compared == 2
    assert _compared([_SAME, failed], [_SAME, _SAME]).pairs[0].divergences[0].stage == "measured"


def test_drift_is_in_the_exit_code_of_the_comparison() -> None:
    wrong = _SAME | {"verdict": "incorrect", "hits": [], "gold_retrieved": False}
    parity = _compared([_SAME] * 12, [wrong] * 12)
    assert (parity.verdict, parity.exit_code) == (ParityVerdict.DRIFT, ExitCode.FAILED)


@pytest.mark.parametrize(
    ("second", "stage"),
    [
        ({"hits": [_hit(1, "b", 1.0), _hit(2, "a", 0.5)]}, "order"),
        ({"hits": [_hit(1, "a", 1.0), _hit(2, "c", 0.5)]}, "candidates"),
        ({"hits": [_hit(1, "a", 1.0)]}, "candidates"),
        ({"answer": "It snows."}, "answer"),
        ({"verdict": "incorrect"}, "verdict"),
    ],
)
def test_the_first_stage_that_differs_is_named(second: dict[str, Any], stage: str) -> None:
    [pair] = _compared([_SAME], [_SAME | second]).pairs
    assert [each.stage for each in pair.divergences] == [stage]


def test_a_continued_replay_refuses_another_version_of_the_daemon(tmp_path: Path) -> None:
    """A running daemon has no build hash: only its version tells that it was replaced."""
    header = ReplayJournalHeader(sdk="url", identity="build", settings="settings")
    first = RetrievalJournal(tmp_path, header)
    first.require_version(Version(name="d", version="1.0", contract="1"))
    record = ReplayRetrieval(question="q1", hits=[], texts=[], latency_ms=1.0, search_ms=None)
    first.append(record)
    first.state(IndexVerified())
    first.close("killed")
    again = RetrievalJournal(tmp_path, header)
    assert again.version == "1.0"
    again.require_version(Version(name="d", version="1.0", contract="1"))
    with pytest.raises(UsageError) as caught:
        again.require_version(Version(name="d", version="1.1", contract="1"))
    assert caught.value.code == "resume_mismatch"


class _Options:
    benchmark_mode = ("oracle",)
    sdk = ("go",)


class _Data:
    is_oracle = True


def test_a_control_beside_an_sdk_that_nobody_asks_is_refused() -> None:
    """`--sdk go --benchmark-mode oracle` once never started go, and scored perfect retrieval."""
    with pytest.raises(UsageError, match="asks no daemon, but go is given") as caught:
        benchmark_modes(_Options(), _Data(), tri=False)  # type: ignore[arg-type] # what it reads
    assert caught.value.code == "bad_mode"


def test_a_daemon_is_asked_about_any_file_that_tri_takes() -> None:
    """`real-retrieval` was refused for a file in which every session holds evidence."""
    options = _Options()
    options.benchmark_mode = ("real-retrieval",)
    assert benchmark_modes(options, _Data(), tri=False) == [None]  # type: ignore[arg-type] # what it reads
    options.benchmark_mode = ("real-retrieval,full-context",)
    with pytest.raises(UsageError, match="full-context is the same as oracle"):
        benchmark_modes(options, _Data(), tri=False)  # type: ignore[arg-type] # what it reads


def test_the_day_of_a_fact_is_in_its_text_unless_it_is_that_of_the_session() -> None:
    """Readers see the session's date, and no front matter."""
    turn = Turn("t", "user", "I bought a bike last week.", by_user=True)
    brain = SharedBrain()
    brain.add(Conversation("q", (Session("s", "2023/05/05 (Fri) 10:00", (turn,)),)))
    [placed] = brain.sessions.values()
    facts = [Fact("The user bought a bike.", "2023-04-28"), Fact("It rained.", "2023-05-05")]
    bodies = [
        document.content.decode().split("---\n")[2]
        for document in fact_documents(placed, facts, "lme")
    ]
    assert bodies == ["The user bought a bike. (2023-04-28)\n", "It rained.\n"]


def test_a_session_whose_id_begins_with_an_underscore_can_be_found() -> None:
    """Documents of such names are hidden: stored, and never found (core.ingest.hidden)."""
    brain = SharedBrain()
    turn = Turn("t", "user", "Hello.", by_user=True)
    brain.add(Conversation("q", (Session("_s", "2023/05/05 (Fri) 10:00", (turn,)),)))
    [placed] = brain.sessions.values()
    assert session_document(placed).path == "raw/lme/%5Fs.md"


def test_a_reader_that_retrieved_too_little_is_not_measured() -> None:
    trace = {
        "requestedMode": "hybrid", "effectiveMode": Mode.HYBRID, "embedderUsed": True,
        "reranked": False, "fellBackToBm25": False, "candidateK": 50, "searchMs": 1.0,
    }  # fmt: skip
    retrieve = Retrieve.model_validate(
        {"chunks": [], "topK": 20, "mode": Mode.HYBRID, "trace": trace}
    )
    with pytest.raises(ContractViolatedError) as caught:
        require_complete((5, 5), 20, 20, retrieve, ranked=0)
    assert caught.value.code == "short_ranking"


@pytest.mark.parametrize("verb", ["run", "tri"])
def test_a_replay_makes_no_forecast_and_offers_none(verb: str) -> None:
    """`--dry-run` was once accepted, and everything was paid for."""
    with pytest.raises(Exception, match="No such option") as caught:
        cli(["lme", verb, "--dataset", "d", "--dry-run"], standalone_mode=False)
    assert type(caught.value).__name__ == "NoSuchOption"


def test_kappa_of_one_verdict_throughout_is_not_given() -> None:
    """It was 0.00 (0.00 to 0.00) of three answers, which looked certain."""
    assert _kappa([True, True, True], [True, False, True]) is None
    assert _kappa([True, False, True], [True, True, True]) is None
    assert _kappa([True, False, True, False], [True, False, True, True]) is not None
