import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.stats.quantiles import QuantileSummary


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=300))
def test_equals_the_standard_librarys_inclusive_method(values: list[float]) -> None:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    summary = QuantileSummary.of(values)
    assert summary is not None
    assert (summary.p50, summary.p95, summary.p99) == pytest.approx((cuts[49], cuts[94], cuts[98]))


def test_of_one_value_all_are_that_value() -> None:
    assert QuantileSummary.of([3.0]) == QuantileSummary(p50=3.0, p95=3.0, p99=3.0)


def test_no_values_have_no_quantiles() -> None:
    assert QuantileSummary.of([]) is None
