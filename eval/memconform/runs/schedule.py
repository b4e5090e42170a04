"""Executes a plan and yields what happens as events."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from memconform.client.recorder import keep_bodies
from memconform.concurrency import interruption, is_cancelled
from memconform.contract.core import Version
from memconform.contract.wire import Mode
from memconform.daemons.limits import allow_files, explained
from memconform.daemons.sdk_runner import Daemon, Launch, SdkRunner
from memconform.daemons.upstream import upstream_of
from memconform.datasets.question import Question
from memconform.errors import DaemonError, MemconformError, UsageError
from memconform.ingest.records import SeedRecord
from memconform.measuring.daemon_session import daemon_session
from memconform.measuring.scenarios import SCENARIOS
from memconform.records import Incident
from memconform.runs.events import (
    AskingStarted,
    BrainSeeded,
    DaemonReady,
    Event,
    Notice,
    QuestionFinished,
    RunFinished,
    RunHalted,
    RunStarted,
)
from memconform.runs.journal import Journal
from memconform.runs.plan import Plan, own_brain
from memconform.runs.preflight import advise, brain_verifier, require_same_auto, verify_claims
from memconform.runs.question_runner import QuestionRunner, is_applicable
from memconform.runs.result_builder import ResultBuilder, RunOutline, question_results
from memconform.runs.results import DaemonRecord, UpstreamRecord, VerificationRecord
from memconform.runs.upstream_use import UpstreamUse, not_called
from memconform.storage.body_files import BodyFiles
from memconform.storage.folders import RunFolder, new_run_id
from memconform.upstream.prompt_watch import UpstreamWatch


@dataclass(slots=True)
class _RunFacts:
    """Facts about the daemon and its brain, filled in during the run."""

    adopted: bool = False
    """Whether attempts of an earlier run count, so that this daemon did only a part of the work."""
    daemon: Daemon | None = None
    version: Version | None = None
    seeded: SeedRecord | None = None
    verification: VerificationRecord | None = None
    upstream: UpstreamRecord | None = None

    def record(self, build_hash: str | None) -> DaemonRecord:
        daemon = None if self.adopted else self.daemon
        resources = daemon.resources() if daemon else None
        return DaemonRecord(
            name=self.version.name if self.version else None,
            version=self.version.version if self.version else None,
            build_hash=build_hash,
            ready_ms=daemon.ready_ms if daemon else None,
            rss_peak_bytes=resources.rss_peak_bytes if resources else None,
            cpu_seconds=resources.cpu_seconds if resources else None,
        )


async def execute(plan: Plan, runner: SdkRunner) -> AsyncGenerator[Event, None]:
    """Run `plan` against the SDK of `runner`.

    A DaemonError, or a cancellation of the iterating task, ends in a result that records it, with
    the remaining questions as `not_run`.

    Raises:
        UsageError: if the plan cannot be executed, or the resumed journal cannot be read; the run's
            folder is removed unless it holds attempts.
        ResultsError: if results cannot be written.
    """
    started = datetime.now(UTC)
    run_id = new_run_id(started, runner.name, plan.settings.scenario)
    folder = RunFolder(plan.output, run_id)
    builder = ResultBuilder(RunOutline.of(plan, runner.name, run_id, started))
    builder.write_manifest(folder)
    journal = Journal(folder.journal, builder.journal_header())
    if plan.resumed is not None:
        try:
            journal.adopt(plan.resumed, reverify=plan.reverify)
        except MemconformError:
            journal.close({"ended": "not resumed"})
            folder.remove()
            raise
    facts = _RunFacts(adopted=not journal.is_empty)
    halted: MemconformError | None = None
    yield RunStarted(
        run_id, runner.name, plan.settings.scenario, plan.settings.mode, plan.selected.size
    )
    try:
        async with aclosing(_stages(plan, runner, folder, journal, facts)) as events:
            async for event in events:
                if isinstance(event, RunHalted):
                    halted = explained(event.error, folder.path, managed=runner.managed)
                    yield RunHalted(halted)
                else:
                    yield event
    except UsageError:
        journal.close({"ended": "usage error"})
        if journal.is_empty:
            folder.remove()
        raise
    except DaemonError as error:
        # An error raised while an interrupted run shuts down replaces the cancellation.
        halted = interruption() if is_cancelled() else halted or error
        yield RunHalted(error)
    except asyncio.CancelledError:
        halted = interruption()
        yield RunHalted(halted)
    except Exception:
        # A fault of the harness or a scorer: measurements are kept, and --resume continues.
        journal.close({"ended": "error"})
        raise
    incident = Incident.of(halted) if halted else None
    daemon = facts.record(plan.settings.build_hash)
    builder.count_unfinished(halted)
    summary = builder.finish(
        folder,
        journal,
        question_results(plan, journal),
        incident,
        daemon,
        facts.seeded,
        facts.verification,
        facts.upstream,
    )
    yield RunFinished(
        summary, builder.highlights, folder.result, folder.publish(started, runner.name)
    )


async def _stages(
    plan: Plan, runner: SdkRunner, folder: RunFolder, journal: Journal, facts: _RunFacts
) -> AsyncGenerator[Event, None]:
    async for note in _build(runner):
        yield Notice(note)
    allow_files(min(plan.concurrency, plan.selected.size * plan.settings.repeat))
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            daemon_session(
                runner,
                Launch(run_id=folder.path.name, folder=folder.path, port=plan.port, sampled=True),
                plan.settings.upstream,
                connections=plan.concurrency + 1,
                timeouts=plan.timeouts,
                headers=plan.headers,
                rank_by=plan.settings.rank_by,
                folder=folder,
            )
        )
        client, daemon = session.client, session.daemon
        # First: what it took to start is known of a daemon without a version, too.
        facts.daemon = daemon
        await session.require_version()
        facts.version = session.version
        # With several questions in flight, a prompt cannot be attributed to one of them.
        address = upstream_of(daemon)
        watch = (
            await stack.enter_async_context(aclosing(UpstreamWatch(address)))
            if address and plan.concurrency == 1
            else None
        )
        yield DaemonReady(daemon.base_url, daemon.ready_ms)
        brain = plan.settings.brain or own_brain(folder.path.name)
        verifier = await stack.enter_async_context(brain_verifier(plan, runner, session, brain))
        if verifier.seeded is not None:
            facts.seeded = verifier.seeded.record
            yield BrainSeeded(facts.seeded)
        auto_modes = None
        if not plan.settings.allow_fallback and runner.has_contract:
            query = next(question.question for question in plan.selected)
            with keep_bodies(BodyFiles(folder.path).keep_from_here):
                auto_modes = await verify_claims(client, plan, runner, brain, query)
            if plan.settings.mode is Mode.AUTO:
                require_same_auto(auto_modes, journal.adopted_modes)
        question_runner = QuestionRunner(
            settings=plan.settings,
            scenario=SCENARIOS[plan.settings.scenario],
            scorer=plan.scorer,
            session=session,
            journal=journal,
            verifier=verifier,
            auto_modes=auto_modes,
            advise=lambda error: advise(error, plan, runner),
            reverify=plan.reverify,
            watch=watch,
            has_contract=runner.has_contract,
        )
        use = UpstreamUse(address, journal) if address else None
        if use is not None:
            await use.begin()
        try:
            async with aclosing(_ask(plan, question_runner)) as events:
                async for event in events:
                    yield event
        finally:
            facts.verification = question_runner.checkpoints.record()
            if use is not None:
                facts.upstream = await use.finish(question_runner.answered, daemon)
            await question_runner.close()
        if facts.upstream is not None and facts.upstream.ignored and not question_runner.halted:
            yield RunHalted(not_called(facts.upstream))


async def _build(runner: SdkRunner) -> AsyncGenerator[str, None]:
    """Build the SDK, yielding progress messages."""
    notes: asyncio.Queue[str | None] = asyncio.Queue()
    building = asyncio.create_task(runner.build(notes.put_nowait))
    building.add_done_callback(lambda _: notes.put_nowait(None))
    try:
        while (note := await notes.get()) is not None:
            yield note
        await building
    finally:
        building.cancel()
        await asyncio.gather(building, return_exceptions=True)


async def _ask(plan: Plan, question_runner: QuestionRunner) -> AsyncGenerator[Event, None]:
    scenario = SCENARIOS[plan.settings.scenario]

    def unasked() -> Iterator[tuple[int, Question]]:
        for row, question in enumerate(plan.selected):
            if is_applicable(question, scenario) and question_runner.is_open(row):
                yield row, question

    yield AskingStarted(sum(1 for _ in unasked()))
    pending = unasked()
    first = next(pending, None)
    if first is not None:
        await question_runner.warm_up(first[1])
        pending = chain([first], pending)
    async with aclosing(question_runner.ask_all(pending, plan.concurrency)) as questions:
        async for question in questions:
            yield QuestionFinished(question)
    if question_runner.halted is not None:
        yield RunHalted(question_runner.halted)
