"""Runs one step against one daemon, and says what it may claim."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psutil

from memconform.client.failures import CallError
from memconform.daemons.resources import Sampler
from memconform.errors import DaemonError
from memconform.load.arrivals import arrivals
from memconform.load.generator import Generator, SystemClock
from memconform.load.operations import Operations
from memconform.load.plan import LoadPlan, Step
from memconform.load.records import (
    LatenessRecord,
    ResourceRecord,
    SlowReaderRecord,
    StepRecord,
)
from memconform.load.slow_reader import SlowReaders
from memconform.load.tally import Tally
from memconform.load.verdict import (
    HarnessLimits,
    MachineUse,
    overload,
    saturation_reasons,
    starvation,
)
from memconform.measuring.daemon_session import DaemonSession
from memconform.records import Failure


@dataclass(slots=True)
class _Usage:
    """What programs used while a block ran."""

    took_s: float = 0.0
    harness_cores: float = 0.0
    machine_cores: float = 0.0
    daemon: ResourceRecord | None = None

    @property
    def machine(self) -> MachineUse:
        own = self.harness_cores + (0.0 if self.daemon is None else self.daemon.cpu_cores)
        others = max(self.machine_cores - own, 0.0)
        return MachineUse(os.cpu_count() or 1, self.machine_cores, others)


@dataclass(frozen=True, slots=True)
class StepRunner:
    """Runs the steps of a plan against one daemon whose brain is proven."""

    plan: LoadPlan
    session: DaemonSession
    operations: Operations

    async def run(self, step: Step) -> tuple[StepRecord, DaemonError | None]:
        """Run a step; returns also the error after which no other can be run.

        The index is verified afterwards. If it changed, or nobody knows, the step is not measured.
        """
        plan = self.plan
        tally = Tally(list(plan.mix), plan.duration_s)
        schedule = arrivals(step, plan.duration_s, plan.mix, len(plan.questions), plan.seed)
        generator = Generator(
            self.operations.call,
            tally,
            SystemClock(),
            lambda: self.session.monitor.halted is not None,
        )
        async with self._observed() as usage, self._slow_readers() as readers:
            if step.workers is None:
                await generator.open_loop(schedule, plan.in_flight_limit)
            else:
                await generator.closed_loop(schedule, step.workers, plan.duration_s, plan.seed)
        error = await self._verify()
        failure = _not_measured(tally, usage, error, plan.lateness_limit_ms)
        if failure is None and step.rate is not None and saturation_reasons(tally, plan.duration_s):
            failure = starvation(usage.machine)
        slow = None if readers is None else readers.record()
        return _record(plan, step, tally, usage, slow, failure), error

    @asynccontextmanager
    async def _observed(self) -> AsyncIterator[_Usage]:
        """Measure what the daemon, the harness and the machine use while the block runs."""
        process, usage = self.session.daemon.process, _Usage()
        before = Sampler(process.guard_pid) if process is not None else None
        sampler = Sampler(process.guard_pid) if process is not None else None
        if before is not None:
            before.sample()
        sampling = None if sampler is None else asyncio.create_task(sampler.run())
        machine, harness, began = _busy_seconds(), time.process_time(), time.perf_counter()
        try:
            yield usage
        finally:
            usage.took_s = time.perf_counter() - began
            usage.harness_cores = (time.process_time() - harness) / usage.took_s
            usage.machine_cores = max(_busy_seconds() - machine, 0) / usage.took_s
            if sampling is not None:
                sampling.cancel()
                await asyncio.gather(sampling, return_exceptions=True)
            if before is not None and sampler is not None:
                sampler.sample()
                used = sampler.result()
                cpu = max(used.cpu_seconds - before.result().cpu_seconds, 0)
                usage.daemon = ResourceRecord(
                    rss_peak_bytes=used.rss_peak_bytes,
                    cpu_seconds=round(cpu, 3),
                    cpu_cores=round(cpu / usage.took_s, 3),
                )

    @asynccontextmanager
    async def _slow_readers(self) -> AsyncIterator[SlowReaders | None]:
        """Have answers read slowly while the block runs."""
        if not self.plan.slow_readers:
            yield None
            return
        readers = SlowReaders(
            self.session.daemon.base_url, self.plan.slow_readers, self.plan.timeouts.first
        )
        reading = asyncio.create_task(readers.read_all(self.operations.slow_asks))
        try:
            yield readers
        finally:
            reading.cancel()
            [ended] = await asyncio.gather(reading, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended

    async def _verify(self) -> DaemonError | None:
        """Verify the index, and that all that was written is there; returns why not."""
        try:
            await self.operations.brain.verify()
            if self.operations.writes is not None:
                await self.operations.writes.require_complete()
        except DaemonError as error:
            return error
        except CallError as error:
            return DaemonError(
                f"the documents that were written cannot be counted: {error.message}",
                code=error.code,
                hint="see the daemon's log",
                excerpt=error.body,
            )
        return None


def _busy_seconds() -> float:
    """Seconds for which the processors of the machine were busy, of all programs."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0))


def _not_measured(
    tally: Tally, usage: _Usage, error: DaemonError | None, lateness_limit_ms: float
) -> Failure | None:
    """Why a step says nothing of the daemon's speed; None if it does."""
    if error is not None:
        return Failure(code=error.code, message=error.message, hint=error.hint)
    limits = HarnessLimits(lateness_limit_ms, usage.harness_cores)
    if (failure := overload(tally, limits)) is not None:
        return failure
    if not tally.answered:
        codes = ", ".join(f"{n} {code}" for code, n in tally.errors.most_common())
        return Failure(
            code="nothing_answered",
            message=f"no request was answered: {codes or 'none arrived in this time'}",
            hint="check the daemon with memconform doctor, or use a lower rate or a longer time",
        )
    return None


def _record(  # noqa: PLR0917 - what a record is made of
    plan: LoadPlan,
    step: Step,
    tally: Tally,
    usage: _Usage,
    slow_readers: SlowReaderRecord | None,
    failure: Failure | None,
) -> StepRecord:
    offered, operations = tally.sent + tally.unsent, tally.operations()
    if failure is not None:
        # A plausible number would be read, whatever stands beside it.
        nothing = {"latency": None, "service": None}
        operations = [each.model_copy(update=nothing) for each in operations]
    is_rated = step.rate is not None
    reasons = [failure.message] if failure is not None else []
    saturated = None
    if failure is None and is_rated:
        reasons = saturation_reasons(tally, plan.duration_s)
        saturated = bool(reasons)
    return StepRecord(
        rate=step.rate,
        workers=step.workers,
        duration_s=plan.duration_s,
        took_s=round(usage.took_s, 3),
        status="measured" if failure is None else "not_measured",
        saturated=saturated,
        reasons=reasons,
        failure=failure,
        offered=offered,
        sent=tally.sent,
        answered=tally.answered,
        offered_per_s=round(offered / plan.duration_s, 3) if is_rated else None,
        achieved_per_s=round(tally.achieved_per_s, 3) if failure is None else None,
        in_flight_max=tally.in_flight_max,
        in_flight_quarters=tally.in_flight_quarters,
        operations=operations,
        slow_readers=slow_readers,
        lateness=LatenessRecord(
            p50_ms=tally.lateness.quantile_ms(0.5),
            p99_ms=tally.lateness.quantile_ms(0.99),
            max_ms=tally.lateness.max_ms,
            limit_ms=plan.lateness_limit_ms,
            cpu_cores=round(usage.harness_cores, 3),
        ),
        daemon=usage.daemon,
        machine_cores=usage.machine.cores,
        machine_cores_busy=round(usage.machine_cores, 3),
    )
