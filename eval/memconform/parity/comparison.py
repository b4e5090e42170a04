"""Two or more runs of the same questions: what they share, and where they part."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isnan
from statistics import fmean

from memconform.errors import ExitCode, UsageError, gravest
from memconform.parity.ladder import (
    Stage,
    first_difference,
    keys,
    largest_gap,
    ranking_difference,
)
from memconform.parity.loaded_runs import LoadedRun, aligned, incident_lines, require_comparable
from memconform.parity.paired_comparison import ALPHA, MARGIN, Counts, compare_pairs
from memconform.parity.records import (
    Compared,
    Pair,
    PairedComparison,
    ParityReport,
    ParityVerdict,
    Parted,
    Rankings,
    RateInterval,
    Shapes,
)
from memconform.runs.results import QuestionResult
from memconform.stats.rankings import jaccard, kendall_tau_b, overlap_at, rbo
from memconform.stats.resampling import mean_intervals

_SHOWN = 5
"""Questions of a stage, and lines of shapes, that a report names."""


@dataclass(frozen=True, slots=True)
class Method:
    """How runs are compared."""

    margin: float = MARGIN
    alpha: float = ALPHA
    seed: int = 0
    resamples: int = 10_000


@dataclass(slots=True)
class _RankingTally:
    equal: int = 0
    largest: float = 0.0
    earlier: int = 0
    later: int = 0
    overlaps: list[float] = field(default_factory=list)
    jaccards: list[float] = field(default_factory=list)
    rbos: list[float] = field(default_factory=list)
    taus: list[float] = field(default_factory=list)

    def add(self, one: QuestionResult, other: QuestionResult) -> None:
        ours, theirs = keys(one, other)
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
    parted: dict[tuple[Stage, bool], list[Parted]] = field(default_factory=dict)
    rankings: _RankingTally = field(default_factory=_RankingTally)
    shapes: _ShapeTally = field(default_factory=_ShapeTally)

    def add(self, one: QuestionResult, other: QuestionResult) -> float:
        """Count a question; returns the difference of its scores, NaN where it was not measured."""
        if not (one.verdict.measured and other.verdict.measured):
            self.counts.same = False
            self.unmeasured[0] += not one.verdict.measured
            self.unmeasured[1] += not other.verdict.measured
            return float("nan")
        self.counts.add(first=one.passed, second=other.passed)
        self.answers_equal += one.answer == other.answer
        parting = first_difference(one, other)
        self.rankings.add(one, other)
        if parting is None or parting.stage not in (Stage.REQUEST, Stage.CANDIDATES):
            # Of other chunks other keys are told, and that is no other shape.
            self.shapes.add(one, other)
        if parting is not None:
            flipped = one.passed != other.passed
            self.counts.same = False
            self.stages[parting.stage] += 1
            self.flips[parting.stage] += flipped
            shown = self.parted.setdefault((parting.stage, flipped), [])
            if len(shown) < _SHOWN:
                shown.append(
                    Parted(
                        question=one.id,
                        stage=parting.stage,
                        detail=parting.detail,
                        flipped=flipped,
                    )
                )
        return (one.score or 0.0) - (other.score or 0.0)

    def record(self, contrast: PairedComparison, scores: RateInterval, *, answers: bool) -> Pair:
        order = sorted(self.parted, key=lambda key: (not key[1], list(Stage).index(key[0])))
        parts: Counter[str] = Counter()
        for stage, count in self.flips.items():
            parts[stage.part] += count
        return Pair(
            first=self.first,
            second=self.second,
            contrast=contrast,
            not_measured_first=self.unmeasured[0],
            not_measured_second=self.unmeasured[1],
            score_difference=scores,
            answers_equal=self.answers_equal if answers else None,
            rankings=self.rankings.record(),
            stages={s: self.stages[s] for s in Stage if self.stages[s]},
            flips={s: self.flips[s] for s in Stage if self.flips[s]},
            flips_by_part={part: count for part, count in parts.most_common() if count},
            parted=[each for key in order for each in self.parted[key]],
            shapes=self.shapes.record(),
        )


def compare_runs(sides: Sequence[LoadedRun], method: Method | None = None) -> ParityReport:
    """Hold each run to each other.

    Raises:
        UsageError: for fewer than two runs, or runs that asked different things.
    """
    if len(sides) < 2:
        raise UsageError(
            "one run has nothing to agree with", code="one_run", hint="give two results or more"
        )
    require_comparable(sides)
    method = method or Method()
    couples = list(combinations(range(len(sides)), 2))
    tallies = [_PairTally(sides[a].name, sides[b].name) for a, b in couples]
    differences: list[list[float]] = [[] for _ in couples]
    questions = 0
    for row in aligned(sides):
        if not row[0].verdict.expected:
            continue
        questions += 1
        for (a, b), tally, scores in zip(couples, tallies, differences, strict=True):
            scores.append(tally.add(row[a], row[b]))
    judged = compare_pairs([t.counts for t in tallies], margin=method.margin, alpha=method.alpha)
    means = _means(differences, method)
    first = sides[0].summary
    answers = first.scenario != "search-retrieve-only"
    pairs = [
        tally.record(contrast, mean, answers=answers)
        for tally, contrast, mean in zip(tallies, judged, means, strict=True)
    ]
    verdict = max((c.verdict for c in judged), key=list(ParityVerdict).index)
    return ParityReport(
        verdict=verdict,
        exit_code=_exit_code(pairs, sides),
        reasons=[*incident_lines(sides), *_reasons(pairs)],
        dataset=first.dataset,
        scenario=first.scenario,
        mode=first.mode,
        questions=questions,
        margin=method.margin,
        alpha=method.alpha,
        seed=method.seed,
        resamples=method.resamples,
        runs=[_compared(side) for side in sides],
        pairs=pairs,
    )


def _compared(side: LoadedRun) -> Compared:
    summary = side.summary
    return Compared(
        name=side.name,
        sdk=summary.sdk,
        run_id=summary.run_id,
        version=summary.daemon.version,
        build_hash=summary.daemon.build_hash,
        passed=summary.passed,
        total=summary.total,
    )


def _means(differences: Sequence[list[float]], method: Method) -> list[RateInterval]:
    """The mean difference of scores of each pair, over the questions that both were measured on."""
    if not differences[0]:
        return [RateInterval(value=0.0, low=-1.0, high=1.0) for _ in differences]
    intervals = mean_intervals(differences, seed=method.seed, resamples=method.resamples)
    found = []
    for column, interval in zip(differences, intervals, strict=True):
        known = [value for value in column if not isnan(value)]
        mean = fmean(known) if known else 0.0
        low, high = interval if known else (-1.0, 1.0)
        found.append(RateInterval(value=mean, low=low, high=high))
    return found


def _exit_code(pairs: Sequence[Pair], sides: Sequence[LoadedRun]) -> ExitCode:
    """Of the verdicts alone; whether inconclusive is enough is for the caller to say."""
    codes = [ExitCode.DAEMON for side in sides if side.summary.incident is not None]
    codes += [ExitCode.NOTHING_SELECTED for pair in pairs if pair.contrast.compared == 0]
    codes += [ExitCode.FAILED for p in pairs if p.contrast.verdict is ParityVerdict.DRIFT]
    return gravest(codes)


def _reasons(pairs: Sequence[Pair]) -> list[str]:
    found = []
    for pair in pairs:
        name = f"{pair.first}, {pair.second}"
        missing = pair.not_measured_first, pair.not_measured_second
        if any(missing):
            found.append(
                f"{name}: {missing[0]} questions not measured on {pair.first}, {missing[1]} on"
                f" {pair.second}; they are compared by {pair.contrast.compared} others"
            )
    return found
