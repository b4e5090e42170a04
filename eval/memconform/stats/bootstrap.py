"""Percentile bootstrap intervals (Efron & Tibshirani 1993, chapter 13) of rows drawn one by one.

numpy is imported by the first draw: its import takes 0.1 s, a third of the start of a `run`, and
runs that agree draw nothing.
"""

from collections.abc import Iterator, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

from memconform.stats.intervals import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH_SIZE = 200_000
"""Values drawn at once, so that the counts fit in the processor's cache: 10,000 resamples of 10,000
values take 0.9 s, and 2.7 s in batches of five million."""


def mean_intervals(
    columns: Sequence[Sequence[float]],
    *,
    seed: int = 0,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> list[Interval]:
    """Intervals of the mean of each column of n rows, all from the same resamples.

    Rows must be independent: with ten clusters, a percentile bootstrap that draws whole clusters
    covers 88 to 90 %, not 95 (scripts/bench_clusters.py), for which `clusters.clustered_mean`
    exists. NaN marks a value that was not measured; it enters no mean. A column of NaN alone has
    NaN intervals.

    Raises:
        ValueError: if there are no rows.
    """
    _require_rows(columns)
    if not any(value and not isnan(value) for column in columns for value in column):
        # The runs agree: every resample of zeros has mean zero.
        return [Interval(nan, nan) if all(map(isnan, c)) else Interval(0.0, 0.0) for c in columns]
    import numpy as np  # noqa: PLC0415 - see above

    values = np.array(columns).T
    is_measured = ~np.isnan(values)
    sums, sizes = np.where(is_measured, values, 0.0), is_measured.astype(float)
    with np.errstate(invalid="ignore"):
        means = np.concatenate(
            [
                (weights @ sums) / (weights @ sizes)
                for weights in _weights(len(values), seed, resamples)
            ]
        )
    return [
        percentile_interval(column, confidence) if has_values else Interval(nan, nan)
        for column, has_values in zip(means.T, is_measured.any(axis=0), strict=True)
    ]


def resampled_totals(
    columns: Sequence[Sequence[float]], *, seed: int = 0, resamples: int = 10_000
) -> Iterator[list[float]]:
    """The sum of each column in each resample of `mean_intervals`, for functions of several sums.

    Raises:
        ValueError: if there are no rows.
    """
    _require_rows(columns)
    import numpy as np  # noqa: PLC0415 - see above

    values = np.array(columns).T
    for weights in _weights(len(values), seed, resamples):
        yield from (weights @ values).tolist()


def percentile_interval(
    values: "Sequence[float] | NDArray[np.float64]", confidence: float
) -> Interval:
    """The central interval of the resampled values of an estimate, in any order; without NaN."""
    import numpy as np  # noqa: PLC0415 - see above

    tail = (1 - confidence) / 2
    low, high = np.nanquantile(values, (tail, 1 - tail)).tolist()
    return Interval(low, high)


def _require_rows(columns: Sequence[Sequence[float]]) -> None:
    if not columns[0]:
        raise ValueError("no rows to draw from")


def _weights(n: int, seed: int, resamples: int) -> "Iterator[NDArray[np.intp]]":
    """How often each of n rows is drawn, in batches of resamples."""
    import numpy as np  # noqa: PLC0415 - see above

    generator = np.random.default_rng(seed)
    batch = max(1, _BATCH_SIZE // n)
    for done in range(0, resamples, batch):
        size = min(batch, resamples - done)
        chosen = generator.integers(0, n, size=(size, n))
        chosen += n * np.arange(size)[:, None]
        yield np.bincount(chosen.ravel(), minlength=size * n).reshape(size, n)
