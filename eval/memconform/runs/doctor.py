"""`doctor`: checks an SDK step by step, from build to stop, with a hint for each failure."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from memconform.client.client import ContractClient
from memconform.client.failures import CallError, ContractViolatedError
from memconform.client.recorder import record_exchanges
from memconform.client.timings import Timeouts
from memconform.contract.wire import Mode, Profile
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.process import TERM_GRACE_SECONDS
from memconform.daemons.sdk_runner import Daemon, Launch, Progress, SdkRunner
from memconform.daemons.upstream import served
from memconform.errors import DaemonError, MemconformError
from memconform.runs.doctor_checks import LIST_BRAINS, Check, Checks, RefutedClaimError
from memconform.runs.remedies import Remedy, apply, remedies

_CLAIM_CODES = (
    "http_4",
    "mode_not_served",
    "index_incomplete",
    "not_searchable",
    "contract_version",
)
"""Prefixes of codes that show a daemon breaking its claims; others show it absent or broken."""


_DAEMON_DIED = "daemon_died"
_DELETE = "delete brain"
ASK, AUGMENTED = "ask", "ask augmented"
_MOST_REMEDIES = 12
"""Attempts at a check, each after the lines that the one before suggested."""
_FAULTS_OF_AN_EMPTY_BRAIN = ("bad_retrieval", "http_404", "delete_failed")
"""Codes of failed checks that a brain that could not be filled may explain."""
_DEATH_SECONDS = 2.0
"""How long to wait, after a failed step, for the report that the daemon has died."""
_PROMPT_SECONDS = 0.05
"""How long to wait for such a report after steps that passed."""


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of one check; `error` is None if it passed."""

    name: str
    detail: str = ""
    error: MemconformError | None = None
    remedies: tuple[Remedy, ...] = ()
    """Lines of the sdk.toml that may help."""
    is_needed: bool = True
    """Whether a measurement needs it; otherwise an error is a warning, and `conform` decides."""
    untested: str = ""
    """Why the check says nothing about the daemon; then `error` is None."""


BeforeEnd = Callable[[Daemon, str], Awaitable[None]]
"""Called with the running daemon and the id of its brain, before the brain is deleted."""


async def examine(
    runner: SdkRunner,
    folder: Path,
    headers: dict[str, str],
    upstream: UpstreamKind,
    *,
    progress: Progress = lambda _: None,
    before_end: BeforeEnd | None = None,
) -> AsyncGenerator[Step, None]:
    """Check an SDK step by step; ends early once no further step is possible.

    Failures are yielded as steps, not raised. The checks use a brain of their own and delete it at
    the end.
    """
    notes: list[str] = []

    def note(line: str) -> None:
        notes.append(line)
        progress(line)

    stage = "build"
    try:
        await runner.build(note)
        yield Step("build", notes[-1] if notes else "up to date")
        stage = "start"
        async with AsyncExitStack() as stack:
            launch = Launch(run_id=f"doctor-{secrets.token_hex(4)}", folder=folder)
            daemon = await stack.enter_async_context(served(runner, launch, upstream))
            ready = "" if daemon.ready_ms is None else f"ready after {daemon.ready_ms:.0f} ms, "
            yield Step("start", f"{ready}{daemon.base_url}")
            client = await stack.enter_async_context(
                ContractClient(
                    daemon.base_url,
                    timeouts=Timeouts().at_least(runner.call_timeout_s),
                    headers=headers,
                    dialect=runner.dialect,
                )
            )
            stage = "stop"
            async for step in _run_checks(runner, daemon, client, before_end):
                yield step
                if step.error is not None and step.error.code == _DAEMON_DIED:
                    return
            ending = await _ending(daemon, _PROMPT_SECONDS)
            process = daemon.process
        if ending is not None:
            yield Step("stop", error=_died(daemon, "before it was stopped", ending))
        elif process is not None and process.ignored_sigterm:
            yield Step("stop", error=_ignored_sigterm(daemon))
        else:
            yield Step(
                "stop", "ended, and its port is closed" if runner.managed else "left running"
            )
    except MemconformError as error:
        yield Step(stage, error=error, remedies=tuple(remedies(stage, error, (), runner)))


async def _run_checks(
    runner: SdkRunner, daemon: Daemon, client: ContractClient, before_end: BeforeEnd | None
) -> AsyncGenerator[Step, None]:
    """Run each check in turn; ends early if the daemon dies.

    A check that a line of the sdk.toml may help is run again as if the line were there, so that the
    next obstacle shows too.
    """
    brain = f"mc-doctor-{secrets.token_hex(4)}"
    checks = Checks(runner, daemon, client, brain)
    steps: list[tuple[str, Check]] = [
        ("health", checks.health),
        ("version", checks.version),
        ("ingest", checks.ingest),
    ]
    modes = runner.modes or (Mode.AUTO,)
    steps += [(f"search {mode.value}", checks.search(mode)) for mode in modes]
    if Profile.ASK in runner.profiles:
        steps += [(ASK, checks.ask("ask-basic")), (AUGMENTED, checks.ask("ask-augmented"))]
    unneeded = checks.unneeded()
    steps += unneeded.items()
    steps.append((_DELETE, checks.delete))
    is_filled = True
    reader_fault: MemconformError | None = None
    for name, check in steps:
        if name == _DELETE and before_end is not None:
            await before_end(daemon, brain)
        for tries in range(_MOST_REMEDIES):
            step = await _run_step(name, check, runner)
            if name in unneeded or _is_finding(step, runner):
                step = replace(step, is_needed=False, remedies=())
            if step.error is not None:
                # A connection breaks a moment before the death of its daemon is known.
                ending = await _ending(daemon, _DEATH_SECONDS)
                if ending is not None:
                    during = f"during this step ({step.error.code}: {step.error.message})"
                    yield Step(name, error=_died(daemon, during, ending))
                    return
            if tries and step.error is None:
                step = replace(step, detail=f"with that: {step.detail}")
            if not is_filled:
                step = _without_fault_of_an_empty_brain(step)
            if name == AUGMENTED and reader_fault is not None:
                step = _without_the_same_fault(step, reader_fault)
            yield step
            certain = [remedy for remedy in step.remedies if remedy.is_certain]
            if step.error is None or not certain:
                break
            for remedy in certain:
                apply(remedy, runner, client)
        is_filled = is_filled and not (name == "ingest" and step.error is not None)
        reader_fault = step.error if name == ASK else reader_fault


def _is_finding(step: Step, runner: SdkRunner) -> bool:
    """Whether a memory system was seen not to find something, which is a finding."""
    is_lack = step.error is not None and step.error.code == "bad_retrieval"
    return is_lack and not runner.has_contract


def _without_fault_of_an_empty_brain(step: Step) -> Step:
    """The step as untested, if the failed ingest may be all that it failed for."""
    if step.error is None or step.error.code not in _FAULTS_OF_AN_EMPTY_BRAIN:
        return step
    if step.name == LIST_BRAINS:
        return step
    reason = f"untested, because ingest failed ({step.error.code}: {step.error.message})"
    return Step(step.name, is_needed=step.is_needed, untested=reason)


def _without_the_same_fault(step: Step, reader_fault: MemconformError) -> Step:
    """The step as untested, if it failed as the basic reader did: one cause is one finding."""
    if step.error is None or step.error.code != reader_fault.code:
        return step
    return Step(step.name, untested=f"fails as {ASK} does ({reader_fault.code})")


async def _ending(daemon: Daemon, seconds: float) -> str | None:
    """How the daemon ended, if it ends within `seconds`; None while it runs."""
    try:
        async with asyncio.timeout(seconds):
            return await daemon.wait_exit()
    except TimeoutError:
        return None


def _died(daemon: Daemon, when: str, ending: str) -> DaemonError:
    return DaemonError(
        f"the daemon died {when}: {ending}",
        code=_DAEMON_DIED,
        hint="fix the crash that the end of the daemon's log shows, then run doctor again",
        excerpt=daemon.log_tail(),
    )


def _ignored_sigterm(daemon: Daemon) -> RefutedClaimError:
    return RefutedClaimError(
        f"the daemon was still running {TERM_GRACE_SECONDS:g} s after SIGTERM and had to be killed",
        code="sigterm_ignored",
        hint="end on SIGTERM, even if streams are open (rule robust.stop)",
        excerpt=daemon.log_tail(),
    )


async def _run_step(name: str, check: Callable[[], Awaitable[str]], runner: SdkRunner) -> Step:
    with record_exchanges() as exchanges:
        try:
            return Step(name, await check())
        except DaemonError as error:
            if error.code == "seed_failed" and exchanges:
                error.hint = f"repeat the call with: {exchanges[-1].curl()}"
            helps = tuple(remedies(name, error, exchanges, runner))
            refuted = _refuted(error) if error.code in _CLAIM_CODES else error
            return Step(name, error=refuted, remedies=helps)
        except MemconformError as error:
            return Step(name, error=error)
        except CallError as error:
            hint = f"repeat the call with: {exchanges[-1].curl()}" if exchanges else ""
            answered = isinstance(error, ContractViolatedError) or error.code.startswith(
                _CLAIM_CODES
            )
            error_class = RefutedClaimError if answered else DaemonError
            return Step(
                name,
                error=error_class(error.message, code=error.code, hint=hint, excerpt=error.body),
                remedies=tuple(remedies(name, error, exchanges, runner)),
            )


def _refuted(error: DaemonError) -> RefutedClaimError:
    return RefutedClaimError(error.message, code=error.code, hint=error.hint, excerpt=error.excerpt)
