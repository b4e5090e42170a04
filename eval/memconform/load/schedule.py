"""Loads one SDK after another with the same arrivals, and yields what happens as events."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from memconform.client.failures import CallError
from memconform.concurrency import InterruptedRunError, is_cancelled
from memconform.contract.core import Version
from memconform.daemons.limits import allow_files, explained
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.errors import DaemonError, ExitCode, MemconformError, UsageError, gravest
from memconform.ingest.records import SeedRecord
from memconform.load.events import (
    LoadEvent,
    LoadFinished,
    SdkHalted,
    SdkStarted,
    StepFinished,
    StepStarted,
)
from memconform.load.operations import Operations, WriteBrain
from memconform.load.plan import LoadPlan
from memconform.load.records import LoadReport, SdkLoad, StepRecord
from memconform.load.step_runner import StepRunner
from memconform.load.verdict import missed_p99, saturation
from memconform.measuring.daemon_session import DaemonSession, daemon_session
from memconform.measuring.proven_brain import OpenBrain, open_brain
from memconform.records import Incident, SkipRecord
from memconform.storage.folders import DaemonFolder, RunFolder
from memconform.storage.provenance import Start
from memconform.storage.sink import replacing


@dataclass(slots=True)
class _Facts:
    """What is known of one SDK so far."""

    runner: SdkRunner
    version: Version | None = None
    ready_ms: float | None = None
    seed: SeedRecord | None = None
    steady_questions: int = 0
    steps: list[StepRecord] = field(default_factory=list)
    error: MemconformError | None = None

    def record(self) -> SdkLoad:
        return SdkLoad(
            sdk=self.runner.name,
            version=self.version.version if self.version else None,
            build_hash=self.runner.build_hash(),
            variables=self.runner.variables(),
            ready_ms=self.ready_ms,
            seed=self.seed,
            steady_questions=self.steady_questions,
            steps=self.steps,
            saturation=saturation(self.steps),
            incident=None if self.error is None else Incident.of(self.error),
        )


async def execute_load(
    plan: LoadPlan,
    runners: Sequence[SdkRunner],
    folder: RunFolder,
    skipped: Sequence[SkipRecord] = (),
) -> AsyncGenerator[LoadEvent, None]:
    """Load each SDK in turn; the last event contains the report.

    The result file is written after every step: what was measured before an interrupt stays.

    Raises:
        UsageError: if the only SDK, or the corpus for it, cannot be used.
        ResultsError: if results cannot be written.
    """
    start, loads = Start(), list[_Facts]()
    allow_files(plan.connections + plan.slow_readers, flag="--max-in-flight")
    for runner in runners:
        facts = _Facts(runner)
        loads.append(facts)
        yield SdkStarted(runner.name)
        try:
            async with aclosing(_load(plan, facts, folder)) as events:
                async for event in events:
                    if isinstance(event, StepFinished):
                        facts.steps.append(event.record)
                        await asyncio.to_thread(
                            _write, folder, _report(plan, start, folder, loads, skipped)
                        )
                    yield event
        except UsageError as error:
            if len(runners) == 1:
                folder.remove()
                raise
            facts.error = error
        except DaemonError as error:
            # An error during the shutdown of an interrupted load replaces the cancellation.
            facts.error = _interrupted() if is_cancelled() else error
        except asyncio.CancelledError:
            facts.error = _interrupted()
        if facts.error is not None:
            yield SdkHalted(runner.name, facts.error)
        if isinstance(facts.error, InterruptedRunError):
            break
    report = _report(plan, start, folder, loads, skipped)
    _write(folder, report)
    yield LoadFinished(report, folder.result)


def _interrupted() -> InterruptedRunError:
    return InterruptedRunError(
        "stopped before the end",
        code="interrupted",
        hint="the result has the steps that were finished; the others need another call",
    )


async def _load(
    plan: LoadPlan, facts: _Facts, folder: RunFolder
) -> AsyncGenerator[LoadEvent, None]:
    """Start a daemon, prove its brain, and run the steps.

    Raises:
        DaemonError: if nothing more can be measured.
    """
    runner = facts.runner
    of_daemon = DaemonFolder(folder.path / runner.name)
    async with daemon_session(
        runner,
        Launch(run_id=folder.path.name, folder=of_daemon.path),
        plan.upstream,
        connections=plan.connections + 1,
        timeouts=plan.timeouts,
        headers=plan.headers,
        folder=of_daemon,
    ) as session:
        facts.ready_ms = session.daemon.ready_ms
        await session.require_version()
        facts.version = session.version
        name = f"mc-{folder.path.name}"
        async with open_brain(session, runner, name, plan.corpus) as brain:
            operations = await _prepare(plan, session, brain, facts)
            try:
                steps = StepRunner(plan, session, operations)
                for step in plan.steps:
                    yield StepStarted(runner.name, step)
                    record, error = await steps.run(step)
                    yield StepFinished(runner.name, record)
                    if error is not None:
                        raise explained(error, of_daemon.path, managed=runner.managed)
            finally:
                await _drop(operations.writes, runner)


async def _prepare(
    plan: LoadPlan, session: DaemonSession, brain: OpenBrain, facts: _Facts
) -> Operations:
    """Prove the brain, create the one for writes, and search for each question.

    Raises:
        DaemonError: if the index is not proven, or a request fails.
    """
    proven = await brain.prove(plan.mode, again="another call")
    facts.seed = proven.seeded.record
    texts = [question.question for question in plan.questions]
    operations = Operations(proven, plan.mode, plan.top_k, texts, None)
    try:
        await operations.warm_up()
        if plan.slow_readers:
            operations.prepare_slow_asks()
        if "ingest" in plan.mix:
            operations.writes = await WriteBrain.create(
                session.client, brain.runner, f"{brain.name}-writes", plan.corpus
            )
    except CallError as error:
        raise await session.monitor.cause_of(
            DaemonError(
                f"a request before the load failed: {error.message}",
                code=error.code,
                hint="memconform doctor tries each call for itself",
                excerpt=error.body,
            )
        ) from error
    facts.steady_questions = len(operations.rankings)
    return operations


async def _drop(writes: WriteBrain | None, runner: SdkRunner) -> None:
    """Delete the brain of the writes from a daemon that somebody else has started."""
    if writes is None or runner.managed:
        return
    try:
        async with asyncio.timeout(10):
            await writes.client.delete_brain(writes.name)
    except (CallError, TimeoutError):
        return


def _report(
    plan: LoadPlan,
    start: Start,
    folder: RunFolder,
    loads: Sequence[_Facts],
    skipped: Sequence[SkipRecord],
) -> LoadReport:
    sdks = [facts.record() for facts in loads]
    limit = plan.most_p99_ms
    missed = (
        [line for each in sdks for step in each.steps for line in missed_p99(each.sdk, step, limit)]
        if limit is not None
        else []
    )
    return LoadReport(
        **start.header(plan.command),
        run_id=folder.path.name,
        dataset=plan.dataset,
        dataset_sha256=plan.dataset_sha256,
        questions=len(plan.questions),
        mode=plan.mode,
        top_k=plan.top_k,
        upstream=plan.upstream,
        seed=plan.seed,
        duration_s=plan.duration_s,
        mix=dict(plan.mix),
        timeout_s=plan.timeouts.total,
        in_flight_limit=plan.in_flight_limit,
        most_p99_ms=limit,
        missed=missed,
        sdks=sdks,
        skipped=list(skipped),
        exit_code=int(_exit_code(plan, loads, missed)),
    )


def _exit_code(plan: LoadPlan, loads: Sequence[_Facts], missed: Sequence[str]) -> ExitCode:
    """1 for a missed threshold, 3 for an SDK that failed or of which nothing was measured."""
    codes = [ExitCode.FAILED] if missed else []
    for facts in loads:
        if facts.error is not None:
            codes.append(facts.error.exit_code)
        elif not any(step.status == "measured" for step in facts.steps):
            codes.append(ExitCode.DAEMON)
        if plan.most_p99_ms is not None and any(map(_is_undecided, facts.steps)):
            codes.append(ExitCode.INCONCLUSIVE)
    return gravest(codes)


def _is_undecided(step: StepRecord) -> bool:
    """Whether a step of a rate has no 99th percentile because it is too short or not measured."""
    if step.rate is None:
        return False
    if step.status != "measured":
        return True
    return any(
        each.latency is not None and each.latency.p99_ms is None and not each.errors
        for each in step.operations
    )


def _write(folder: RunFolder, report: LoadReport) -> None:
    with replacing(folder.result) as target:
        target.write_json(report)
