"""Random faults at random moments: every score is true, or its question is reported unmeasured."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memconform.client.failures import CallError
from memconform.contract.wire import Mode
from memconform.printing.logs import configure_logs, reset_logs
from tests.adversarial.inprocess import TRUTH, FaultyRun, false_scores, run, write_dataset
from tests.fakes.hostile import KINDS, Fault

_AT_ONCE = 4


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Silence the log of each fault; a failing test names the draws that matter."""
    configure_logs("error")
    yield
    reset_logs()


def draw(rng: random.Random) -> FaultyRun:
    """Draw one to three faults that start at any request of a run."""
    faults = tuple(
        Fault(
            kind=rng.choice(KINDS),
            at=rng.randrange(60),
            lasts=rng.choice((0, 1, 1, 2, 5, 20)),
            questions=rng.random() < 0.4,
        )
        for _ in range(rng.choice((1, 1, 2, 3)))
    )
    scenario = rng.choice(("search-retrieve-only", "ask-basic"))
    return FaultyRun(faults, scenario, rng.choice((1, 1, 4)), rng.choice((Mode.AUTO, Mode.BM25)))


async def fooled(seed: int, draws: int, folder: Path) -> list[str]:
    """Draws that produced a false score, each with the affected question."""
    rng = random.Random(seed)
    return await _fooled_by([draw(rng) for _ in range(draws)], folder)


async def _fooled_by(faulty_runs: Sequence[FaultyRun], folder: Path) -> list[str]:
    """The runs with a false score; each waits most of the time, so that some run at once."""
    dataset = write_dataset(folder)
    pending = list(faulty_runs)
    failures: list[str] = []

    async def work() -> None:
        while pending:
            faulty_run = pending.pop()
            result = await run(faulty_run, dataset, folder)
            failures.extend(f"{faulty_run}: {question}" for question in false_scores(result))

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    return failures


async def test_a_good_daemon_is_measured_in_full(tmp_path: Path) -> None:
    for scenario in ("search-retrieve-only", "ask-basic"):
        result = await run(FaultyRun((), scenario, 1), write_dataset(tmp_path), tmp_path)
        assert {question.id: question.verdict.value for question in result.questions} == TRUTH
        assert result.incident is None


async def test_no_random_fault_becomes_a_score(tmp_path: Path) -> None:
    assert not await fooled(1, 20, tmp_path)


# Each takes 26 s of both cores: they run by night, and in `make bench`.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(100, 110))
async def test_no_random_fault_becomes_a_score_in_many_draws(tmp_path: Path, seed: int) -> None:
    assert not await fooled(seed, 50, tmp_path)


def _fault(kind: str, at: int, lasts: int, *, questions: bool) -> Fault:
    return Fault(kind=kind, at=at, lasts=lasts, questions=questions)


@pytest.mark.parametrize(
    "faults",
    [
        # The brain was emptied between the proof of its index and the repetition of a retrieval,
        # so that the repetition was as empty as an earlier outage had made the attempt.
        pytest.param(
            (
                _fault("restarted", 7, 2, questions=True),
                _fault("recreated", 11, 1, questions=False),
            ),
            id="emptied before the repetition",
        ),
        # No document is known for a question without an answer, so only filtered searches were
        # ever probed, not unfiltered ones.
        pytest.param(
            (
                _fault("restarted", 13, 20, questions=True),
                _fault("twice", 26, 1, questions=True),
            ),
            id="lost to questions alone",
        ),
    ],
)
async def test_an_outage_that_confirmed_itself_is_not_a_score(
    tmp_path: Path, faults: tuple[Fault, ...]
) -> None:
    """Two of 20,000 draws: one failed every time, the other one time in three."""
    faulty_run = FaultyRun(faults, "ask-basic", 1)
    assert not await _fooled_by([faulty_run] * 8, tmp_path)


async def test_the_check_sees_a_harness_that_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without proofs and repetitions, the same faults produce false scores."""
    from memconform.ingest.verification import IndexVerifier  # noqa: PLC0415
    from memconform.runs.checkpoints import Checkpoints  # noqa: PLC0415

    async def trusting(self: IndexVerifier, *_: object, **__: object) -> bool:
        del self
        return True

    def ignore(self: Checkpoints, error: CallError) -> None:
        del self, error

    monkeypatch.setattr(IndexVerifier, "verify", trusting)
    monkeypatch.setattr(Checkpoints, "record_failure", ignore)
    monkeypatch.setattr(Checkpoints, "add", lambda *_: None)
    assert await fooled(0, 30, tmp_path)
