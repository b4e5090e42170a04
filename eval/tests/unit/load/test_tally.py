"""Counts, quantiles and rates of a step."""

import pytest
from hdrh.histogram import HdrHistogram

from memconform.load.arrivals import Arrival
from memconform.load.generator import Sample
from memconform.load.tally import Histogram, Tally


def _sample(at: float, latency: float, code: str | None = None, in_flight: int = 0) -> Sample:
    return Sample("search", code, at, at, at + latency, in_flight)


def _tally(latency: float, *, count: int = 1_000, growth: float = 0.0) -> Tally:
    tally = Tally(["search"], 10)
    for n in range(count):
        tally.add(_sample(10 * n / count, latency + growth * n / count))
    return tally


def test_quantiles_are_those_of_the_durations() -> None:
    histogram = Histogram()
    for ms in range(1, 1_001):
        histogram.add(ms / 1e3)
    assert histogram.quantile_ms(0.5) == pytest.approx(500, rel=2e-3)
    assert histogram.quantile_ms(0.99) == pytest.approx(990, rel=2e-3)
    assert histogram.quantile_ms(0.999) == pytest.approx(999, rel=2e-3)


@pytest.mark.parametrize(("count", "q"), [(1, 0.5), (99, 0.99), (999, 0.999), (0, 0.5)])
def test_a_quantile_above_which_nothing_lies_is_unknown(count: int, q: float) -> None:
    histogram = Histogram()
    for _ in range(count):
        histogram.add(0.1)
    assert histogram.quantile_ms(q) is None
    histogram.add(0.1)
    if count:
        assert histogram.quantile_ms(q) is not None


def test_a_failed_request_is_slower_than_any_that_was_answered() -> None:
    """A daemon that refuses what would be slow must not look fast."""
    tally = Tally(["search"], 10)
    for n in range(98):
        tally.add(_sample(n / 10, 0.01))
    for n in range(2):
        tally.add(_sample(n, 30, "timeout"))
    [record] = tally.operations()
    assert record.latency is not None
    assert record.latency.p50_ms == pytest.approx(10, rel=1e-2)
    assert record.latency.p90_ms == pytest.approx(10, rel=1e-2)
    assert record.latency.p99_ms is None
    assert record.errors == {"timeout": 2}
    assert (record.sent, record.answered) == (100, 98)


def test_histograms_of_two_shards_can_be_added() -> None:
    records = [_tally(latency).operations()[0] for latency in (0.01, 0.03)]
    merged = HdrHistogram(1, 3_600_000_000, 3)
    for record in records:
        assert record.latency is not None
        merged.add(HdrHistogram.decode(record.latency.histogram))
    assert merged.get_total_count() == 2_000
    assert merged.get_value_at_percentile(25) == pytest.approx(10_000, rel=1e-2)
    assert merged.get_value_at_percentile(75) == pytest.approx(30_000, rel=1e-2)


def test_a_long_latency_that_stays_the_same_lowers_no_rate() -> None:
    assert _tally(5.0).achieved_per_s == pytest.approx(100)


def test_a_latency_that_grows_lowers_the_rate() -> None:
    # The last answer comes 10 s later than the first would have it: half of the rate.
    assert _tally(0.1, growth=10).achieved_per_s == pytest.approx(50, rel=0.02)


def test_one_straggler_is_not_the_end() -> None:
    tally = _tally(0.1)
    tally.add(_sample(5, 25))
    assert tally.achieved_per_s == pytest.approx(100, rel=0.01)


def test_errors_are_no_throughput() -> None:
    tally = Tally(["search"], 10)
    for n in range(100):
        tally.add(_sample(n / 10, 0.01, "http_503" if n % 2 else None))
    assert tally.achieved_per_s == pytest.approx(5, rel=0.05)


def test_queues_are_those_that_arrivals_found() -> None:
    tally = Tally(["search"], 8)
    for n, found in enumerate((0, 1, 2, 3, 4, 5, 6, 7)):
        tally.add(_sample(n, 0.1, in_flight=found))
    assert tally.in_flight_quarters == [0.5, 2.5, 4.5, 6.5]
    assert tally.in_flight_max == 8
    tally.add_unsent(Arrival(9, 7.5, "search", 0))
    assert tally.in_flight_quarters[3] == pytest.approx(7.0)


def test_a_closed_loop_has_no_latency_from_an_intended_instant() -> None:
    tally = Tally(["search"], 10)
    for n in range(100):
        tally.add(Sample("search", None, None, n / 10, n / 10 + 0.1, 1))
    [record] = tally.operations()
    assert record.latency is None
    assert record.service is not None
    assert record.service.p50_ms == pytest.approx(100, rel=1e-2)
    assert tally.in_flight_quarters == []
    assert tally.achieved_per_s == pytest.approx(10, rel=0.01)
