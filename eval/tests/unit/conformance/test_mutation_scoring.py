"""What becomes of cases that a busy machine cuts short while mutants are scored. No daemon runs."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from memconform.concurrency import Slots
from memconform.conformance.case_runner import CaseRun, skipped_case
from memconform.conformance.catalog import CaseVariant, catalog
from memconform.conformance.mutation.mutant_table import mutants
from memconform.conformance.mutation.results import Fate
from memconform.conformance.mutation.score import MutantFinished, ScoringFinished, score
from memconform.conformance.results import Result, SdkResult
from memconform.conformance.suite import CaseFinished, Event, SdkFinished
from memconform.daemons.discovery import find_runner
from tests.conftest import CHECKOUT

MUTANTS = [mutant for mutant in mutants() if mutant.mutation.source][:2]
CITING = [next(entry for entry in catalog() if mutant.concerns(entry)) for mutant in MUTANTS]
OTHER = next(entry for entry in catalog() if not any(m.concerns(entry) for m in MUTANTS))

Outcome = Callable[[str, CaseVariant, int], Result | None]
"""The result of a case by folder, case and how often it was run there; None: the daemon is lost."""


class _Conform:
    """In place of `conform`: results as a test says, and how many ran at once."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._running = 0
        self.runs: Counter[tuple[str, str]] = Counter()
        self.beside: dict[tuple[str, str], int] = {}
        """How many others were running when a case was last run."""

    async def __call__(
        self,
        name: str,
        _make_runner: object,
        entries: Sequence[CaseVariant],
        *,
        folder: Path,
        slots: Slots,
        **_: object,
    ) -> AsyncIterator[Event]:
        problems = []
        async with slots:
            self._running += 1
            await asyncio.sleep(0)
            for entry in entries:
                run = folder.name.rpartition("-")[0] or folder.name, entry.id
                self.runs[run] += 1
                self.beside[run] = self._running - 1
                result = self._outcome(*run[:1], entry, self.runs[run])
                if result is None:
                    problems.append("it was lost")
                    break
                yield CaseFinished(name, CaseRun(skipped_case(entry, result, "late"), []))
            self._running -= 1
        yield SdkFinished(
            SdkResult(sdk=name, profiles=[], modes=[], cases=[], problems=problems, took_s=0)
        )


async def _scored(
    conform: _Conform, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> tuple[list[MutantFinished], ScoringFinished]:
    monkeypatch.setattr("memconform.conformance.mutation.score.conform", conform)
    entries = [*CITING, OTHER]
    scoring = score(lambda: find_runner("py", CHECKOUT), MUTANTS, entries, folder=folder, daemons=4)
    events = [event async for event in scoring]
    last = events[-1]
    assert isinstance(last, ScoringFinished)
    return [event for event in events if isinstance(event, MutantFinished)], last


@pytest.mark.parametrize("cut_short", [CITING[0], OTHER], ids=["citing", "other"])
async def test_a_case_that_is_cut_short_beside_others_is_repeated_alone(
    cut_short: CaseVariant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A mutant was untestable in CI, because its case took 67 s beside other tests."""

    def outcome(folder: str, entry: CaseVariant, run: int) -> Result:
        is_late = entry is cut_short and run == 1 and folder != "good"
        return Result.UNTESTABLE if is_late else Result.PASS

    conform = _Conform(outcome)
    finished, last = await _scored(conform, monkeypatch, tmp_path)
    assert [event.result.fate for event in finished] == [Fate.SURVIVED] * 2
    assert {event.result.cases for event in finished} == {3}
    assert last.alarms == ()
    for mutant in MUTANTS:
        assert conform.runs[mutant.id, cut_short.id] == 2
        assert conform.beside[mutant.id, cut_short.id] == 0
    assert set(conform.runs.values()) == {1, 2}


async def test_a_case_that_is_cut_short_twice_makes_a_mutant_untestable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def outcome(folder: str, entry: CaseVariant, run: int) -> Result:
        del run
        is_late = entry is OTHER and folder == MUTANTS[0].id
        return Result.UNTESTABLE if is_late else Result.PASS

    conform = _Conform(outcome)
    finished, _ = await _scored(conform, monkeypatch, tmp_path)
    fates = {event.result.id: event.result.fate for event in finished}
    assert fates == {MUTANTS[0].id: Fate.UNTESTABLE, MUTANTS[1].id: Fate.SURVIVED}
    assert conform.runs[MUTANTS[0].id, OTHER.id] == 2


@pytest.mark.parametrize(
    ("first", "second", "alarm"),
    [
        (Result.UNTESTABLE, Result.PASS, None),
        (Result.FAIL, Result.PASS, None),
        (None, Result.PASS, None),
        (Result.FAIL, Result.FAIL, "fail"),
        # What failed first says more than what could not be tested then.
        (Result.FAIL, Result.UNTESTABLE, "fail"),
        (Result.UNTESTABLE, Result.UNTESTABLE, "untestable"),
        (None, None, "untestable"),
    ],
)
async def test_what_fails_on_the_unmodified_daemon_is_repeated_before_it_is_an_alarm(
    first: Result | None,
    second: Result | None,
    alarm: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def outcome(folder: str, entry: CaseVariant, run: int) -> Result | None:
        del run
        if entry is not CITING[0]:
            return Result.PASS
        return {"good": first, "again": second}.get(folder, Result.PASS)

    conform = _Conform(outcome)
    finished, last = await _scored(conform, monkeypatch, tmp_path)
    assert {each.result for each in last.alarms} == ({alarm} if alarm else set())
    assert conform.runs["again", CITING[0].id] == 1
    fates = {event.result.id: event.result.fate for event in finished}
    assert fates[MUTANTS[0].id] is (Fate.UNTESTABLE if alarm else Fate.SURVIVED)
