"""The bootstrap with or without numpy: same resamples, same intervals."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from math import floor, isnan, nan

from memconform.stats.generator import integers
from memconform.stats.intervals import Interval

_MOST_DRAWS = 20_000_000
"""Rows times resamples that pure Python draws in about ten seconds."""


def mean_intervals(
    columns: Sequence[Sequence[float]],
    *,
    seed: int = 0,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> list[Interval]:
    """Intervals of the mean of each column of n rows, with rows drawn one by one.

    The same as `bootstrap_means`: NaN enters no mean, and a column of NaN alone
    has NaN intervals.

    Raises:
        ValueError: if there are no rows.
    """
    rows = len(columns[0])
    if rows == 0:
        raise ValueError("no rows to draw from")
    if not any(value and not isnan(value) for column in columns for value in column):
        # The runs agree: every resample of zeros has mean zero.
        return [Interval(nan, nan) if all(map(isnan, c)) else Interval(0.0, 0.0) for c in columns]
    if find_spec("numpy") is not None:
        import numpy as np  # noqa: PLC0415 - an extra, and a fifth of what a run imports

        from memconform.stats.bootstrap import bootstrap_means  # noqa: PLC0415 - same

        return bootstrap_means(
            np.array(columns).T,
            seed=seed,
            resamples=resamples,
            confidence=confidence,
        )
    return intervals_in_python(columns, seed=seed, resamples=resamples, confidence=confidence)


def resampled_totals(
    columns: Sequence[Sequence[float]], *, seed: int = 0, resamples: int = 10_000
) -> Iterator[list[float]]:
    """The sum of each column, of n rows each, in each resample of n rows drawn one by one.

    For what is a function of several sums. A sum may differ in its last bit without numpy, which
    adds in another order; sums of whole numbers do not.

    Raises:
        ValueError: without rows.
    """
    rows = len(columns[0])
    if rows == 0:
        raise ValueError("no rows to draw from")
    if find_spec("numpy") is not None:
        import numpy as np  # noqa: PLC0415 - an extra, and a fifth of what a run imports

        from memconform.stats.bootstrap import bootstrap_totals  # noqa: PLC0415 - same

        yield from bootstrap_totals(np.array(columns).T, seed=seed, resamples=resamples).tolist()
        return
    numbers = integers(seed, rows)
    for _ in range(resamples):
        drawn = list(islice(numbers, rows))
        yield [sum(map(column.__getitem__, drawn)) for column in columns]


def is_slow(rows: int, resamples: int = 10_000) -> bool:
    """Whether numpy is not installed although it would save the user more than some seconds."""
    return rows * resamples > _MOST_DRAWS and find_spec("numpy") is None


def intervals_in_python(
    columns: Sequence[Sequence[float]], *, seed: int, resamples: int, confidence: float
) -> list[Interval]:
    """`mean_intervals` without numpy; 90 rows take 0.4 s, ten times as long as with numpy."""
    rows = len(columns[0])
    values = [[0.0 if isnan(value) else value for value in column] for column in columns]
    masks = [[not isnan(value) for value in column] for column in columns]
    means: list[list[float]] = [[] for _ in columns]
    numbers = integers(seed, rows)
    for _ in range(resamples):
        indices = list(islice(numbers, rows))
        for column, mask, resampled in zip(values, masks, means, strict=True):
            if size := sum(map(mask.__getitem__, indices)):
                resampled.append(sum(map(column.__getitem__, indices)) / size)
    tail = (1 - confidence) / 2
    return [
        Interval(quantile(ordered, tail), quantile(ordered, 1 - tail))
        if any(mask)
        else Interval(nan, nan)
        for ordered, mask in zip((sorted(column) for column in means), masks, strict=True)
    ]


def quantile(ordered: Sequence[float], q: float) -> float:
    """Linear interpolation from the nearer neighbour, to round exactly as numpy does."""
    position = q * (len(ordered) - 1)
    below = floor(position)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    part = position - below
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part
