"""Random faults at random moments: the score is the true one, or what was not measured is said."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from memconform.client.failures import CallError
from memconform.contract.wire import Mode
from memconform.fakes.hostile import KINDS, Fault
from memconform.printing.logs import configure_logs, reset_logs
from tests.adversarial.inprocess import TRUTH, Drawn, false_scores, run, write_dataset

_AT_ONCE = 4


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Each fault is logged, and a test that fails names the draws that matter."""
    configure_logs("error")
    yield
    reset_logs()


def draw(rng: random.Random) -> Drawn:
    """One to three faults that begin at any of the requests that a run makes."""
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
    return Drawn(faults, scenario, rng.choice((1, 1, 4)), rng.choice((Mode.AUTO, Mode.BM25)))


async def fooled(seed: int, draws: int, folder: Path) -> list[str]:
    """Draws that end in a false score, each with what was wrong."""
    rng = random.Random(seed)
    dataset = write_dataset(folder)
    left = [draw(rng) for _ in range(draws)]
    found: list[str] = []

    async def work() -> None:
        while left:
            drawn = left.pop()
            result = await run(drawn, dataset, folder)
            found.extend(f"{drawn}: {wrong}" for wrong in false_scores(result))

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    return found


async def test_a_good_daemon_is_measured_in_full(tmp_path: Path) -> None:
    for scenario in ("search-retrieve-only", "ask-basic"):
        result = await run(Drawn((), scenario, 1), write_dataset(tmp_path), tmp_path)
        assert {question.id: question.verdict.value for question in result.questions} == TRUTH
        assert result.incident is None


@pytest.mark.parametrize("seed", range(2))
async def test_no_random_fault_becomes_a_score(tmp_path: Path, seed: int) -> None:
    assert not await fooled(seed, 20, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 110))
async def test_no_random_fault_becomes_a_score_in_many_draws(tmp_path: Path, seed: int) -> None:
    assert not await fooled(seed, 50, tmp_path)


def _fault(kind: str, at: int, lasts: int, *, questions: bool) -> Fault:
    return Fault(kind=kind, at=at, lasts=lasts, questions=questions)


@pytest.mark.parametrize(
    "faults",
    [
        # The brain was emptied between the proof of its index and the repetition of a retrieval,
        # which came out as empty as an outage before had made it.
        pytest.param(
            (
                _fault("restarted", 7, 2, questions=True),
                _fault("recreated", 11, 1, questions=False),
            ),
            id="emptied before the repetition",
        ),
        # Of a question that nothing answers no document is known: what questions find was never
        # looked at, only what filters do.
        pytest.param(
            (
                _fault("restarted", 13, 20, questions=True),
                _fault("twice", 26, 1, questions=True),
            ),
            id="lost to questions alone",
        ),
    ],
)
async def test_an_outage_that_confirmed_itself_is_no_score(
    tmp_path: Path, faults: tuple[Fault, ...]
) -> None:
    """Two of 20,000 draws: one failed each time, the other one time in three."""
    dataset = write_dataset(tmp_path)
    for _ in range(8):
        result = await run(Drawn(faults, "ask-basic", 1), dataset, tmp_path)
        assert not false_scores(result)


async def test_the_check_sees_a_harness_that_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without proofs and repetitions the same faults do become scores."""
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
