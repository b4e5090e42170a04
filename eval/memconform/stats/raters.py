"""How well raters agree on nominal categories, beyond what chance would give.

A coefficient is 1 where all raters agree and about 0 where they agree as often as chance has it.
It is None, not 0 or 1, where it is undefined: there are no ratings to compare, or all of them name
one category, so that chance alone would agree on everything.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from operator import mul

from memconform.stats.bootstrap import percentile_interval, resampled_totals
from memconform.stats.intervals import Interval

Ratings = Sequence[Sequence[Hashable | None]]
"""A row for each unit that was rated, with a rating by each rater; None where there is none."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient of agreement with the percentile bootstrap interval of its units."""

    value: float
    interval: Interval | None
    """None where no resample had two categories."""
    units: int
    """Units that count, which are those with two ratings at least."""
    undefined: float
    """The share of resamples that drew one category only. They count in no interval, which is too
    narrow where they are many."""


def percent_agreement(ratings: Ratings) -> float | None:
    """The share of pairs of ratings of one unit that are equal, in [0, 1]; None without a pair."""
    units = _counts(ratings)
    pairs = sum(_pairs(unit) for unit in units)
    return sum(_agreeing(unit) for unit in units) / pairs if pairs else None


def cohen_kappa(one: Sequence[Hashable], other: Sequence[Hashable]) -> float | None:
    """Agreement of two raters who may use categories at different rates (Cohen 1960).

    In [-1, 1]; None without units, or where both raters use the same one category throughout.

    Raises:
        ValueError: unless both rated the same number of units.
    """
    n = len(one)
    if n != len(other):
        raise ValueError(f"{n} ratings by one rater and {len(other)} by the other")
    rates = Counter(other)
    by_chance = sum(count * rates[category] for category, count in Counter(one).items())
    if by_chance == n * n:
        return None
    agreeing = sum(first == second for first, second in zip(one, other, strict=True))
    return (n * agreeing - by_chance) / (n * n - by_chance)


def cohen_agreement(
    one: Sequence[Hashable],
    other: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> Agreement | None:
    """`cohen_kappa` with an interval; None where it is undefined.

    Raises:
        ValueError: as `cohen_kappa` does, and unless 0 < confidence < 1.
    """
    if cohen_kappa(one, other) is None:
        return None
    return _agreement(_cohen_columns(one, other), _cohen, seed, resamples, confidence)


def fleiss_kappa(counts: Sequence[Sequence[int]]) -> float | None:
    """Agreement of the same number of ratings for each unit, whoever gave them (Fleiss 1971).

    `counts` has a row for each unit: how many ratings it has in each category. The result is in
    [-1, 1]; None without units, or where all ratings are of one category.

    Raises:
        ValueError: unless all rows have as many columns, none negative, and the same total of two
            at least.
    """
    return _fleiss(_totals(_fleiss_columns(counts)))


def fleiss_agreement(
    counts: Sequence[Sequence[int]],
    *,
    seed: int = 0,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> Agreement | None:
    """`fleiss_kappa` with an interval; None where it is undefined.

    Raises:
        ValueError: as `fleiss_kappa` does, and unless 0 < confidence < 1.
    """
    columns = _fleiss_columns(counts)
    return _agreement(columns, _fleiss, seed, resamples, confidence)


def krippendorff_alpha(ratings: Ratings) -> float | None:
    """Agreement of any number of raters, of whom each may miss units (Krippendorff 2011).

    Nominal: two ratings agree if they are equal. A unit of fewer than two ratings does not count.
    At most 1; None without a unit that counts, or where all of their ratings are equal.
    """
    return _alpha(_totals(_alpha_columns(ratings)))


def alpha_agreement(
    ratings: Ratings, *, seed: int = 0, resamples: int = 10_000, confidence: float = 0.95
) -> Agreement | None:
    """`krippendorff_alpha` with an interval; None where it is undefined.

    Whole units are drawn, with all of their ratings, and not single pairs as in Hayes &
    Krippendorff (2007): ratings of one unit depend on each other.

    Raises:
        ValueError: unless 0 < confidence < 1.
    """
    return _agreement(_alpha_columns(ratings), _alpha, seed, resamples, confidence)


def _counts(ratings: Ratings) -> list[Counter[Hashable]]:
    """Ratings of each unit by category, of units with two ratings at least."""
    units = (Counter(rating for rating in unit if rating is not None) for unit in ratings)
    return [unit for unit in units if unit.total() > 1]


def _pairs(unit: Counter[Hashable]) -> int:
    return unit.total() * (unit.total() - 1)


def _agreeing(unit: Counter[Hashable]) -> int:
    return sum(count * (count - 1) for count in unit.values())


# Both coefficients are functions of sums over units, and a resample is no more than other sums: a
# column is a quantity of each unit, its disagreement first, then its ratings in each category.
_Columns = list[list[float]]


def _fleiss_columns(counts: Sequence[Sequence[int]]) -> _Columns:
    sizes = {(len(unit), sum(unit)) for unit in counts}
    if len(sizes) > 1 or any(raters < 2 for _, raters in sizes):
        raise ValueError("units differ in their number of ratings, or have fewer than two")
    if any(min(unit) < 0 for unit in counts):
        raise ValueError("a unit has less than no rating in a category")
    return [
        [1 - _agreeing(unit) / _pairs(unit) for unit in map(_unit, counts)],
        *([float(count) for count in column] for column in zip(*counts, strict=True)),
    ]


def _unit(counts: Sequence[int]) -> Counter[Hashable]:
    return Counter(dict(enumerate(counts)))


def _alpha_columns(ratings: Ratings) -> _Columns:
    units = _counts(ratings)
    categories = dict.fromkeys(chain.from_iterable(units))
    return [
        [(_pairs(unit) - _agreeing(unit)) / (unit.total() - 1) for unit in units],
        *([float(unit[category]) for unit in units] for category in categories),
    ]


def _cohen_columns(one: Sequence[Hashable], other: Sequence[Hashable]) -> _Columns:
    categories = dict.fromkeys(chain(one, other))
    return [
        [float(first != second) for first, second in zip(one, other, strict=True)],
        *([float(rating == category) for rating in one] for category in categories),
        *([float(rating == category) for rating in other] for category in categories),
    ]


def _totals(columns: _Columns) -> list[float]:
    """Sums that do not depend on the order of units."""
    return [float(len(columns[0])), *map(fsum, columns)]


def _cohen(totals: Sequence[float]) -> float | None:
    n, disagreeing, *ratings = totals
    half = len(ratings) // 2
    by_chance = fsum(map(mul, ratings[:half], ratings[half:]))
    return 1 - disagreeing * n / (n * n - by_chance) if by_chance < n * n else None


def _fleiss(totals: Sequence[float]) -> float | None:
    units, disagreement, *ratings = totals
    n = sum(ratings)
    by_chance = n * n - sum(count * count for count in ratings)
    return 1 - disagreement / units / (by_chance / (n * n)) if by_chance else None


def _alpha(totals: Sequence[float]) -> float | None:
    _, disagreement, *ratings = totals
    n = sum(ratings)
    by_chance = n * n - sum(count * count for count in ratings)
    return 1 - (n - 1) * disagreement / by_chance if by_chance else None


def _agreement(
    columns: _Columns,
    coefficient: Callable[[Sequence[float]], float | None],
    seed: int,
    resamples: int,
    confidence: float,
) -> Agreement | None:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence} is outside (0, 1)")
    value = coefficient(_totals(columns))
    if value is None:
        return None
    units = len(columns[0])
    drawn = _resampled(columns, coefficient, seed, resamples)
    defined = [found for found in drawn if found is not None]
    interval = percentile_interval(defined, confidence) if defined else None
    return Agreement(value, interval, units, 1 - len(defined) / resamples)


def _resampled(
    columns: _Columns,
    coefficient: Callable[[Sequence[float]], float | None],
    seed: int,
    resamples: int,
) -> Iterator[float | None]:
    units = float(len(columns[0]))
    for totals in resampled_totals(columns, seed=seed, resamples=resamples):
        yield coefficient([units, *totals])
