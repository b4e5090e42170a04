"""The rate of what is true, from what an imperfect judge counted.

A judge of sensitivity Se (it passes what is correct) and specificity Sp (it fails what is wrong)
passes π·Se + (1 - π)·(1 - Sp) of answers of which π are correct.
"""

from dataclasses import dataclass
from math import hypot, sqrt
from statistics import NormalDist

from memconform.stats.intervals import Interval, wilson

_PSEUDO = 0.5
"""Hits and misses that are added to each calibration before its variance is taken; the paper adds
one of each. Of 672 combinations of rates 0.1 to 0.9, sensitivities and specificities 0.8 to 0.99,
calibrations of 100 or 150 each and runs of 100 to 500 (40,000 draws each), half of one covers 94.6
to 96.7 %, one covers 94.7 to 97.4 %: where one error in a hundred is expected, two more are many.
Calibrations of 20 still cover 93.2 % at least. Both cover more than 97 % at rates near 0 and 1."""


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """The rate of correct answers, corrected for the judge's errors."""

    rate: float
    interval: Interval
    """Carries the errors of the counted rate, of the sensitivity and of the specificity."""
    apparent: float
    """The rate that the judge counted."""
    sensitivity: float
    specificity: float


def rogan_gladen(
    passed: int,
    total: int,
    *,
    sensitivity: tuple[int, int],
    specificity: tuple[int, int],
    confidence: float = 0.95,
) -> CorrectedRate | None:
    """The rate behind `passed` of `total`, by a judge whose errors were counted elsewhere.

    `sensitivity` is (passed, shown) of answers known to be correct, `specificity` is (failed,
    shown) of answers known to be wrong. The estimate is Rogan & Gladen's (1978), the interval
    Lang & Reiczigel's (2014, equations 6 to 17) with other pseudo-counts (`_PSEUDO`); both are
    clipped to [0, 1]. The judge is taken to err here as often as it did there: answers that are
    harder to judge than those of the calibration make the correction too small.

    None where nothing was counted, or where the judge is not clearly better than chance: the lower
    limit of Se + Sp - 1 is not above 0 (Newcombe 1998, method 10, at the same confidence). A small
    divisor would make any rate of any count.

    Raises:
        ValueError: unless 0 ≤ hits ≤ number of each pair, and 0 < confidence < 1.
    """
    wilson(passed, total, confidence)
    if not is_better_than_chance(sensitivity, specificity, confidence) or total == 0:
        return None
    apparent, se, sp = passed / total, _rate(sensitivity), _rate(specificity)
    rate = _clipped((apparent + sp - 1) / (se + sp - 1))
    low, high = _lang_reiczigel(passed, total, sensitivity, specificity, confidence)
    # Of a few observations the pseudo-counts can move the interval off an estimate of 0 or 1.
    interval = Interval(min(low, rate), max(high, rate))
    return CorrectedRate(rate, interval, apparent, se, sp)


def is_better_than_chance(
    sensitivity: tuple[int, int], specificity: tuple[int, int], confidence: float = 0.95
) -> bool:
    """Whether the lower limit of Se + Sp - 1 is above 0 (Newcombe 1998, method 10).

    A judge that always gives one verdict has 0. False where nothing was counted.

    Raises:
        ValueError: unless 0 ≤ hits ≤ number of each pair, and 0 < confidence < 1.
    """
    low_se, low_sp = (wilson(*pair, confidence).low for pair in (sensitivity, specificity))
    if 0 in (sensitivity[1], specificity[1]):
        return False
    se, sp = _rate(sensitivity), _rate(specificity)
    return se + sp - 1 > hypot(se - low_se, sp - low_sp)


def _lang_reiczigel(
    passed: int,
    total: int,
    sensitivity: tuple[int, int],
    specificity: tuple[int, int],
    confidence: float,
) -> Interval:
    """Wald's interval of counts with pseudo-observations, moved by the skew of both errors."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    size = total + z * z
    apparent = (passed + z * z / 2) / size
    (se, error_of_se), (sp, error_of_sp) = map(_smoothed, (sensitivity, specificity))
    rate = (apparent + sp - 1) / (se + sp - 1)
    shift = 2 * z * z * (rate * error_of_se - (1 - rate) * error_of_sp)
    variance = apparent * (1 - apparent) / size
    variance += rate**2 * error_of_se + (1 - rate) ** 2 * error_of_sp
    half = z * sqrt(variance) / (se + sp - 1)
    return Interval(_clipped(rate + shift - half), _clipped(rate + shift + half))


def _smoothed(pair: tuple[int, int]) -> tuple[float, float]:
    """A rate with pseudo-counts, and its variance."""
    hits, shown = pair
    size = shown + 2 * _PSEUDO
    rate = (hits + _PSEUDO) / size
    return rate, rate * (1 - rate) / size


def _rate(pair: tuple[int, int]) -> float:
    hits, shown = pair
    return hits / shown


def _clipped(rate: float) -> float:
    return min(1.0, max(0.0, rate))
