"""The verdict on two runs from counts of questions; the only place where it is decided."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from memconform.records import Record
from memconform.stats.clustered_pairs import (
    PairedCluster,
    clustered_difference,
    clusters_to_settle,
    fewest_clusters,
    sign_flip,
)
from memconform.stats.paired import holm, mcnemar, questions_to_settle, tango

MARGIN = 0.02
ALPHA = 0.05


class ParityVerdict(StrEnum):
    """The verdict on two runs, from best to worst."""

    IDENTICAL = "identical"
    """The same on every question: a fact about these questions only."""
    PARITY = "parity"
    """Their pass rates are within the margin of each other."""
    INCONCLUSIVE = "inconclusive"
    DRIFT = "drift"
    """Their pass rates differ significantly, whatever the margin."""


class RateInterval(Record):
    """An estimate with its confidence interval."""

    value: float
    low: float
    high: float


class PairedComparison(Record):
    """Two pass rates of the same questions; differences are the first run minus the second."""

    verdict: ParityVerdict
    compared: int
    """Questions that both runs measured."""
    both: int
    first_only: int
    second_only: int
    neither: int
    difference: RateInterval
    """Difference of pass rates with its interval at 95 %: Tango's, or if questions share clusters,
    by cluster-t and no narrower than Tango's. Tango's alone with fewer than `fewest_clusters`,
    about these clusters only."""
    equivalence: RateInterval
    """The same difference at confidence 1 - 2 alpha; inside the margin it means parity."""
    mid_p: float
    """McNemar's mid-p, which decides unless questions share clusters."""
    exact_p: float
    """McNemar's exact p."""
    holm_p: float
    """The p that decides, after Holm's adjustment for the number of pairs compared."""
    settled_by: int | None
    """How many questions would be conclusive at the observed rates; null if the comparison already
    is, if no number up to 100,000 would be, or if questions share clusters."""
    clusters: int | None = None
    """The number of clusters, such as conversations, that the compared questions come in; null if
    no two share one, and in reports of earlier versions."""
    fewest_clusters: int | None = None
    """With fewer clusters no difference is significant, and the verdict is inconclusive unless the
    runs are identical; null without clusters."""
    sign_flip_p: float | None = None
    """The exact sign-flip p over clusters, which decides; null without clusters."""
    settled_by_clusters: int | None = None
    """About how many clusters like these would be conclusive; null if the comparison already is, if
    no number up to 100,000 questions would be, or with fewer than `fewest_clusters`."""
    dataset_questions: int | None = None
    """How many questions the dataset has, selected or not; null if not known."""
    dataset_clusters: int | None = None
    """How many clusters these come in; null if not known."""


@dataclass(slots=True)
class Counts:
    """Questions that two runs both measured, by which of the runs pass them."""

    both: int = 0
    first_only: int = 0
    second_only: int = 0
    neither: int = 0
    same: bool = True
    """Whether every question was measured in both runs and has the same answer in both."""
    _clusters: dict[str, PairedCluster] = field(default_factory=dict)

    def add(self, *, first: bool, second: bool, cluster: str | None = None) -> None:
        """Count a question by whether each run passes it.

        Questions that are not independent of each other have the same cluster; without one a
        question is a cluster of its own.
        """
        if cluster is not None:
            size, first_only, second_only = self._clusters.get(cluster, (0, 0, 0))
            self._clusters[cluster] = PairedCluster(
                size + 1, first_only + (first and not second), second_only + (second and not first)
            )
        match first, second:
            case True, True:
                self.both += 1
            case True, False:
                self.first_only += 1
            case False, True:
                self.second_only += 1
            case _:
                self.neither += 1

    @property
    def compared(self) -> int:
        return self.both + self.first_only + self.second_only + self.neither

    def clusters(self) -> list[PairedCluster] | None:
        """All clusters, also those of one question; None if every question is one of its own."""
        shared = list(self._clusters.values())
        if all(cluster.size == 1 for cluster in shared):
            return None
        size, first_only, second_only = (sum(column) for column in zip(*shared, strict=True))
        b, c = self.first_only - first_only, self.second_only - second_only
        concordant = self.compared - size - b - c
        return [
            *shared,
            *[PairedCluster(1, 1, 0)] * b,
            *[PairedCluster(1, 0, 1)] * c,
            *[PairedCluster(1, 0, 0)] * concordant,
        ]


def compare_pairs(
    pairs: Sequence[Counts], *, margin: float = MARGIN, alpha: float = ALPHA
) -> list[PairedComparison]:
    """The verdict on each pair, with significance adjusted for the number of pairs.

    Drift is a p below `alpha` after Holm's adjustment: McNemar's mid-p, or where questions share
    clusters the exact sign-flip of clusters. Parity is an interval of confidence 1 - 2 alpha inside
    the margin: Tango's, or by clusters. A significant difference is drift, even inside the margin.

    Clusters too few for any difference to be significant are inconclusive: what cannot be drift is
    not parity either. Intervals are then Tango's, which is about these clusters alone.
    """
    clusters = [counts.clusters() for counts in pairs]
    p_values = [_deciding_p(counts, own) for counts, own in zip(pairs, clusters, strict=True)]
    method = _Method(margin, alpha, tests=max(1, len(pairs)))
    return [
        _comparison(method, counts, own, p, adjusted)
        for counts, own, p, adjusted in zip(pairs, clusters, p_values, holm(p_values), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Method:
    margin: float
    alpha: float
    tests: int

    @property
    def fewest_clusters(self) -> int:
        """With fewer clusters than these, Holm's first step rejects nothing."""
        return fewest_clusters(self.alpha / self.tests)


def _deciding_p(counts: Counts, clusters: Sequence[PairedCluster] | None) -> float:
    if clusters is None:
        return mcnemar(counts.first_only, counts.second_only).mid_p
    return sign_flip(cluster.first_only - cluster.second_only for cluster in clusters)


def _comparison(
    method: _Method,
    counts: Counts,
    clusters: Sequence[PairedCluster] | None,
    p: float,
    adjusted: float,
) -> PairedComparison:
    b, c, n = counts.first_only, counts.second_only, counts.compared
    test = mcnemar(b, c)
    is_too_few = clusters is not None and len(clusters) < method.fewest_clusters
    spread = None if is_too_few else clusters
    equivalence = _difference(counts, spread, 1 - 2 * method.alpha)
    verdict = _verdict(method, counts, adjusted, equivalence, is_too_few=is_too_few)
    questions = enough_clusters = None
    if verdict is ParityVerdict.INCONCLUSIVE:
        margin, alpha, tests = method.margin, method.alpha, method.tests
        if clusters is None:
            questions = questions_to_settle(b, c, n, margin=margin, alpha=alpha, tests=tests)
        else:
            enough_clusters = clusters_to_settle(clusters, margin=margin, alpha=alpha, tests=tests)
    return PairedComparison(
        verdict=verdict,
        compared=n,
        both=counts.both,
        first_only=b,
        second_only=c,
        neither=counts.neither,
        difference=_difference(counts, spread, 0.95),
        equivalence=equivalence,
        mid_p=test.mid_p,
        exact_p=test.exact,
        holm_p=adjusted,
        settled_by=questions,
        clusters=None if clusters is None else len(clusters),
        fewest_clusters=None if clusters is None else method.fewest_clusters,
        sign_flip_p=None if clusters is None else p,
        settled_by_clusters=enough_clusters,
    )


def _difference(
    counts: Counts, clusters: Sequence[PairedCluster] | None, confidence: float
) -> RateInterval:
    b, c, n = counts.first_only, counts.second_only, counts.compared
    if clusters is None:
        low, high = tango(b, c, n, confidence)
    else:
        low, high = clustered_difference(clusters, confidence)
    return RateInterval(value=(b - c) / n if n else 0.0, low=low, high=high)


def _verdict(
    method: _Method, counts: Counts, p: float, equivalence: RateInterval, *, is_too_few: bool
) -> ParityVerdict:
    if counts.compared == 0:
        return ParityVerdict.INCONCLUSIVE
    if counts.same:
        return ParityVerdict.IDENTICAL
    if p < method.alpha:
        return ParityVerdict.DRIFT
    within = -method.margin < equivalence.low and equivalence.high < method.margin
    return ParityVerdict.PARITY if within and not is_too_few else ParityVerdict.INCONCLUSIVE
