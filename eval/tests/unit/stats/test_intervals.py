import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.stats.intervals import wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe (1998), Table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_intervals(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 500), st.integers(0, 500))
def test_interval_holds_the_rate_and_mirrors(successes: int, failures: int) -> None:
    trials = successes + failures
    low, high = wilson(successes, trials)
    assert 0 <= low <= high <= 1
    if trials:
        assert low <= successes / trials <= high
        assert (low == 0) == (successes == 0)
        assert (high == 1) == (failures == 0)
    mirrored = wilson(failures, trials)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_no_trials_give_the_whole_interval() -> None:
    assert wilson(0, 0) == (0, 1)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3), (1, 0)])
def test_impossible_counts_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="trials"):
        wilson(successes, trials)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2])
def test_impossible_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        wilson(1, 2, confidence)
