"""Changes between an earlier and a later run: regressions, fixes and latency."""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from math import log
from typing import Literal

from pydantic import Field

from memconform.records import Record
from memconform.results.divergence import first_difference
from memconform.results.loaded_runs import LoadedRun, incident_lines, require_comparable
from memconform.runs.results import QuestionResult
from memconform.stats.intervals import LEAST_CLUSTERS
from memconform.stats.latency_ratio import LatencyRatio, latency_ratio
from memconform.stats.paired_comparison import Counts, PairedComparison, compare_pairs

DIFF_SCHEMA: Literal["memconform/diff-report@1"] = "memconform/diff-report@1"
_TIMINGS = ("done", "first_event", "first_delta")


class DiffReport(Record):
    """The document that `diff --json` writes; its lists contain question ids."""

    schema_version: Literal["memconform/diff-report@1"] = DIFF_SCHEMA
    first: str
    second: str
    exit_code: int
    contrast: PairedComparison
    regressions: list[str]
    """Questions that only the first run passes."""
    fixes: list[str]
    """Questions that only the second run passes."""
    new: list[str]
    removed: list[str]
    not_measured: list[str]
    """Questions in both runs that at least one did not measure: neither regression nor fix."""
    unstable: list[str]
    """Questions whose attempts (`--repeat`) did not all have the same verdict."""
    incidents: list[str] = Field(default_factory=list)
    """Why a run's scores are not compared, one line for each run that an incident ended."""
    latency: dict[str, LatencyRatio]
    """By `done`, `first_event` and `first_delta`, if both runs have it on at least ten questions;
    a bootstrap of fewer is unreliable."""


def diff_runs(
    one: LoadedRun,
    other: LoadedRun,
    *,
    seed: int = 0,
    on_row: Callable[[], None] = lambda: None,
) -> DiffReport:
    """Compare each question of an earlier run with the same question of a later one.

    If the dataset has changed in between, questions may be new or removed. `on_row` is called for
    each question.

    Raises:
        UsageError: if the runs differ in settings, or asked different questions of the same dataset
            (`unlike_runs`).
    """
    datasets = [run.summary.provenance.settings.get("dataset_sha256") for run in (one, other)]
    require_comparable([one, other], selections=datasets[0] == datasets[1])
    counts = Counts()
    ids: dict[str, list[str]] = {
        name: [] for name in ("regressions", "fixes", "new", "not_measured", "unstable")
    }
    ratios: dict[str, list[float]] = {name: [] for name in _TIMINGS}
    removed: list[str] = []
    for earlier, question in _paired(one, other):
        on_row()
        if question is None:
            removed += [earlier.id] if earlier is not None else []
            continue
        if _is_unstable(question) or (earlier is not None and _is_unstable(earlier)):
            ids["unstable"].append(question.id)
        if earlier is None:
            ids["new"].append(question.id)
        elif not (earlier.verdict.measured and question.verdict.measured):
            counts.same = False
            ids["not_measured"].append(question.id)
        else:
            cluster = question.cluster or earlier.cluster
            counts.add(first=earlier.passed, second=question.passed, cluster=cluster)
            counts.same = counts.same and first_difference(earlier, question) is None
            if earlier.passed != question.passed:
                ids["regressions" if earlier.passed else "fixes"].append(question.id)
            _add_ratios(ratios, earlier, question)
    counts.same = counts.same and not ids["new"] and not removed
    [comparison] = compare_pairs([counts])
    latency = {
        name: latency_ratio(values, seed)
        for name, values in ratios.items()
        if len(values) >= LEAST_CLUSTERS
    }
    return DiffReport(
        first=one.summary.run_id,
        second=other.summary.run_id,
        exit_code=0,
        contrast=comparison,
        incidents=incident_lines((one, other)),
        removed=removed,
        latency=latency,
        **ids,
    )


def _paired(
    one: LoadedRun, other: LoadedRun
) -> Iterator[tuple[QuestionResult | None, QuestionResult | None]]:
    """Pair the expected questions of both runs by id and text; unmatched ones come last.

    The files are read in parallel, and only questions that the other file has not reached yet are
    in memory. Two runs of 100,000 questions took 980 MiB when the first was held whole.
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
            pair_by_id = (match, question) if side else (question, match)
            if question.question == match.question or not (question.question and match.question):
                yield pair_by_id
            else:
                # A different question reuses the id: one was removed, the other is new.
                yield pair_by_id[0], None
                yield None, pair_by_id[1]
    for question in waiting[0].values():
        yield question, None
    for question in waiting[1].values():
        yield None, question


def _expected(run: LoadedRun) -> Iterator[QuestionResult]:
    return (question for question in run.questions() if question.verdict.expected)


def _is_unstable(question: QuestionResult) -> bool:
    return len({attempt.verdict for attempt in question.attempts}) > 1


def _add_ratios(ratios: dict[str, list[float]], one: QuestionResult, other: QuestionResult) -> None:
    if one.timings is None or other.timings is None:
        return
    for name, values in ratios.items():
        before, after = getattr(one.timings, name), getattr(other.timings, name)
        if before and after:
            values.append(log(after / before))
