"""Runs that asked the same questions in the same way, and how their SDKs compare."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from memconform.errors import UsageError
from memconform.reports.overview.rate_checks import RateCheck
from memconform.results.comparison import Method, compare_runs
from memconform.results.divergence import Divergence, first_difference
from memconform.results.loaded_runs import (
    COMPARED_SETTINGS,
    LoadedRun,
    aligned,
    require_comparable,
)
from memconform.results.records import ParityReport
from memconform.results.run_diff import DiffReport, diff_runs
from memconform.runs.results import QuestionResult

NOBODY = -1

_METHOD = Method(resamples=1_000)
"""A report shows no interval of mean scores, which is all that resampling decides: 10,000 resamples
of 10,000 questions take longer than everything else."""

_NAMED = ("dataset", "scenario", "mode")
"""Settings that are in every group's name."""
_LONGEST_SETTING = 40


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
    """One for each pair of runs that both measured it and differ."""
    outlier: int
    """The run that differs from all others, which agree; `NOBODY` if there is none."""


@dataclass(slots=True)
class RunGroup:
    """Runs each of which can be compared with every other."""

    runs: list[LoadedRun]
    """All of them, earliest first."""
    name: str = ""
    """Dataset, scenario and mode, and the settings in which groups of that name differ."""
    current: list[LoadedRun] = field(default_factory=list)
    """The last run of each SDK, by name."""
    parity: ParityReport | None = None
    """Compares the current runs; None if there is only one, and before the rows are read."""
    baselines: dict[str, LoadedRun] = field(default_factory=dict)
    """By SDK, the run that the current one is compared with."""
    changes: dict[str, DiffReport] = field(default_factory=dict)
    """By SDK, what changed since its baseline."""
    outliers: Counter[str] = field(default_factory=Counter)
    """By SDK, the number of questions on which it differs from all others, which agree."""
    differing: int = 0
    """Questions on which at least two runs differ."""

    @property
    def is_control(self) -> bool:
        """Whether these are controls, which are shown, and neither compared nor failures."""
        return self.runs[0].is_control

    @property
    def key(self) -> str:
        """What decides whether a run belongs here, as a word for addresses: the same in every
        report, whatever else is in it."""
        settings = self.runs[0].summary.provenance.settings
        deciding = (*COMPARED_SETTINGS, "method")
        parts = {key: settings.get(key) for key in deciding if key != "variables"}
        text = json.dumps([_names(self), parts], sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:10]

    def read_rows(self, take: Callable[[QuestionRow], None]) -> None:
        """Read every question of the current runs once, and compare the runs on the way.

        Raises:
            UsageError: if a file contradicts itself or lacks questions (`result_unreadable`,
                `unlike_runs`).
        """
        checks = [RateCheck(run) for run in self.current]

        def add(results: tuple[QuestionResult, ...]) -> None:
            for check, result in zip(checks, results, strict=True):
                check.add(result)
            row = QuestionRow(results, (), NOBODY) if self.is_control else question_row(results)
            self.differing += bool(row.divergences)
            if row.outlier != NOBODY:
                self.outliers[self.current[row.outlier].name] += 1
            take(row)

        if len(self.current) > 1 and not self.is_control:
            self.parity = compare_runs(self.current, _METHOD, on_row=add)
        else:
            for results in aligned(self.current):
                add(results)
        for check in checks:
            check.require_consistent()
        current = {run.summary.run_id for run in self.current}
        for run in self.runs:
            if run.summary.run_id not in current:
                validate(run)


def validate(run: LoadedRun) -> None:
    """Read a run whose questions nobody needs.

    Raises:
        UsageError: if its file contradicts itself (`result_unreadable`, `unlike_runs`).
    """
    check = RateCheck(run)
    for question in run.questions():
        check.add(question)
    check.require_consistent()


def question_row(results: tuple[QuestionResult, ...]) -> QuestionRow:
    """Compare one question's results in several runs."""
    measured = [index for index, result in enumerate(results) if result.verdict.measured]
    divergences = tuple(
        PairDivergence(first, second, divergence)
        for position, first in enumerate(measured)
        for second in measured[position + 1 :]
        if (divergence := first_difference(results[first], results[second])) is not None
    )
    return QuestionRow(results, divergences, _outlier(measured, divergences))


def _outlier(measured: Sequence[int], divergences: Sequence[PairDivergence]) -> int:
    """The run that differs from every other, if these agree; it takes three to say so."""
    if len(measured) < 3 or len(divergences) != len(measured) - 1:
        return NOBODY
    return next(
        (run for run in measured if all(run in (pair.first, pair.second) for pair in divergences)),
        NOBODY,
    )


def group_runs(runs: Sequence[LoadedRun], baselines: Sequence[LoadedRun]) -> list[RunGroup]:
    """Group runs that can be compared, and find each SDK's baseline.

    The latest run of each SDK is current; earlier ones are history.

    Raises:
        UsageError: if baselines of the same SDK, dataset, scenario and mode exist, and none can be
            compared with the run (`unlike_runs`).
    """
    groups: list[RunGroup] = []
    for run in sorted(runs, key=lambda run: (run.summary.started_at, run.summary.run_id)):
        # Each with each: runs of two SDKs may be comparable with a third one's, and not with each
        # other, because only variables that both know are compared.
        group = next((g for g in groups if all(_comparable(own, run) for own in g.runs)), None)
        if group is None:
            groups.append(group := RunGroup([]))
        group.runs.append(run)
    for group in groups:
        latest = {run.summary.sdk: run for run in group.runs}
        group.current = [replace(latest[sdk], name=sdk) for sdk in sorted(latest)]
        group.baselines = {
            run.name: baseline
            for run in group.current
            if not group.is_control and (baseline := _baseline(run, baselines)) is not None
        }
    for group in groups:
        group.name = _name(group, [other for other in groups if _names(other) == _names(group)])
    return sorted(groups, key=lambda group: group.name)


def compare_with_baselines(group: RunGroup) -> None:
    """Find what changed since the baselines; raises UsageError as `diff_runs` does."""
    for run in group.current:
        if (baseline := group.baselines.get(run.name)) is not None:
            group.changes[run.name] = diff_runs(baseline, run)


def _names(group: RunGroup) -> tuple[str, ...]:
    names = tuple(str(getattr(group.runs[0].summary, key)) for key in _NAMED)
    return (*names, "controls") if group.is_control else names


def _name(group: RunGroup, namesakes: Sequence[RunGroup]) -> str:
    """The group's name, which no other group has unless only their order tells them apart."""
    tables = [g.runs[0].summary.provenance.settings for g in namesakes]
    own = group.runs[0].summary.provenance.settings
    differing = [
        key
        for key in COMPARED_SETTINGS
        if key not in (*_NAMED, "dataset_sha256")
        and any(t.get(key) != own.get(key) for t in tables)
    ]
    parts = list(_names(group))
    for key in differing:
        value = "default" if own.get(key) is None else str(own[key])
        parts.append(f"{key.replace('_', ' ')} {value}"[:_LONGEST_SETTING])
    if len(namesakes) > 1 and not differing:
        parts.append(f"{namesakes.index(group) + 1}")
    return ", ".join(parts)


def _comparable(one: LoadedRun, other: LoadedRun) -> bool:
    if one.is_control != other.is_control:
        return False
    try:
        require_comparable([one, other])
    except UsageError:
        return False
    # Of one verb, only what was made in the same way is history, or stands side by side.
    methods = [run.summary.provenance.settings.get("method") for run in (one, other)]
    verbs = [method.get("verb") if isinstance(method, dict) else None for method in methods]
    return methods[0] == methods[1] or verbs[0] != verbs[1]


def _baseline(run: LoadedRun, baselines: Sequence[LoadedRun]) -> LoadedRun | None:
    """The latest earlier baseline that can be compared with a run.

    None if no baseline is of the same SDK, dataset, scenario and mode.
    """
    same = [
        baseline
        for baseline in baselines
        if baseline.summary.sdk == run.summary.sdk
        and all(getattr(baseline.summary, k) == getattr(run.summary, k) for k in _NAMED)
    ]
    earlier = [b for b in same if b.summary.started_at < run.summary.started_at]
    fault: UsageError | None = None
    for baseline in sorted(earlier, key=lambda b: b.summary.started_at, reverse=True):
        shas = [r.summary.provenance.settings.get("dataset_sha256") for r in (baseline, run)]
        try:
            require_comparable([baseline, run], selections=shas[0] == shas[1])
        except UsageError as error:
            fault = fault or error
        else:
            return baseline
    if fault is not None:
        raise fault
    if same and not earlier and any(b.summary.run_id != run.summary.run_id for b in same):
        raise UsageError(
            f"no baseline of {run.name!r} is earlier than its run {run.summary.run_id}",
            code="unlike_runs",
            hint="give earlier results as --baseline",
        )
    return None
