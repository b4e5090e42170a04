"""What a step may claim."""

import pytest

from memconform.load.generator import Sample
from memconform.load.records import LatenessRecord, StepRecord
from memconform.load.tally import Tally
from memconform.load.verdict import (
    HarnessLimits,
    MachineUse,
    missed_p99,
    overload,
    saturation,
    saturation_reasons,
    starvation,
)
from memconform.records import Failure

_LATENESS = LatenessRecord(p50_ms=0.1, p99_ms=1, max_ms=2, limit_ms=25, cpu_cores=0.1)


def _tally(
    *, lateness: float = 0.001, failed: int = 0, growth: float = 0.0, latency: float = 0.01
) -> Tally:
    tally = Tally(["search"], 10)
    for n in range(1_000):
        at = n / 100
        tally.add(
            Sample(
                "search", "timeout" if n < failed else None, at, at, at + latency + growth * at, 0
            )
        )
        tally.add_lateness(lateness)
    return tally


def _step(rate: float | None, *, saturated: bool | None = False, measured: bool = True,
          tally: Tally | None = None) -> StepRecord:  # fmt: skip
    failure = None if measured else Failure(code="harness_overloaded", message="busy")
    return StepRecord(
        rate=rate,
        workers=None if rate else 4,
        duration_s=10,
        took_s=10,
        status="measured" if measured else "not_measured",
        saturated=saturated if measured else None,
        reasons=["it was slow"] if saturated else [],
        failure=failure,
        offered=1_000,
        sent=1_000,
        answered=1_000,
        offered_per_s=100,
        achieved_per_s=100,
        in_flight_max=1,
        in_flight_quarters=[0, 0, 0, 0],
        operations=(tally or _tally()).operations(),
        slow_readers=None,
        lateness=_LATENESS,
        daemon=None,
        machine_cores=2,
        machine_cores_busy=1,
    )


def test_a_harness_in_time_measures() -> None:
    assert overload(_tally(), HarnessLimits(25, 0.3)) is None


def test_a_late_harness_says_how_late_and_what_the_limit_is() -> None:
    failure = overload(_tally(lateness=0.0301), HarnessLimits(25, 0.3))
    assert failure is not None
    assert failure.code == "harness_overloaded"
    assert "30.1 ms late at the 99th percentile, and 25 ms is the limit" in failure.message


def test_a_harness_that_is_never_idle_measures_nothing_even_if_it_sends_in_time() -> None:
    failure = overload(_tally(), HarnessLimits(25, 0.97))
    assert failure is not None
    assert "0.97 of the one processor" in failure.message


def test_with_few_requests_the_longest_lateness_counts() -> None:
    tally = Tally(["search"], 10)
    tally.add_lateness(0.001)
    tally.add_lateness(0.5)
    assert overload(tally, HarnessLimits(25, 0.1)) is not None


def test_a_daemon_that_other_programs_leave_no_processor_is_not_blamed() -> None:
    failure = starvation(MachineUse(cores=2, busy=1.97, others=1.4))
    assert failure is not None
    assert failure.code == "machine_busy"
    assert "other programs used 1.40 of 2 processors" in failure.message


@pytest.mark.parametrize(("busy", "others"), [(1.97, 0.5), (1.6, 1.4)])
def test_a_daemon_that_uses_the_machine_itself_or_leaves_some_of_it_is(
    busy: float, others: float
) -> None:
    assert starvation(MachineUse(cores=2, busy=busy, others=others)) is None


def test_a_daemon_that_keeps_up_is_not_saturated_whatever_its_latency() -> None:
    assert saturation_reasons(_tally(), 10) == []
    assert saturation_reasons(_tally(latency=3.0), 10) == []


def test_a_daemon_that_answers_later_and_later_is_saturated() -> None:
    [reason] = saturation_reasons(_tally(growth=0.2), 10)
    assert reason.startswith("achieved 83")
    assert "95% is needed" in reason


@pytest.mark.parametrize(("failed", "is_saturated"), [(0, False), (10, False), (11, True)])
def test_more_than_one_failed_request_in_a_hundred_is_saturation(
    failed: int, *, is_saturated: bool
) -> None:
    reasons = saturation_reasons(_tally(failed=failed), 10)
    assert bool(reasons) is is_saturated
    if is_saturated:
        assert reasons == ["11 of 1000 requests failed: 11 timeout"]


def test_the_saturation_point_is_the_first_rate_that_was_not_kept_up_with() -> None:
    record = saturation([_step(50), _step(100), _step(200, saturated=True), _step(400)])
    assert record is not None
    assert (record.sustained, record.saturated_at) == (100, 200)
    assert record.statement == "keeps up with 100/s, saturated at 200/s: it was slow"


def test_an_overloaded_harness_is_no_saturation_of_the_daemon() -> None:
    record = saturation([_step(50), _step(100, measured=False)])
    assert record is not None
    assert (record.sustained, record.saturated_at) == (50, None)
    assert record.statement.endswith("not measured: 100/s")
    nothing = saturation([_step(100, measured=False)])
    assert nothing is not None
    assert nothing.statement.startswith("unknown")


def test_closed_loops_have_no_saturation_point() -> None:
    assert saturation([_step(None, saturated=None)]) is None


def test_a_threshold_is_missed_at_measured_rates_only() -> None:
    assert missed_p99("go", _step(50), 5) == ["go 50/s search: p99 10.0 ms, above 5 ms"]
    assert missed_p99("go", _step(50), 50) == []
    assert missed_p99("go", _step(50, measured=False), 5) == []
    assert missed_p99("go", _step(None), 5) == []


def test_a_quantile_that_failures_hide_misses_the_threshold() -> None:
    [line] = missed_p99("go", _step(50, tally=_tally(failed=30)), 1_000)
    assert line == "go 50/s search: no p99, because 30 of 1000 requests failed"
