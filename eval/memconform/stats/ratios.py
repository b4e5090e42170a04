"""The ratio of two means over the same questions."""

from collections.abc import Hashable, Sequence
from math import fsum, sqrt

from memconform.stats.clusters import cluster_totals
from memconform.stats.intervals import LEAST_CLUSTERS, Interval
from memconform.stats.student import t_quantile


def ratio_interval(
    numerator: Sequence[float],
    denominator: Sequence[float],
    clusters: Sequence[Hashable],
    confidence: float = 0.95,
) -> Interval | None:
    """Fieller's interval of sum(numerator) / sum(denominator), paired by question.

    All ratios r for which a t-test by cluster does not tell numerator - r·denominator from 0
    (Fieller 1954). With fewer than `LEAST_CLUSTERS` clusters questions are taken one by one, and
    the interval is about these conversations alone.

    Args:
        numerator: a value per question.
        denominator: likewise.
        clusters: what each question shares with those that are not independent of it.
        confidence: of the interval.

    Returns:
        None if `denominator` is not distinguishable from 0, for which no bounded interval exists,
        or there are fewer than two questions.
    """
    units: Sequence[Hashable] = clusters
    if len(set(clusters)) < LEAST_CLUSTERS:
        units = range(len(numerator))
    x = [total for total, _ in cluster_totals(numerator, units)]
    y = [total for total, _ in cluster_totals(denominator, units)]
    m = len(x)
    if m < 2:
        return None
    mean_x, mean_y = fsum(x) / m, fsum(y) / m
    limit = t_quantile((1 + confidence) / 2, m - 1) ** 2 / (m * (m - 1))
    var_x = limit * fsum((a - mean_x) ** 2 for a in x)
    var_y = limit * fsum((b - mean_y) ** 2 for b in y)
    cov = limit * fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    # (mean_x - r·mean_y)² = var_x - 2r·cov + r²·var_y, a quadratic equation in r.
    a = mean_y**2 - var_y
    if mean_y <= 0 or a <= 0:
        return None
    b = mean_x * mean_y - cov
    root = sqrt(max(0.0, b * b - a * (mean_x**2 - var_x)))
    return Interval((b - root) / a, (b + root) / a)
