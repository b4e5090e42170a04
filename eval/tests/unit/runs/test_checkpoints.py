"""When attempts count: verification, repetition and statements in every order of events."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memconform.client.failures import (
    CallError,
    CallTimeoutError,
    ContractViolatedError,
    DaemonFailedError,
)
from memconform.datasets.question import Question
from memconform.errors import DaemonError
from memconform.ingest.verification import IndexChangedError, IndexDoubtError, IndexVerifier
from memconform.records import Failure
from memconform.runs import checkpoints
from memconform.runs.checkpoints import Checkpoints, RetrievalSnapshot, not_repeatable
from memconform.runs.journal import Journal
from memconform.scoring.statuses import QuestionStatus
from tests.unit.runs.test_journal import HEADER, records

_QUESTION = Question(id="q", question="What?", expected_substrings=("x",))


class _Verifier(IndexVerifier):
    """Finds the index complete unless it is set up to raise."""

    def __init__(self) -> None:
        self.raises: list[Exception] = []
        self.calls = 0
        self.pause: asyncio.Event | None = None
        self.pauses = asyncio.Event()
        self.recovers: DaemonError | None = None

    async def verify(self, paths: object = None, *, full: bool = False) -> bool:
        del paths
        self.calls += 1
        if self.pause is not None:
            self.pauses.set()
            await self.pause.wait()
        if self.raises:
            raise self.raises.pop(0)
        return full

    async def recover(self, paths: object = ()) -> None:
        del paths
        if self.recovers is not None:
            raise self.recovers


class _Case:
    def __init__(self, folder: Path, *, reverify: bool = True) -> None:
        self.journal = Journal(folder / "journal", HEADER)
        self.verifier = _Verifier()
        self.confirmed: list[int] = []
        self.outcomes: Callable[[RetrievalSnapshot], Failure | None] = lambda _: None
        self.checkpoints = Checkpoints(
            self.verifier, self.journal, self._confirm, lambda _: (), reverify=reverify
        )

    async def _confirm(self, retrieved: RetrievalSnapshot) -> Failure | None:
        self.confirmed.append(retrieved.number)
        return self.outcomes(retrieved)

    def attempt(self, row: int, *, held: bool = True) -> None:
        number = self.journal.write(*records(row))
        self.checkpoints.add(RetrievalSnapshot(number, _QUESTION, held, ("a",), passed=held))

    def verdicts(self, *rows: int) -> list[str]:
        return [
            record.error.code if record.error else record.verdict.value
            for row in rows
            for attempt in self.journal.read(row)
            if (record := attempt.judgement)
        ]


@pytest.fixture
def case(tmp_path: Path) -> Iterator[_Case]:
    checkpoint_case = _Case(tmp_path)
    yield checkpoint_case
    checkpoint_case.journal.close({})


async def test_only_suspect_retrievals_are_repeated(case: _Case) -> None:
    case.attempt(0)
    case.attempt(1, held=False)
    await case.checkpoints.verify()
    assert case.confirmed == [1]
    assert case.verdicts(0, 1) == [QuestionStatus.CORRECT.value] * 2
    assert case.checkpoints.record().repeated == 1


async def test_an_unjudged_attempt_is_repeated_before_it_counts(case: _Case) -> None:
    """An attempt with one of two facts was settled and later judged incorrect, due to an outage."""
    number = case.journal.write(*records(0))
    case.checkpoints.add(RetrievalSnapshot(number, _QUESTION, held=True, chunks=("a",)))
    whole = RetrievalSnapshot(number, _QUESTION, held=True, chunks=("a", "b"))
    case.outcomes = lambda r: not_repeatable(r, whole)
    await case.checkpoints.verify()
    assert case.confirmed == [0]
    assert case.verdicts(0) == ["not_repeatable"]


async def test_one_differing_repetition_has_all_repeated(case: _Case) -> None:
    for row in range(3):
        case.attempt(row, held=row != 1)
    again = RetrievalSnapshot(1, _QUESTION, held=True, chunks=("a",))
    case.outcomes = lambda r: not_repeatable(r, again) if r.number == 1 else None
    await case.checkpoints.verify()
    assert case.confirmed == [1, 0, 2]
    assert case.verdicts(0, 1, 2) == ["correct", "not_repeatable", "correct"]


async def test_a_retracted_attempt_does_not_void_the_run(case: _Case) -> None:
    """It once differed again in the final sample, and everything was discarded."""
    for row in range(3):
        case.attempt(row, held=row != 1)
    again = RetrievalSnapshot(1, _QUESTION, held=True, chunks=("a",))
    case.outcomes = lambda r: not_repeatable(r, again) if r.number == 1 else None
    await case.checkpoints.verify()
    await case.checkpoints.verify(last=True)
    assert case.verdicts(0, 1, 2) == ["correct", "not_repeatable", "correct"]


async def test_a_difference_in_the_final_sample_voids_the_run(case: _Case) -> None:
    case.attempt(0)
    await case.checkpoints.verify()
    case.attempt(1)
    lost = RetrievalSnapshot(0, _QUESTION, held=False, chunks=())
    case.outcomes = lambda r: not_repeatable(r, lost) if r.number == 0 else None
    await case.checkpoints.verify(last=True)
    assert case.verdicts(0, 1) == ["not_repeatable"] * 2


async def test_retrievals_that_always_differ_are_not_measured(case: _Case) -> None:
    for row in range(8):
        case.attempt(row, held=False)
    rows = iter(range(8))
    # In each round another retrieval differs; those of the last rows never do.
    case.outcomes = lambda r: Failure(code="x", message="") if r.number == next(rows, -1) else None
    await case.checkpoints.verify()
    assert set(case.verdicts(*range(8))) <= {"x", "not_confirmed", "correct"}
    assert case.checkpoints.record().retracted > 0


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (IndexDoubtError("index_pending", "7 pending"), "index_pending"),
        (IndexDoubtError("not_searchable", "gone"), "not_searchable"),
    ],
)
async def test_a_doubt_discards_open_attempts_and_the_run_continues(
    case: _Case, raised: Exception, code: str
) -> None:
    case.attempt(0)
    await case.checkpoints.verify(last=True)
    case.attempt(1)
    case.verifier.raises = [raised]
    await case.checkpoints.verify()
    case.attempt(2)
    await case.checkpoints.verify()
    assert case.verdicts(0, 1, 2) == ["correct", code, "correct"]


async def test_an_index_that_does_not_recover_ends_the_run(case: _Case) -> None:
    case.attempt(0)
    case.verifier.raises = [IndexDoubtError("not_searchable", "gone")]
    case.verifier.recovers = IndexChangedError("gone", code="not_searchable")
    with pytest.raises(IndexChangedError):
        await case.checkpoints.verify()
    assert case.verdicts(0) == ["not_searchable"]


@pytest.mark.parametrize(
    ("error", "due"),
    [
        (ContractViolatedError("out_of_step", "bytes came"), True),
        (DaemonFailedError("connection_broken", "reset"), True),
        (DaemonFailedError("http_500", "boom"), False),
    ],
)
async def test_suspicious_failures_make_a_verification_due(
    *, case: _Case, error: CallError, due: bool
) -> None:
    await asyncio.sleep(0)
    case.attempt(0)
    await case.checkpoints.verify()
    # As if verifications had used up their share of the time.
    case.checkpoints._spent = 1e9
    case.attempt(1)
    assert not case.checkpoints.due
    case.checkpoints.record_failure(error)
    assert case.checkpoints.due is due


async def test_bytes_out_of_step_discard_open_attempts(case: _Case) -> None:
    case.attempt(0)
    case.checkpoints.record_failure(ContractViolatedError("out_of_step", "bytes came"))
    await case.checkpoints.verify()
    case.attempt(1)
    await case.checkpoints.verify()
    assert case.verdicts(0, 1) == ["out_of_step", "correct"]


async def test_an_interrupted_verification_keeps_its_attempts_open(case: _Case) -> None:
    """It once took the list with it, and the last verification confirmed nothing."""
    case.attempt(0, held=False)
    case.verifier.pause = asyncio.Event()
    verifying = asyncio.create_task(case.checkpoints.verify())
    await case.verifier.pauses.wait()
    verifying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await verifying
    case.verifier.pause.set()
    await case.checkpoints.verify(last=True)
    assert set(case.confirmed) == {0}


async def test_attempts_that_end_during_a_verification_wait_for_the_next(case: _Case) -> None:
    case.attempt(0)
    case.verifier.pause = asyncio.Event()
    verifying = asyncio.create_task(case.checkpoints.verify())
    await case.verifier.pauses.wait()
    case.attempt(1, held=False)
    case.verifier.pause.set()
    await verifying
    assert case.verdicts(0, 1) == ["correct", "index_not_proven"]
    assert case.confirmed == []
    await case.checkpoints.verify()
    assert case.verdicts(1) == ["correct"]
    assert case.confirmed == [1]


def _failing(times: int) -> Callable[[RetrievalSnapshot], Failure | None]:
    """A daemon that fails the first repetitions."""
    left = iter(range(times))

    def outcome(_: RetrievalSnapshot) -> Failure | None:
        if next(left, None) is not None:
            raise DaemonFailedError("http_500", "boom")
        return None

    return outcome


@pytest.fixture
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_RETRY_SECONDS", 0)


@pytest.mark.usefixtures("_no_pause")
async def test_one_failed_repetition_discards_nothing(case: _Case) -> None:
    """A single 500 while the final sample was repeated discarded every open answer."""
    for row in range(20):
        case.attempt(row, held=row != 1)
    case.outcomes = _failing(1)
    await case.checkpoints.verify()
    case.attempt(20)
    case.outcomes = _failing(1)
    await case.checkpoints.verify(last=True)
    assert case.verdicts(*range(21)) == ["correct"] * 21
    assert case.checkpoints.record().retracted == 0


@pytest.mark.usefixtures("_no_pause")
async def test_a_question_whose_repetition_always_fails_costs_the_others_nothing(
    case: _Case,
) -> None:
    def outcome(snapshot: RetrievalSnapshot) -> Failure | None:
        if snapshot.number == 1:
            raise DaemonFailedError("http_500", "boom")
        return None

    for row in range(5):
        case.attempt(row)
    case.outcomes = outcome
    await case.checkpoints.verify(last=True)
    assert case.verdicts(*range(5)) == ["correct"] * 5
    case.attempt(5, held=False)
    case.outcomes = _failing(9)
    await case.checkpoints.verify()
    assert case.verdicts(*range(6)) == ["correct"] * 5 + ["not_confirmed"]


@pytest.mark.usefixtures("_no_pause")
async def test_a_sample_of_which_nothing_can_be_repeated_proves_nothing(case: _Case) -> None:
    case.attempt(0)
    case.outcomes = _failing(99)
    await case.checkpoints.verify(last=True)
    assert case.verdicts(0) == ["not_confirmed"]


@pytest.mark.parametrize(
    "error",
    [CallTimeoutError("timeout", "slow"), DaemonFailedError("daemon_died", "gone")],
)
async def test_a_repetition_that_is_stuck_or_dead_is_not_retried(
    case: _Case, error: CallError
) -> None:
    def outcome(_: RetrievalSnapshot) -> Failure | None:
        raise error

    case.attempt(0, held=False)
    case.outcomes = outcome
    await case.checkpoints.verify()
    assert case.confirmed == [0]
    assert case.verdicts(0) == ["not_confirmed"]


async def test_nothing_is_repeated_without_reverification(tmp_path: Path) -> None:
    case = _Case(tmp_path, reverify=False)
    case.attempt(0, held=False)
    await case.checkpoints.verify(last=True)
    assert (case.confirmed, case.verdicts(0)) == ([], ["correct"])
    case.journal.close({})
