"""Runs that asked the same questions in the same way, and how their SDKs compare."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memconform.errors import UsageError
from memconform.parity.comparison import Method, compare_runs
from memconform.parity.ladder import Divergence, first_difference
from memconform.parity.loaded_runs import LoadedRun, aligned, require_comparable
from memconform.parity.records import ParityReport
from memconform.parity.run_diff import DiffReport, diff_runs
from memconform.runs.results import QuestionResult

NOBODY = -1

_METHOD = Method(resamples=1_000)
"""A report shows no interval of mean scores, which is all that resampling decides: 10,000 resamples
of 10,000 questions take longer than everything else."""


@dataclass(frozen=True, slots=True)
class PairDivergence:
    """Where two of a group's current runs first differ on one question."""

    first: int
    second: int
    divergence: Divergence


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One question's results in the current runs of a group."""

    results: tuple[QuestionResult, ...]
    divergences: tuple[PairDivergence, ...]
    """Of each pair of runs that both measured it and differ."""
    odd: int
    """The run that differs from all others, which agree; `NOBODY` if there is none."""


@dataclass(slots=True)
class RunGroup:
    """Comparable runs."""

    runs: list[LoadedRun]
    """All of them, earliest first."""
    current: list[LoadedRun] = field(default_factory=list)
    """The last run of each SDK, by name."""
    parity: ParityReport | None = None
    """Of the current runs; None if there is one, or they cannot be compared."""
    not_compared: str = ""
    """Why there is no `parity` of several runs."""
    baselines: dict[str, LoadedRun] = field(default_factory=dict)
    """By SDK, the run that the current one is compared with."""
    changes: dict[str, DiffReport] = field(default_factory=dict)
    """By SDK, what changed since its baseline."""
    odd: Counter[str] = field(default_factory=Counter)
    """By SDK, the number of questions on which it differs from all others, which agree."""
    differing: int = 0
    """Questions on which at least two runs differ."""

    @property
    def name(self) -> str:
        """The dataset, the scenario and the mode."""
        summary = self.runs[-1].summary
        return f"{summary.dataset}, {summary.scenario}, {summary.mode}"

    def read_rows(self, take: Callable[[QuestionRow], None]) -> None:
        """Read every question of the current runs once, and compare the runs on the way.

        Raises:
            UsageError: if a file contradicts itself or lacks questions (`result_unreadable`,
                `unlike_runs`).
        """

        def add(results: tuple[QuestionResult, ...]) -> None:
            row = question_row(results)
            self.differing += bool(row.divergences)
            if row.odd != NOBODY:
                self.odd[self.current[row.odd].name] += 1
            take(row)

        if len(self.current) > 1:
            self.parity = compare_runs(self.current, _METHOD, on_row=add)
        else:
            for results in aligned(self.current):
                add(results)


def question_row(results: tuple[QuestionResult, ...]) -> QuestionRow:
    """Compare one question's results in several runs."""
    measured = [index for index, result in enumerate(results) if result.verdict.measured]
    divergences = tuple(
        PairDivergence(first, second, divergence)
        for position, first in enumerate(measured)
        for second in measured[position + 1 :]
        if (divergence := first_difference(results[first], results[second])) is not None
    )
    return QuestionRow(results, divergences, _odd_one_out(measured, divergences))


def _odd_one_out(measured: Sequence[int], divergences: Sequence[PairDivergence]) -> int:
    """The run that differs from every other, if these agree; it takes three to say so."""
    if len(measured) < 3 or not divergences:
        return NOBODY
    for run in measured:
        if all(run in (pair.first, pair.second) for pair in divergences):
            return run if len(divergences) == len(measured) - 1 else NOBODY
    return NOBODY


def group_runs(runs: Sequence[LoadedRun], baselines: Sequence[LoadedRun]) -> list[RunGroup]:
    """Group runs that can be compared, and find each SDK's baseline.

    The latest run of each SDK is current; earlier ones are history. A baseline belongs to the
    groups with the same dataset name, scenario and mode.
    """
    groups: list[RunGroup] = []
    for run in sorted(runs, key=lambda run: (run.summary.started_at, run.summary.run_id)):
        group = next((group for group in groups if _comparable(group.runs[0], run)), None)
        if group is None:
            groups.append(group := RunGroup([]))
        group.runs.append(run)
    for group in groups:
        latest = {run.summary.sdk: run for run in group.runs}
        group.current = [
            LoadedRun(sdk, latest[sdk].path, latest[sdk].summary) for sdk in sorted(latest)
        ]
        group.baselines = {
            run.name: baseline
            for run in group.current
            if (baseline := _baseline(run, baselines)) is not None
        }
    return sorted(groups, key=lambda group: group.name)


def compare_with_baselines(group: RunGroup) -> None:
    """Find what changed since the baselines.

    Raises:
        UsageError: if a baseline's settings differ from the run's (`unlike_runs`).
    """
    for run in group.current:
        if (baseline := group.baselines.get(run.name)) is not None:
            group.changes[run.name] = diff_runs(baseline, run)


def _comparable(one: LoadedRun, other: LoadedRun) -> bool:
    try:
        require_comparable([one, other])
    except UsageError:
        return False
    return True


def _baseline(run: LoadedRun, baselines: Sequence[LoadedRun]) -> LoadedRun | None:
    """The latest of the baselines that ran the same; the run itself is none."""
    same = [
        baseline
        for baseline in baselines
        if baseline.summary.sdk == run.summary.sdk
        and baseline.summary.run_id != run.summary.run_id
        and all(
            getattr(baseline.summary, key) == getattr(run.summary, key)
            for key in ("dataset", "scenario", "mode")
        )
    ]
    return max(same, key=lambda baseline: baseline.summary.started_at, default=None)
