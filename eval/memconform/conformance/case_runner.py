"""Runs one case on one daemon and reports the result of each of its checks."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from memconform.conformance.case import Server
from memconform.conformance.case_context import CaseContext, CheckResults, CheckState
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.causes import exit_cause, is_timeout, start_cause
from memconform.conformance.exchange_shapes import WireFault
from memconform.conformance.expectations import describe
from memconform.conformance.fixture import (
    NOT_MANAGED,
    Fixture,
    UntestableError,
    script_body,
)
from memconform.conformance.fixture_documents import (
    InapplicableError,
    StoppedError,
    fixture_steps,
    require_stored,
)
from memconform.conformance.request_bodies import as_json
from memconform.conformance.results import IMPLICIT, CaseResult, Cause, Check, Result
from memconform.conformance.step_executor import JSON_HEADERS, StepExecutor, stopped
from memconform.conformance.step_result import StepResult
from memconform.conformance.valid_requests import rejected_lines
from memconform.conformance.variables import MissingPartError, UnknownVariableError
from memconform.contract.dialect_keys import DialectError
from memconform.contract.wire import Profile
from memconform.errors import DaemonError
from memconform.printing.errors import render_error
from memconform.printing.logs import Logger
from memconform.upstream.script import Script

_log = Logger()

_CONTROL_SECONDS = 10.0
"""Time limit for a control, as long as that of the case's own requests."""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The result of a case, and all its exchanges."""

    result: CaseResult
    exchanges: list[StepResult]
    hung: bool = False
    """Whether the daemon did not even answer the setup request in time."""
    unanswered: bool = False
    """Whether it left any request without an answer."""
    timed_out: bool = False
    """Whether it measured nothing because a start, a setup request or the case timed out."""
    repeated: bool = False
    """Whether this is the repeat of a run that timed out."""


def check_ids(entry: CaseVariant) -> list[str]:
    """Return the ids of all checks of a case, including `wire` and `alive`."""
    return [f"{entry.id}#{slot}" for slot in (*dict.fromkeys(entry.slots()), *IMPLICIT)]


_VACUOUS = "a rejection proves nothing, because a valid request is not served either"
"""Cause of checks that pass on a daemon that rejects everything."""


_MISSING_PART = "a response lacks a part that a later step needs"


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why the rest of a case was not run."""

    why: str
    cause: str
    outcome: StepResult | None = None
    is_harness_fault: bool = False
    is_inapplicable: bool = False
    """Whether the daemon's dialect lacks what the next step needs."""


def skipped_case(entry: CaseVariant, result: Result, why: str, cause: str = "") -> CaseResult:
    """Build the result of a case that was not run: all its checks get `result`, and `cause`."""
    checks = [
        Check(
            id=check,
            result=result,
            level=entry.case.level,
            rules=list(entry.case.rules),
            got=[why],
            causes=[] if result is Result.NOT_APPLICABLE else [Cause(cause=cause or why)],
        )
        for check in check_ids(entry)
    ]
    return CaseResult(case=entry.id, title=entry.case.title, checks=checks)


async def run_case(entry: CaseVariant, fixture: Fixture, brain: str) -> CaseRun:
    """Run a case in a brain of its own; whatever the daemon does is part of the result."""
    context = CaseContext(entry, fixture, brain)
    fixture.last_case = entry.id
    results, stop, timed_out = CheckResults(), None, False
    started = time.perf_counter()
    try:
        async with asyncio.timeout(entry.case.limit_s):
            await _run_steps(entry, context, results)
    except DialectError as error:
        stop = _Stop(error.message, "", is_inapplicable=True)
    except InapplicableError as error:
        stop = _Stop(str(error), "", is_inapplicable=True)
    except Exception as error:  # noqa: BLE001 - a bug of the harness must not lose the other cases
        stop, timed_out = _stop(error, fixture, entry), is_timeout(error)
    finally:
        await _clean_up(entry, context, keep=_is_kept(entry, fixture, results, stop))
        results.wire += context.connection_faults
    broken = any(outcome.ended == "cut" for outcome in context.exchanges)
    exit_reason = context.start_failure or await fixture.unexpected_exit(suspected=broken)
    exited = ""
    if exit_reason is not None:
        exited = context.start_cause or exit_cause(exit_reason, context.exchanges)
    checks = list(_checks(entry, results, stop, exited))
    checks.append(_wire_check(entry, results, stop, exited))
    # A start that timed out is no exit, though it fails the check `alive`.
    has_exited = exit_reason is not None and not context.start_failure
    has_failed = any(check.result in (Result.FAIL, Result.ERROR) for check in checks)
    checks.append(_alive_check(entry, exit_reason, exited))
    took = round((time.perf_counter() - started) * 1e3, 3)
    result = CaseResult(case=entry.id, title=entry.case.title, took_ms=took, checks=checks)
    unanswered = context.hung or any(o.is_unanswered for o in context.exchanges)
    return CaseRun(
        result,
        context.exchanges,
        hung=context.hung,
        unanswered=unanswered,
        timed_out=(timed_out or context.hung) and not has_exited and not has_failed,
    )


def _stop(error: Exception, fixture: Fixture, entry: CaseVariant) -> _Stop:
    """Say why a case ended early."""
    match error:
        case TimeoutError():
            why = f"the case took longer than {entry.case.limit_s:g} s"
            return _Stop(why, "the case takes too long")
        case StoppedError():
            return _Stop(str(error), error.cause, error.outcome)
        case UntestableError() | MissingPartError():
            cause = error.cause if isinstance(error, UntestableError) else _MISSING_PART
            return _Stop(str(error), cause)
        case DaemonError():
            return _Stop(render_error(error), start_cause(error, entry.case.daemon.env))
        case UnknownVariableError() if not fixture.runner.restartable:
            why = f"{error}: {fixture.runner.name} was not started by memconform"
            return _Stop(why, NOT_MANAGED)
    is_case = isinstance(error, UnknownVariableError)
    name = type(error).__name__
    return _Stop(
        str(error) if is_case else f"{name}: {error}",
        "a bug in the case" if is_case else f"a bug in memconform: {name}",
        is_harness_fault=True,
    )


async def _run_steps(entry: CaseVariant, context: CaseContext, results: CheckResults) -> None:
    case, executor = entry.case, StepExecutor(context)
    await _run_controls(entry, context, results)
    if context.fixture.has_upstream:
        await _set_script(context, results, case.upstream)
    if case.brain:
        body = as_json({"brainId": context.variables()["brain"]})
        await _require_status(context, results, "POST /v1/brains", 201, body, server="daemon")
        context.brain_created = True
    if case.documents:
        stored = context.fixture.runner.seed.via in ("documents", "disk")
        has_store = stored or Profile.DOCUMENTS in entry.needed_profiles
        await executor.run(fixture_steps(case.documents, has_store=has_store), results)
        await require_stored(context, case.documents, has_store=has_store)
    await executor.run(case.setup, results)
    await executor.run(case.steps, results)


async def _run_controls(entry: CaseVariant, context: CaseContext, results: CheckResults) -> None:
    """Send the controls of all rejections that the case expects, unless they have been sent."""
    lines, controls = rejected_lines(entry.case), context.fixture.controls
    if controls is None or not lines:
        return
    if context.fixture.has_upstream and not controls.has_all(lines):
        # The script of the case before may let every call fail.
        await _set_script(context, results, None)

    async def send(line: str, headers: Mapping[str, str], body: bytes | None) -> StepResult:
        sender = context.sender("daemon")
        request, exchange = sender.request(line, {**JSON_HEADERS, **headers}, body)
        if line.endswith("/events"):
            stream = await sender.open(request, exchange, _CONTROL_SECONDS)
            await stream.close()
            return stream.outcome
        return await sender.send(request, exchange, _CONTROL_SECONDS)

    for line in lines:
        # Without the route, the step itself is not applicable.
        with suppress(DialectError):
            context.rejection_faults[line] = await controls.fault(line, send)


async def _set_script(context: CaseContext, results: CheckResults, script: Script | None) -> None:
    line, body = "PUT /_control/script", script_body(script)
    await _require_status(context, results, line, 204, body, server="upstream")


async def _require_status(
    context: CaseContext,
    results: CheckResults,
    line: str,
    status: int,
    body: bytes,
    *,
    server: Server,
) -> None:
    """Send a setup request that the case depends on.

    Raises:
        StoppedError: if the response has another status.
    """
    sender = context.sender(server)
    request, exchange = sender.request(line, JSON_HEADERS, body)
    outcome = await sender.send(request, exchange, 10)
    context.exchanges.append(outcome)
    context.hung = outcome.ended == "open"
    if server == "daemon":
        context.check_wire(results, outcome, body, {})
    if outcome.status != status:
        why = outcome.failure or f"{outcome.status} {outcome.body[:200]!r}"
        raise stopped(context, outcome, (status,), why)


def _is_kept(
    entry: CaseVariant, fixture: Fixture, results: CheckResults, stop: _Stop | None
) -> bool:
    """Whether what a failed case left on the daemon stays there, for its curl commands."""
    states = results.states.values()
    has_failed = bool(results.wire) or any(state.faults for state in states)
    # A request without a usable response, for example because the daemon crashed.
    has_failed = has_failed or (stop is not None and stop.outcome is not None)
    # Such a case is run again, and creates its brain again.
    is_repeated = entry.case.concurrent and (
        stop is not None or any(state.vacuous for state in states)
    )
    return fixture.keeps_brains and has_failed and not is_repeated


async def _clean_up(entry: CaseVariant, context: CaseContext, *, keep: bool) -> None:
    """Run the teardown, delete the brain and close all connections.

    `keep` leaves out the first two. Failures here are not what the case is about, and must not
    discard its results.
    """
    if keep and not context.hung:
        context.fixture.kept_brains[entry.id] = context.variables()["brain"]
        with suppress(Exception):
            await context.close()
        return
    try:
        async with asyncio.timeout(10):
            await StepExecutor(context).run(entry.case.teardown, CheckResults())
            if entry.case.brain:
                sender = context.sender("daemon")
                line = f"DELETE {context.variables()['brain_url']}"
                request, exchange = sender.request(line, {"X-Confirm-Delete": "yes"}, None)
                # It is no part of the case, which every case would be blamed for.
                await sender.send(request, exchange, 10, watches=False)
    except Exception as error:  # noqa: BLE001 - as above
        _log.debug("teardown failed", case=entry.id, error=repr(error))
    with suppress(Exception):
        await context.close()


def _checks(
    entry: CaseVariant, results: CheckResults, stop: _Stop | None, exited: str
) -> Iterator[Check]:
    for slot in dict.fromkeys(entry.slots()):
        check = f"{entry.id}#{slot}"
        state = results.states.get(slot)
        if state is not None and state.gap and not state.faults:
            why = f"the daemon's dialect has no {state.gap}"
            yield _inapplicable_check(check, entry, why)
        elif state is not None and (state.faults or not (_is_lost(stop) or state.vacuous)):
            yield _evaluated_check(check, entry, state, exited)
        elif state is not None and not _is_lost(stop):
            yield _unreached_check(check, entry, _Stop(state.vacuous, _VACUOUS), exited)
        elif stop is None:
            why = "its step was never reached"
            yield _unreached_check(check, entry, _Stop(why, why, is_harness_fault=True), exited)
        elif stop.is_inapplicable:
            yield _inapplicable_check(check, entry, stop.why)
        else:
            yield _unreached_check(check, entry, stop, exited)


def _is_lost(stop: _Stop | None) -> bool:
    """Whether a case ended early in a way that puts its earlier passes in doubt."""
    return stop is not None and not stop.is_inapplicable


def _inapplicable_check(check: str, entry: CaseVariant, why: str) -> Check:
    """Build the result of a check about something that the daemon's dialect does not have."""
    return Check(
        id=check,
        result=Result.NOT_APPLICABLE,
        level=entry.case.level,
        rules=list(entry.case.rules),
        got=[why],
    )


def _unreached_check(check: str, entry: CaseVariant, stop: _Stop, exited: str) -> Check:
    """Build the result of a check that the case did not reach."""
    return Check(
        id=check,
        result=Result.ERROR if stop.is_harness_fault else Result.UNTESTABLE,
        level=entry.case.level,
        rules=list(entry.case.rules),
        got=[stop.why],
        step=stop.outcome.label if stop.outcome is not None else "",
        curl=stop.outcome.curl() if stop.outcome is not None else "",
        causes=[Cause(cause=_unless_exited(stop.cause, stop.outcome, exited))],
    )


def _unless_exited(cause: str, outcome: StepResult | None, exited: str) -> str:
    """Return the cause, or that the daemon exited if the response therefore broke off."""
    return exited if exited and outcome is not None and outcome.ended == "cut" else cause


def _evaluated_check(check: str, entry: CaseVariant, state: CheckState, exited: str) -> Check:
    case = entry.case
    result, causes = Result.PASS, list(state.causes)
    outcome = state.outcome
    if state.faults:
        result = Result.FAIL if case.level == "must" else Result.WARN
        causes = [_unless_exited(cause, outcome, exited) for cause in causes]
    elif state.non_preferred:
        result = Result.WARN
    return Check(
        id=check,
        result=result,
        level=case.level,
        rules=list(case.rules),
        expected=describe(state.expectation),
        got=[*state.faults] or ([state.non_preferred] if state.non_preferred else []),
        step=outcome.label if outcome is not None else "",
        # Nobody repeats what passes, and most requests of 16 MiB do.
        curl=outcome.curl() if outcome is not None and result is not Result.PASS else "",
        causes=[Cause(cause=cause) for cause in dict.fromkeys(causes)],
    )


def _wire_check(
    entry: CaseVariant, results: CheckResults, stop: _Stop | None, exited: str
) -> Check:
    """Build the check of the shapes of all exchanges, whatever the case is about."""
    check = f"{entry.id}#wire"
    blamed = [(fault, outcome) for fault, outcome in results.wire if fault.blame == "case"]
    faults: dict[str, tuple[WireFault, StepResult]] = {}
    for fault, outcome in blamed or results.wire:
        faults.setdefault(_unless_exited(fault.cause, outcome, exited), (fault, outcome))
    if not faults and stop is not None and _is_lost(stop) and not stop.is_harness_fault:
        unreached = _unreached_check(check, entry, stop, exited)
        return unreached.model_copy(update={"result": Result.UNTESTABLE, **_WIRE})
    first = next(iter(faults.values()), None)
    if first is None:
        return Check(id=check, result=Result.PASS, level="must", **_WIRE)
    return Check(
        id=check,
        result=Result.ERROR if blamed else Result.FAIL,
        level="must",
        **_WIRE,
        got=[f"{outcome.label}: {fault.message}" for fault, outcome in faults.values()],
        step=first[1].label,
        curl=first[1].curl(),
        causes=[
            Cause(
                cause=cause,
                got=f"{outcome.label}: {fault.message}",
                step="" if outcome is first[1] else outcome.label,
                curl="" if outcome is first[1] else outcome.curl(),
            )
            for cause, (fault, outcome) in faults.items()
        ],
    )


_WIRE: dict[str, Any] = {
    "rules": ["wire.json", "wire.shape", "wire.problem"],
    "expected": "every response matches openapi.yaml and events.schema.json",
}


def _alive_check(entry: CaseVariant, exit_reason: str | None, exited: str) -> Check:
    return Check(
        id=f"{entry.id}#alive",
        result=Result.PASS if exit_reason is None else Result.FAIL,
        level="must",
        rules=["robust.alive"],
        expected="the daemon keeps running",
        got=[] if exit_reason is None else ["the daemon exited:", *exit_reason.splitlines()[-5:]],
        causes=[] if exit_reason is None else [Cause(cause=exited)],
    )
