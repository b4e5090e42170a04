"""Pairwise comparison of runs of the same questions: verdicts, rankings, stages of divergence."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isnan
from statistics import fmean

from memconform.errors import ExitCode, UsageError, gravest
from memconform.results.divergence import (
    Stage,
    first_difference,
    keys,
    largest_gap,
    ranking_difference,
)
from memconform.results.loaded_runs import LoadedRun, aligned, incident_lines, require_comparable
from memconform.results.records import (
    ComparedRun,
    DivergentQuestion,
    Pair,
    ParityReport,
    Rankings,
    Shapes,
)
from memconform.runs.results import QuestionResult
from memconform.stats.bootstrap import mean_intervals
from memconform.stats.clusters import cluster_totals, clustered_mean
from memconform.stats.paired_comparison import (
    ALPHA,
    MARGIN,
    Counts,
    PairedComparison,
    ParityVerdict,
    RateInterval,
    compare_pairs,
)
from memconform.stats.rankings import jaccard, kendall_tau_b, overlap_at, rbo

_SHOWN = 5
"""The number of questions per stage, and of lines of shape differences, in a report."""


@dataclass(frozen=True, slots=True)
class Method:
    """Parameters of a comparison: equivalence margin, significance level and bootstrap."""

    margin: float = MARGIN
    alpha: float = ALPHA
    seed: int = 0
    resamples: int = 10_000


@dataclass(slots=True)
class _RankingTally:
    compared: int = 0
    equal: int = 0
    largest: float = 0.0
    earlier: int = 0
    later: int = 0
    overlaps: list[float] = field(default_factory=list)
    jaccards: list[float] = field(default_factory=list)
    rbos: list[float] = field(default_factory=list)
    taus: list[float] = field(default_factory=list)

    def add(self, one: QuestionResult, other: QuestionResult) -> None:
        if not (one.has_retrieval and other.has_retrieval):
            return
        ours, theirs = keys(one, other)
        self.compared += 1
        self.equal += ranking_difference(one, other) is None
        if ours == theirs:
            pairs = list(zip(one.ranking, other.ranking, strict=True))
            self.largest = max(self.largest, largest_gap(pairs)[0])
        self.overlaps.append(overlap_at(ours, theirs, max(len(ours), len(theirs))))
        self.jaccards.append(jaccard(ours, theirs))
        self.rbos.append(rbo(ours, theirs))
        first_scores = dict(zip(ours, (c.score for c in one.ranking), strict=True))
        second_scores = dict(zip(theirs, (c.score for c in other.ranking), strict=True))
        if (tau := kendall_tau_b(first_scores, second_scores)) is not None:
            self.taus.append(tau)
        if one.seen is None or other.seen is None:
            return
        first, second = one.first_hit or float("inf"), other.first_hit or float("inf")
        self.earlier += second < first
        self.later += second > first

    def record(self) -> Rankings:
        return Rankings(
            compared=self.compared,
            equal=self.equal,
            largest_score_difference=self.largest,
            overlap=fmean(self.overlaps) if self.overlaps else 0.0,
            jaccard=fmean(self.jaccards) if self.jaccards else 0.0,
            rbo=fmean(self.rbos) if self.rbos else 0.0,
            kendall_tau_b=fmean(self.taus) if self.taus else None,
            first_hit_earlier=self.earlier,
            first_hit_later=self.later,
        )


@dataclass(slots=True)
class _ShapeTally:
    compared: int = 0
    equal: int = 0
    differences: dict[str, None] = field(default_factory=dict)

    def add(self, one: QuestionResult, other: QuestionResult) -> None:
        ours, theirs = ((r.seen.shape if r.seen else None) for r in (one, other))
        if ours is None or theirs is None:
            return
        self.compared += 1
        self.equal += ours == theirs
        if ours != theirs and len(self.differences) < _SHOWN:
            lines = [f"- {line}" for line in ours if line not in theirs]
            lines += [f"+ {line}" for line in theirs if line not in ours]
            self.differences |= dict.fromkeys(lines[: _SHOWN - len(self.differences)])

    def record(self) -> Shapes:
        return Shapes(compared=self.compared, equal=self.equal, differences=list(self.differences))


@dataclass(slots=True)
class _PairTally:
    first: str
    second: str
    counts: Counts = field(default_factory=Counts)
    unmeasured: list[int] = field(default_factory=lambda: [0, 0])
    answers_equal: int = 0
    stages: Counter[Stage] = field(default_factory=Counter)
    flips: Counter[Stage] = field(default_factory=Counter)
    divergent: dict[tuple[Stage, bool], list[DivergentQuestion]] = field(default_factory=dict)
    rankings: _RankingTally = field(default_factory=_RankingTally)
    shapes: _ShapeTally = field(default_factory=_ShapeTally)

    def add(self, one: QuestionResult, other: QuestionResult) -> float:
        """Count a question and return its score difference, NaN unless both runs measured it."""
        if not (one.verdict.measured and other.verdict.measured):
            self.counts.same = False
            self.unmeasured[0] += not one.verdict.measured
            self.unmeasured[1] += not other.verdict.measured
            return float("nan")
        self.counts.add(first=one.passed, second=other.passed, cluster=one.cluster)
        self.answers_equal += one.answer == other.answer
        divergence = first_difference(one, other)
        self.rankings.add(one, other)
        if divergence is None or divergence.stage not in (Stage.REQUEST, Stage.CANDIDATES):
            # Different chunks have different keys; that does not make the shapes different.
            self.shapes.add(one, other)
        if divergence is not None:
            flipped = one.passed != other.passed
            self.counts.same = False
            self.stages[divergence.stage] += 1
            self.flips[divergence.stage] += flipped
            shown = self.divergent.setdefault((divergence.stage, flipped), [])
            if len(shown) < _SHOWN:
                shown.append(
                    DivergentQuestion(
                        question=one.id,
                        stage=divergence.stage,
                        detail=divergence.detail,
                        flipped=flipped,
                    )
                )
        return (one.score or 0.0) - (other.score or 0.0)

    def record(self, comparison: PairedComparison, scores: RateInterval, *, answers: bool) -> Pair:
        order = sorted(self.divergent, key=lambda key: (not key[1], list(Stage).index(key[0])))
        parts: Counter[str] = Counter()
        for stage, count in self.flips.items():
            parts[stage.part] += count
        return Pair(
            first=self.first,
            second=self.second,
            contrast=comparison,
            not_measured_first=self.unmeasured[0],
            not_measured_second=self.unmeasured[1],
            score_difference=scores,
            answers_equal=self.answers_equal if answers else None,
            rankings=self.rankings.record(),
            stages={s: self.stages[s] for s in Stage if self.stages[s]},
            flips={s: self.flips[s] for s in Stage if self.flips[s]},
            flips_by_part={part: count for part, count in parts.most_common() if count},
            parted=[question for key in order for question in self.divergent[key]],
            shapes=self.shapes.record(),
        )


def compare_runs(
    runs: Sequence[LoadedRun],
    method: Method | None = None,
    *,
    on_row: Callable[[tuple[QuestionResult, ...]], None] | None = None,
) -> ParityReport:
    """Compare every pair of runs.

    Args:
        runs: two or more.
        method: how; the defaults if None.
        on_row: called with every question's results, so that who needs them too need not read the
            files again.

    Raises:
        UsageError: if there are fewer than two runs (`one_run`), or if the runs differ in settings
            or questions (`unlike_runs`).
    """
    if len(runs) < 2:
        raise UsageError(
            "cannot compare a single run", code="one_run", hint="give two results or more"
        )
    require_comparable(runs)
    method = method or Method()
    index_pairs = list(combinations(range(len(runs)), 2))
    tallies = [_PairTally(runs[a].name, runs[b].name) for a, b in index_pairs]
    differences: list[list[float]] = [[] for _ in index_pairs]
    question_clusters: list[str | None] = []
    for row in aligned(runs):
        if on_row is not None:
            on_row(row)
        if not row[0].verdict.expected:
            continue
        question_clusters.append(row[0].cluster)
        for (a, b), tally, scores in zip(index_pairs, tallies, differences, strict=True):
            scores.append(tally.add(row[a], row[b]))
    comparisons = compare_pairs(
        [tally.counts for tally in tallies], margin=method.margin, alpha=method.alpha
    )
    means = [
        _clustered_mean(column, question_clusters) if _has_enough_clusters(comparison) else mean
        for column, comparison, mean in zip(
            differences, comparisons, _means(differences, method), strict=True
        )
    ]
    first = runs[0].summary
    answers = first.scenario != "search-retrieve-only"
    pairs = [
        tally.record(comparison, mean, answers=answers)
        for tally, comparison, mean in zip(tallies, comparisons, means, strict=True)
    ]
    verdict = max((comparison.verdict for comparison in comparisons), key=list(ParityVerdict).index)
    return ParityReport(
        verdict=verdict,
        exit_code=_exit_code(pairs, runs),
        reasons=[*incident_lines(runs), *_reasons(pairs)],
        dataset=first.dataset,
        scenario=first.scenario,
        mode=first.mode,
        questions=len(question_clusters),
        margin=method.margin,
        alpha=method.alpha,
        seed=method.seed,
        resamples=method.resamples,
        runs=[_compared_run(run) for run in runs],
        pairs=pairs,
    )


def _compared_run(run: LoadedRun) -> ComparedRun:
    summary = run.summary
    return ComparedRun(
        name=run.name,
        sdk=summary.sdk,
        run_id=summary.run_id,
        path=run.reference,
        version=summary.daemon.version,
        build_hash=summary.daemon.build_hash,
        passed=summary.passed,
        total=summary.total,
    )


def _means(differences: Sequence[list[float]], method: Method) -> list[RateInterval]:
    """Mean score difference of each pair, over the questions that both runs measured."""
    if not differences[0]:
        return [RateInterval(value=0.0, low=-1.0, high=1.0) for _ in differences]
    intervals = mean_intervals(differences, seed=method.seed, resamples=method.resamples)
    means = []
    for column, interval in zip(differences, intervals, strict=True):
        measured = [value for value in column if not isnan(value)]
        mean = fmean(measured) if measured else 0.0
        low, high = interval if measured else (-1.0, 1.0)
        means.append(RateInterval(value=mean, low=low, high=high))
    return means


def _has_enough_clusters(comparison: PairedComparison) -> bool:
    if comparison.clusters is None or comparison.fewest_clusters is None:
        return False
    return comparison.clusters >= comparison.fewest_clusters


def _clustered_mean(column: Sequence[float], clusters: Sequence[str | None]) -> RateInterval:
    """Mean score difference, whose error is that between clusters."""
    # A question without a cluster is one of its own: its number is no cluster's name.
    units = [row if cluster is None else cluster for row, cluster in enumerate(clusters)]
    mean = clustered_mean(cluster_totals(column, units))
    low, high = mean.interval()
    return RateInterval(value=mean.mean, low=max(-1.0, low), high=min(1.0, high))


def _exit_code(pairs: Sequence[Pair], runs: Sequence[LoadedRun]) -> ExitCode:
    """The exit code by verdicts; the caller decides whether inconclusive is acceptable."""
    codes = [ExitCode.DAEMON for run in runs if run.summary.incident is not None]
    codes += [ExitCode.NOTHING_SELECTED for pair in pairs if pair.contrast.compared == 0]
    codes += [ExitCode.FAILED for p in pairs if p.contrast.verdict is ParityVerdict.DRIFT]
    return gravest(codes)


def _reasons(pairs: Sequence[Pair]) -> list[str]:
    reasons = []
    for pair in pairs:
        name = f"{pair.first}, {pair.second}"
        missing = pair.not_measured_first, pair.not_measured_second
        if any(missing):
            reasons.append(
                f"{name}: {missing[0]} questions not measured on {pair.first}, {missing[1]} on"
                f" {pair.second}; the comparison uses the other {pair.contrast.compared}"
            )
    return reasons
