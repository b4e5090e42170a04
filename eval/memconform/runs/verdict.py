"""Turns counts into a verdict; banner, JSON and exit code all use this one."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memconform.datasets.sharding import ShardRecord
from memconform.errors import ExitCode, gravest
from memconform.records import Incident
from memconform.runs.plan import Floor
from memconform.runs.results import FloorResult, QuestionResult
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.clusters import clustered_wilson
from memconform.stats.intervals import Interval, wilson
from memconform.stats.stored_figures import ExactMean


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
    """Running counts over the questions of a run."""

    tags: frozenset[str] = frozenset()
    """Tags that have their own floor."""
    counts: Counter[QuestionStatus] = field(default_factory=Counter)
    score: ExactMean = field(default_factory=ExactMean)
    """The mean score of the measured questions."""
    unstable: int = 0
    _groups: dict[str | None, _Group] = field(default_factory=dict)
    _clusters: dict[str, _Group] = field(default_factory=dict)

    def add(self, result: QuestionResult) -> None:
        """Count a question."""
        self.counts[result.verdict] += 1
        if not result.verdict.expected:
            return
        if result.score is not None:
            self.score.add(result.score)
        self.unstable += len({attempt.verdict for attempt in result.attempts}) > 1
        for key in (None, *self.tags.intersection(result.tags)):
            self._groups.setdefault(key, _Group()).add(result)
        if result.cluster is not None:
            self._clusters.setdefault(result.cluster, _Group()).add(result)

    def group(self, tag: str | None) -> _Group:
        """The counts of all questions (None), or of those with a tag."""
        return self._groups.get(tag, _Group())

    def interval(self) -> Interval:
        """The 95 % interval of the pass rate: Wilson's, by clusters where questions share them."""
        shared = [(group.passed, group.total) for group in self._clusters.values()]
        passed, total = (sum(column) for column in zip((0, 0), *shared, strict=True))
        if total == len(shared):
            return wilson(self.passed, self.total)
        alone = self.total - total
        passes = self.passed - passed
        return clustered_wilson([*shared, *[(1, 1)] * passes, *[(0, 1)] * (alone - passes)])[0]

    @property
    def total(self) -> int:
        """Number of questions, without those not applicable."""
        return self.group(None).total

    @property
    def passed(self) -> int:
        """Number of questions that passed."""
        return self.group(None).passed

    @property
    def measured(self) -> int:
        """Number of questions with a score."""
        return self.total - self.group(None).unmeasured


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict on a run."""

    exit_code: ExitCode
    reasons: tuple[str, ...]
    """Why the exit code is not OK, and notices that apply to a passing run too."""
    floors: tuple[FloorResult, ...]


def conclude(
    tally: Tally,
    floors: Sequence[Floor],
    incident: Incident | None,
    shard: ShardRecord | None = None,
) -> Conclusion:
    """Derive the exit code, and the reasons for it, from counts, floors and an incident.

    A shard decides on no floor: it may miss one that all of them together hold.

    A floor is *missed* (exit 1) only if it would be missed even with every unmeasured question
    passed. If the unmeasured questions decide, the outcome is unknown and the exit code is that of
    a failed daemon (3), because an outage is not a low score.
    """
    results = () if shard else tuple(check_floor(tally, floor) for floor in floors)
    codes: list[ExitCode] = []
    reasons: list[str] = []
    if incident is not None:
        codes.append(ExitCode(incident.exit_code))
        reasons.append(f"{incident.code}: {incident.message}")
    if shard is not None:
        reasons.append(f"{shard.label()}: no floor is decided before `memconform merge`")
    elif tally.total == 0:
        codes.append(ExitCode.NOTHING_SELECTED)
        reasons.append("no selected question applies to this scenario")
    if tally.total and not tally.measured and incident is None:
        codes.append(ExitCode.DAEMON)
        reasons.append("nothing was measured")
    # A run that an incident ended has no pass rate to compare with a floor.
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
                f"{name} is unknown: {result.passed} of {result.total} passed, and the unmeasured"
                f" questions decide whether the floor {result.floor:.3f} is held"
            )
    unmeasured = tally.total - tally.measured
    if unmeasured:
        statuses = ", ".join(unmeasured_counts(tally.counts))
        reasons.append(f"{unmeasured} of {tally.total} questions were not measured: {statuses}")
    return Conclusion(gravest(codes), tuple(reasons), results)


def check_floor(tally: Tally, floor: Floor) -> FloorResult:
    """Whether a floor is held, by the questions that were counted."""
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


def unmeasured_counts(counts: Mapping[QuestionStatus, int]) -> Iterable[str]:
    """How many questions ended in each status without a score, such as `3 timeout`."""
    return (
        f"{counts[verdict]} {verdict.value}"
        for verdict in QuestionStatus
        if counts.get(verdict) and verdict.expected and not verdict.measured
    )
