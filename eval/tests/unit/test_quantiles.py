import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.stats.quantiles import quantiles


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=300))
def test_equals_the_standard_librarys_inclusive_method(values: list[float]) -> None:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    assert quantiles(values) == pytest.approx((cuts[49], cuts[94], cuts[98]))


def test_of_one_value_all_are_that_value() -> None:
    assert quantiles([3.0]) == (3.0, 3.0, 3.0)


def test_of_nothing_there_are_none() -> None:
    assert quantiles([]) is None
