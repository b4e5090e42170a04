"""What changed between two runs of one thing: yesterday's and today's."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from math import exp, log
from statistics import fmean
from typing import Literal

from pydantic import Field

from memconform.parity.ladder import first_difference
from memconform.parity.loaded_runs import LoadedRun, incident_lines, require_comparable
from memconform.parity.paired_comparison import Counts, compare_pairs
from memconform.parity.records import PairedComparison, RateInterval
from memconform.records import Record
from memconform.runs.results import QuestionResult
from memconform.stats.intervals import LEAST_CLUSTERS
from memconform.stats.resampling import mean_intervals

DIFF_SCHEMA: Literal["memconform/diff-report@1"] = "memconform/diff-report@1"
_TIMED = ("done", "first_event", "first_delta")


class LatencyRatio(Record):
    """The second run's latency over the first's, the geometric mean over questions."""

    questions: int
    ratio: RateInterval
    """With the paired bootstrap's interval, 95 %."""


class DiffReport(Record):
    """What `diff --json` writes; lists are of question ids."""

    schema_version: Literal["memconform/diff-report@1"] = DIFF_SCHEMA
    first: str
    second: str
    exit_code: int
    contrast: PairedComparison
    regressions: list[str]
    """Passed by the first run alone."""
    fixes: list[str]
    """Passed by the second alone."""
    new: list[str]
    removed: list[str]
    not_measured: list[str]
    """In both runs, and not measured on both: neither regression nor fix."""
    unstable: list[str]
    """Whose attempts, of a run with --repeat, did not all end alike."""
    incidents: list[str] = Field(default_factory=list)
    """Why a run has no score that the other's is compared with."""
    latency: dict[str, LatencyRatio]
    """By done, first_event and first_delta, where both have them on ten questions at least: a
    bootstrap of fewer knows too little."""


def diff_runs(one: LoadedRun, other: LoadedRun, *, seed: int = 0) -> DiffReport:
    """What became of each question; of another dataset questions may have come and gone.

    Raises:
        UsageError: where the runs asked in different ways, or different questions of one dataset.
    """
    datasets = [side.summary.provenance.settings.get("dataset_sha256") for side in (one, other)]
    require_comparable([one, other], selections=datasets[0] == datasets[1])
    counts = Counts()
    found: dict[str, list[str]] = {
        name: [] for name in ("regressions", "fixes", "new", "not_measured", "unstable")
    }
    ratios: dict[str, list[float]] = {name: [] for name in _TIMED}
    removed: list[str] = []
    for earlier, question in _paired(one, other):
        if question is None:
            removed += [earlier.id] if earlier is not None else []
            continue
        if _unstable(question) or (earlier is not None and _unstable(earlier)):
            found["unstable"].append(question.id)
        if earlier is None:
            found["new"].append(question.id)
        elif not (earlier.verdict.measured and question.verdict.measured):
            counts.same = False
            found["not_measured"].append(question.id)
        else:
            counts.add(first=earlier.passed, second=question.passed)
            counts.same = counts.same and first_difference(earlier, question) is None
            if earlier.passed != question.passed:
                found["regressions" if earlier.passed else "fixes"].append(question.id)
            _add_ratios(ratios, earlier, question)
    counts.same = counts.same and not found["new"] and not removed
    [contrast] = compare_pairs([counts])
    latency = {
        name: _ratio(values, seed)
        for name, values in ratios.items()
        if len(values) >= LEAST_CLUSTERS
    }
    return DiffReport(
        first=one.summary.run_id,
        second=other.summary.run_id,
        exit_code=0,
        contrast=contrast,
        incidents=incident_lines((one, other)),
        removed=removed,
        latency=latency,
        **found,
    )


def _paired(
    one: LoadedRun, other: LoadedRun
) -> Iterator[tuple[QuestionResult | None, QuestionResult | None]]:
    """Each expected question of both runs, by its id and text; those of one run alone at the end.

    Read side by side: only what the other run has not had yet is held. Two runs of 100,000
    questions took 980 MiB when the first of them was held whole.
    """
    waiting: tuple[dict[str, QuestionResult], dict[str, QuestionResult]] = ({}, {})
    for pair in zip_longest(_expected(one), _expected(other)):
        for side, question in enumerate(pair):
            if question is None:
                continue
            if question.id not in waiting[1 - side]:
                waiting[side][question.id] = question
                continue
            match = waiting[1 - side].pop(question.id)
            found = (match, question) if side else (question, match)
            if question.question == match.question:
                yield found
            else:
                # Another question under an old id: removed, and new.
                yield found[0], None
                yield None, found[1]
    for question in waiting[0].values():
        yield question, None
    for question in waiting[1].values():
        yield None, question


def _expected(side: LoadedRun) -> Iterator[QuestionResult]:
    return (question for question in side.questions() if question.verdict.expected)


def _unstable(question: QuestionResult) -> bool:
    return len({attempt.verdict for attempt in question.attempts}) > 1


def _add_ratios(ratios: dict[str, list[float]], one: QuestionResult, other: QuestionResult) -> None:
    if one.timings is None or other.timings is None:
        return
    for name, values in ratios.items():
        was, became = getattr(one.timings, name), getattr(other.timings, name)
        if was and became:
            values.append(log(became / was))


def _ratio(logs: Iterable[float], seed: int) -> LatencyRatio:
    values = list(logs)
    [(low, high)] = mean_intervals([values], seed=seed)
    mean = RateInterval(value=exp(fmean(values)), low=exp(low), high=exp(high))
    return LatencyRatio(questions=len(values), ratio=mean)
