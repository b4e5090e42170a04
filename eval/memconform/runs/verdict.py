"""The one place where counts become a verdict: banner, JSON and exit code all read it here."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memconform.errors import ExitCode, gravest
from memconform.records import Incident
from memconform.runs.plan import Floor
from memconform.runs.results import FloorResult, QuestionResult
from memconform.scoring.statuses import QuestionStatus


@dataclass(slots=True)
class _Group:
    total: int = 0
    passed: int = 0
    unmeasured: int = 0

    def add(self, result: QuestionResult) -> None:
        self.total += 1
        self.passed += result.passed
        self.unmeasured += not result.verdict.measured


@dataclass(slots=True)
class Tally:
    """Counts of a run, kept as its questions end."""

    tags: frozenset[str] = frozenset()
    """Tags that have a floor of their own."""
    counts: Counter[QuestionStatus] = field(default_factory=Counter)
    score_sum: float = 0.0
    unstable: int = 0
    _groups: dict[str | None, _Group] = field(default_factory=dict)

    def add(self, result: QuestionResult) -> None:
        self.counts[result.verdict] += 1
        if not result.verdict.expected:
            return
        self.score_sum += result.score or 0.0
        self.unstable += len({attempt.verdict for attempt in result.attempts}) > 1
        for key in (None, *self.tags.intersection(result.tags)):
            self._groups.setdefault(key, _Group()).add(result)

    def group(self, tag: str | None) -> _Group:
        return self._groups.get(tag, _Group())

    @property
    def total(self) -> int:
        return self.group(None).total

    @property
    def passed(self) -> int:
        return self.group(None).passed

    @property
    def measured(self) -> int:
        return self.total - self.group(None).unmeasured


@dataclass(frozen=True, slots=True)
class Conclusion:
    exit_code: ExitCode
    reasons: tuple[str, ...]
    """Why the code is not OK, and what a passing run should still not hide."""
    floors: tuple[FloorResult, ...]


def conclude(tally: Tally, floors: Sequence[Floor], incident: Incident | None) -> Conclusion:
    """Counts, floors and what went wrong → the exit code and the reasons for it.

    A floor is *missed* (exit 1) only where it would be missed even if every unmeasured question
    had passed. Where the unmeasured ones decide, nothing is known, and the exit code is that of
    a daemon that failed (3): an outage is no low score.
    """
    results = tuple(_hold(tally, floor) for floor in floors)
    codes: list[ExitCode] = []
    reasons: list[str] = []
    if incident is not None:
        codes.append(ExitCode(incident.exit_code))
        reasons.append(f"{incident.code}: {incident.message}")
    if tally.total == 0:
        codes.append(ExitCode.NOTHING_SELECTED)
        reasons.append("no selected question applies to this scenario")
    if tally.total and not tally.measured:
        codes.append(ExitCode.DAEMON)
        reasons.append("nothing was measured")
    # What an incident ended is no pass rate, and so neither above nor below a floor.
    for result in () if incident else results:
        name = "pass rate" if result.tag is None else f"pass rate of tag {result.tag}"
        if result.total == 0:
            if result.tag is not None:
                codes.append(ExitCode.NOTHING_SELECTED)
                reasons.append(f"a floor is set for tag {result.tag}, but no question has it")
        elif result.best_rate < result.floor:
            codes.append(ExitCode.FAILED)
            reasons.append(f"{name} {result.rate:.3f} is below the floor {result.floor:.3f}")
        elif not result.held:
            codes.append(ExitCode.DAEMON)
            reasons.append(
                f"{name} is not known: {result.passed} of {result.total} passed, and the"
                f" unmeasured questions decide whether the floor {result.floor:.3f} holds"
            )
    unmeasured = tally.total - tally.measured
    if unmeasured:
        what = ", ".join(_named(tally.counts))
        reasons.append(f"{unmeasured} of {tally.total} questions were not measured: {what}")
    return Conclusion(gravest(codes), tuple(reasons), results)


def _hold(tally: Tally, floor: Floor) -> FloorResult:
    group = tally.group(floor.tag)
    total = max(group.total, 1)
    rate = group.passed / total
    return FloorResult(
        tag=floor.tag,
        floor=floor.rate,
        passed=group.passed,
        total=group.total,
        rate=rate,
        best_rate=(group.passed + group.unmeasured) / total,
        held=group.total > 0 and rate >= floor.rate,
    )


def _named(counts: Counter[QuestionStatus]) -> Iterable[str]:
    return (
        f"{counts[verdict]} {verdict.value}"
        for verdict in QuestionStatus
        if counts[verdict] and verdict.expected and not verdict.measured
    )
