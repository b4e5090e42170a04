"""What a step may claim: whether it was measured, and whether the daemon kept up."""

from collections.abc import Sequence
from dataclasses import dataclass

from memconform.load.records import SaturationRecord, StepRecord
from memconform.load.tally import Tally
from memconform.printing.plurals import plural
from memconform.records import Failure

MIN_ACHIEVED = 0.95
"""Share of the offered rate below which a daemon does not keep up."""
MAX_ERRORS = 0.01
"""Share of failed requests above which it does not: with more, there is no 99th percentile."""
GROWTH = 2.0
"""The queue grows if arrivals of the last quarter find so many times as many open requests as those
of the second quarter; the first has no queue yet."""
GROWN_BY = 10.0
"""And so many more: a few requests meet by chance."""
MAX_HARNESS_CORES = 0.9
"""Processors that the harness may use. It has one event loop: one that is never idle reads answers
when it gets to them, even if it sends in time."""


BUSY_SHARE = 0.95
"""Share of the machine's processors above which there was none left for the daemon."""
OTHERS_SHARE = 0.5
"""Share that other programs use at least if it was they who left none."""


@dataclass(frozen=True, slots=True)
class MachineUse:
    """Processors of the machine in a step."""

    cores: int
    busy: float
    """Kept busy by all programs."""
    others: float
    """Kept busy by programs that are neither the harness nor the daemon."""


@dataclass(frozen=True, slots=True)
class HarnessLimits:
    """What the harness used, and may use, in a step."""

    lateness_limit_ms: float
    cpu_cores: float


def overload(tally: Tally, limits: HarnessLimits) -> Failure | None:
    """Why the harness could not measure a step; None if it could.

    Latencies of an overloaded harness are its own: neither they nor the rate that was achieved say
    anything of the daemon.
    """
    late = tally.lateness.quantile_ms(0.99)
    # Fewer than a hundred requests have no 99th percentile; the longest is no less.
    late = tally.lateness.max_ms if late is None else late
    if late is not None and late > limits.lateness_limit_ms:
        what = (
            f"it was {late:.1f} ms late at the 99th percentile, and"
            f" {limits.lateness_limit_ms:g} ms is the limit"
        )
    elif limits.cpu_cores > MAX_HARNESS_CORES:
        what = (
            f"it used {limits.cpu_cores:.2f} of the one processor that its event loop can use,"
            f" and {MAX_HARNESS_CORES:g} is the limit"
        )
    else:
        return None
    return Failure(
        code="harness_overloaded",
        message=f"the harness is overloaded, not the daemon: {what}",
        hint="use a lower rate, or a machine with more processors and less other work",
    )


def starvation(machine: MachineUse) -> Failure | None:
    """Why a daemon that did not keep up is not to blame; None if it is.

    A harness may be in time all the same: it needs little, and the daemon as much as it can get.
    """
    if machine.busy < BUSY_SHARE * machine.cores or machine.others < OTHERS_SHARE * machine.cores:
        return None
    return Failure(
        code="machine_busy",
        message=f"the daemon did not keep up, and other programs used {machine.others:.2f} of"
        f" {machine.cores} processors, all of which were busy",
        hint="end the other programs, or use a machine with more processors",
    )


def saturation_reasons(tally: Tally, duration_s: float) -> list[str]:
    """How the daemon did not keep up with an open loop; empty if it did."""
    offered = tally.sent + tally.unsent
    offered_per_s, achieved_per_s = offered / duration_s, tally.achieved_per_s
    reasons = []
    if achieved_per_s < MIN_ACHIEVED * offered_per_s:
        reasons.append(
            f"achieved {achieved_per_s:.1f}/s of {offered_per_s:.1f}/s offered"
            f" ({achieved_per_s / offered_per_s:.0%}, and {MIN_ACHIEVED:.0%} is needed)"
        )
    if queue := tally.in_flight_quarters:
        _, early, _, late = queue
        if late >= GROWTH * early and late - early >= GROWN_BY:
            reasons.append(f"the queue grows: {early:.1f} requests were open, then {late:.1f}")
    if tally.unsent:
        reasons.append(
            f"{plural(tally.unsent, 'request')} not sent: {tally.in_flight_max} were open"
        )
    failed = tally.errors.total()
    if failed > MAX_ERRORS * offered:
        codes = ", ".join(f"{n} {code}" for code, n in tally.errors.most_common())
        reasons.append(f"{failed} of {plural(offered, 'request')} failed: {codes}")
    return reasons


def saturation(steps: Sequence[StepRecord]) -> SaturationRecord | None:
    """Where a daemon stopped keeping up; None without steps of a rate."""
    rated = sorted((step for step in steps if step.rate is not None), key=lambda s: s.rate or 0)
    if not rated:
        return None
    measured = [step for step in rated if step.status == "measured"]
    first = next((step for step in measured if step.saturated), None)
    kept = [step.rate for step in measured if not step.saturated and step.rate is not None]
    below = [rate for rate in kept if first is None or rate < (first.rate or 0)]
    sustained = max(below, default=None)
    unmeasured = [f"{step.rate:g}/s" for step in rated if step.status != "measured"]
    if first is not None:
        statement = f"saturated at {first.rate:g}/s: {'; '.join(first.reasons)}"
        if sustained is not None:
            statement = f"keeps up with {sustained:g}/s, {statement}"
    elif sustained is not None:
        statement = f"keeps up with {sustained:g}/s; not saturated at any measured rate"
    else:
        statement = "unknown: no rate was measured"
    if unmeasured:
        statement += f"; not measured: {', '.join(unmeasured)}"
    return SaturationRecord(
        sustained=sustained,
        saturated_at=None if first is None else first.rate,
        statement=statement,
    )


def missed_p99(sdk: str, step: StepRecord, most_p99_ms: float) -> list[str]:
    """How a measured step of a rate misses the 99th percentile of --max-p99, by operation.

    One that is unknown because too many requests failed is missed; one of too few requests is not.
    """
    if step.status != "measured" or step.rate is None:
        return []
    missed = []
    for each in step.operations:
        if each.latency is None:
            continue
        p99, failed = each.latency.p99_ms, sum(each.errors.values())
        where = f"{sdk} {step.rate:g}/s {each.operation}"
        if p99 is not None and p99 > most_p99_ms:
            missed.append(f"{where}: p99 {p99:.1f} ms, above {most_p99_ms:g} ms")
        elif p99 is None and failed > MAX_ERRORS * each.offered:
            missed.append(f"{where}: no p99, because {failed} of {each.offered} requests failed")
    return missed
