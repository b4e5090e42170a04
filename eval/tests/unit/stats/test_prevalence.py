"""The rate behind an imperfect judge's count, and whether its interval covers the truth."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.stats.prevalence import rogan_gladen


def test_published_prevalences() -> None:
    # Rothman (2002), p. 131: 23 of 150 cows by a test of 96 % sensitivity and 89 % specificity.
    cows = rogan_gladen(23, 150, sensitivity=(96, 100), specificity=(89, 100))
    assert cows is not None
    assert cows.rate == pytest.approx(0.051, abs=5e-4)
    # Moujaber et al. (2008): 6 of 151 children, 96.4 % and 92.7 %, is less than false positives.
    children = rogan_gladen(6, 151, sensitivity=(964, 1000), specificity=(927, 1000))
    assert children is not None
    assert (children.rate, children.interval.low) == (0, 0)


def test_a_judge_without_errors_corrects_nothing() -> None:
    estimate = rogan_gladen(30, 100, sensitivity=(10**9, 10**9), specificity=(10**9, 10**9))
    assert estimate is not None
    assert estimate.apparent == 0.3
    assert estimate.rate == pytest.approx(0.3)
    # Agresti & Coull's interval, which is what is left.
    assert estimate.interval == pytest.approx((0.21865, 0.39615), abs=1e-5)


def test_the_interval_of_a_worked_example() -> None:
    estimate = rogan_gladen(180, 264, sensitivity=(95, 100), specificity=(90, 100))
    assert estimate is not None
    assert estimate.rate == pytest.approx((180 / 264 - 0.1) / 0.85)
    assert estimate.interval == pytest.approx(_by_hand(180, 264, (95, 100), (90, 100)))
    assert (estimate.apparent, estimate.sensitivity, estimate.specificity) == (180 / 264, 0.95, 0.9)


def _by_hand(x: int, n: int, se: tuple[int, int], sp: tuple[int, int]) -> tuple[float, float]:
    """In the words of the paper: AP', Se', Sp', P', dP, and half a hit and a miss more."""
    z = 1.959963984540054
    ap_ = (x + z**2 / 2) / (n + z**2)
    se_, sp_ = (se[0] + 0.5) / (se[1] + 1), (sp[0] + 0.5) / (sp[1] + 1)
    p_ = (ap_ + sp_ - 1) / (se_ + sp_ - 1)
    var_se, var_sp = se_ * (1 - se_) / (se[1] + 1), sp_ * (1 - sp_) / (sp[1] + 1)
    d_p = 2 * z**2 * (p_ * var_se - (1 - p_) * var_sp)
    var = ap_ * (1 - ap_) / (n + z**2) + p_**2 * var_se + (1 - p_) ** 2 * var_sp
    half = z * (var / (se_ + sp_ - 1) ** 2) ** 0.5
    return p_ + d_p - half, p_ + d_p + half


_PAIR = st.integers(0, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(_PAIR, _PAIR, _PAIR)
def test_the_rate_is_in_its_interval_and_both_mirror(
    run: tuple[int, int], sensitivity: tuple[int, int], specificity: tuple[int, int]
) -> None:
    passed, total = run
    estimate = rogan_gladen(passed, total, sensitivity=sensitivity, specificity=specificity)
    other = rogan_gladen(total - passed, total, sensitivity=specificity, specificity=sensitivity)
    if estimate is None or other is None:
        assert estimate is other
        return
    assert 0 <= estimate.interval.low <= estimate.rate <= estimate.interval.high <= 1
    assert other.rate == pytest.approx(1 - estimate.rate, abs=1e-9)
    mirrored = (1 - estimate.interval.high, 1 - estimate.interval.low)
    assert other.interval == pytest.approx(mirrored, abs=1e-9)


@pytest.mark.parametrize(
    ("sensitivity", "specificity"),
    [
        ((50, 100), (50, 100)),  # a coin
        ((10, 100), (10, 100)),  # worse than one
        ((60, 100), (50, 100)),  # better, perhaps
        ((100, 100), (0, 100)),  # passes everything
        ((1, 1), (1, 1)),
        ((0, 0), (100, 100)),
        ((100, 100), (0, 0)),
    ],
)
def test_a_judge_no_better_than_chance_corrects_nothing(
    sensitivity: tuple[int, int], specificity: tuple[int, int]
) -> None:
    assert rogan_gladen(50, 100, sensitivity=sensitivity, specificity=specificity) is None


def test_a_judge_that_is_clearly_better_than_chance_does() -> None:
    estimate = rogan_gladen(50, 100, sensitivity=(60, 100), specificity=(60, 100))
    assert estimate is not None
    assert estimate.rate == pytest.approx(0.5)
    assert estimate.interval == (0, 1)


def test_no_counts_give_no_estimate() -> None:
    assert rogan_gladen(0, 0, sensitivity=(100, 100), specificity=(100, 100)) is None


@pytest.mark.parametrize("pair", [(-1, 5), (6, 5), (1, 0)])
def test_counts_that_cannot_be_are_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="trials"):
        rogan_gladen(*pair, sensitivity=(9, 10), specificity=(9, 10))
    with pytest.raises(ValueError, match="trials"):
        rogan_gladen(1, 2, sensitivity=pair, specificity=(9, 10))
    with pytest.raises(ValueError, match="trials"):
        rogan_gladen(1, 2, sensitivity=(9, 10), specificity=pair)
    with pytest.raises(ValueError, match="confidence"):
        rogan_gladen(1, 2, sensitivity=(9, 10), specificity=(9, 10), confidence=1)


def test_a_smaller_calibration_widens_the_interval() -> None:
    widths = []
    for n in (20, 100, 1000):
        pair = (n * 9 // 10, n)
        estimate = rogan_gladen(250, 500, sensitivity=pair, specificity=pair)
        assert estimate is not None
        widths.append(estimate.interval.high - estimate.interval.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[2]


def test_the_interval_covers_the_true_rate() -> None:
    """Cells like those of scripts/bench_judge_stats.py; the error of 4,000 draws is 0.35 %."""
    generator = np.random.default_rng(20)
    draws = 4_000
    judge = cache(rogan_gladen)
    for rate, (se, sp), n in product((0.1, 0.5, 0.9), ((0.8, 0.99), (0.95, 0.9)), (100, 500)):
        passes = rate * se + (1 - rate) * (1 - sp)
        covered = 0
        for passed, hits, rejections in zip(
            generator.binomial(n, passes, draws).tolist(),
            generator.binomial(132, se, draws).tolist(),
            generator.binomial(132, sp, draws).tolist(),
            strict=True,
        ):
            estimate = judge(passed, n, sensitivity=(hits, 132), specificity=(rejections, 132))
            assert estimate is not None
            covered += estimate.interval.low <= rate <= estimate.interval.high
        assert 0.93 < covered / draws < 0.97, (rate, se, sp, n)
