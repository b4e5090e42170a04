"""Runs one case on one daemon, and says what became of each of its checks."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from memconform.conformance.bodies import as_json
from memconform.conformance.case import Server, StoreStep
from memconform.conformance.case_context import CaseContext, CheckResults, CheckState
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.expecting import describe
from memconform.conformance.fixture import Fixture, UntestableError, script_body
from memconform.conformance.results import IMPLICIT, CaseResult, Check, Result
from memconform.conformance.step_executor import JSON_HEADERS, StepExecutor, StoppedError
from memconform.conformance.step_result import StepResult
from memconform.conformance.variables import UnknownVariableError
from memconform.daemons.runner import SdkRunner
from memconform.errors import DaemonError
from memconform.printing.logs import Logger

_log = Logger()

CASE_SECONDS = 60.0
"""For a whole case; the longest, which waits for a ping, needs 26."""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """A case's result, and every exchange that it made."""

    result: CaseResult
    exchanges: list[StepResult]
    hung: bool = False
    """Whether the daemon did not even make a brain in time."""


def check_ids(entry: CaseVariant) -> list[str]:
    """The ids of all checks of a case."""
    return [f"{entry.id}#{slot}" for slot in (*dict.fromkeys(entry.slots()), *IMPLICIT)]


def skip_reason(entry: CaseVariant, runner: SdkRunner) -> str | None:
    """Why a case is not for this SDK; None where it is."""
    claimed = set(runner.profiles)
    for profile in entry.needed_profiles:
        if profile not in claimed:
            return f"profile {profile.value} is not claimed"
    modes = runner.modes
    scripted = entry.case.daemon.upstream == "scripted"
    if modes is not None and scripted:
        modes = (*modes, *runner.scripted_modes)
    for mode in entry.case.modes:
        if modes is not None and mode not in modes:
            return f"mode {mode.value} is not claimed"
    return None


def skipped_case(entry: CaseVariant, result: Result, why: str) -> CaseResult:
    """A case none of whose checks was made."""
    checks = [
        Check(
            id=check,
            result=result,
            level=entry.case.level,
            rules=list(entry.case.rules),
            got=[why],
        )
        for check in check_ids(entry)
    ]
    return CaseResult(case=entry.id, title=entry.case.title, checks=checks)


async def run_case(entry: CaseVariant, fixture: Fixture, brain: str) -> CaseRun:
    """Run it in a brain of its own; never raises for what the daemon does."""
    scene = CaseContext(entry, fixture, brain)
    findings, stopped, harness_fault = CheckResults(), "", ""
    started = time.perf_counter()
    try:
        async with asyncio.timeout(CASE_SECONDS):
            await _carried_out(entry, scene, findings)
    except TimeoutError:
        stopped = f"the case took longer than {CASE_SECONDS:g} s"
    except (StoppedError, UntestableError) as error:
        stopped = str(error)
    except DaemonError as error:
        stopped = error.render()
    except UnknownVariableError as error:
        if fixture.runner.restartable:
            harness_fault = str(error)
        else:
            stopped = f"{error}: {fixture.runner.name} is not ours to start"
    except Exception as error:  # noqa: BLE001 - a fault of ours must not lose the other cases
        harness_fault = f"{type(error).__name__}: {error}"
    finally:
        await _tidied(entry, scene)
    checks = list(_checks(entry, findings, stopped, harness_fault))
    checks.append(_wire_check(entry, findings, stopped))
    checks.append(_alive_check(entry, scene.start_failure or await fixture.died()))
    took = round((time.perf_counter() - started) * 1e3, 3)
    result = CaseResult(case=entry.id, title=entry.case.title, took_ms=took, checks=checks)
    return CaseRun(result, scene.exchanges, hung=scene.hung)


async def _carried_out(entry: CaseVariant, scene: CaseContext, findings: CheckResults) -> None:
    case, stepping = entry.case, StepExecutor(scene)
    if scene.fixture.has_upstream:
        script = script_body(case.upstream)
        await _demand(scene, findings, "PUT /_control/script", 204, script, server="upstream")
    if case.brain:
        body = as_json({"brainId": scene.variables()["brain"]})
        await _demand(scene, findings, "POST /v1/brains", 201, body, server="daemon")
    if case.documents:
        await stepping.run([StoreStep(store=case.documents)], findings)
    await stepping.run(case.setup, findings)
    await stepping.run(case.steps, findings)


async def _demand(
    scene: CaseContext,
    findings: CheckResults,
    line: str,
    status: int,
    body: bytes,
    *,
    server: Server,
) -> None:
    """A request without which the case means nothing; raises StoppedError where it fails."""
    sender = scene.sender(server)
    request, exchange = sender.request(line, JSON_HEADERS, body)
    outcome = await sender.send(request, exchange, 10)
    scene.exchanges.append(outcome)
    scene.hung = outcome.ended == "open"
    if server == "daemon":
        scene.examine(findings, outcome, body, {})
    if outcome.status != status:
        why = outcome.failure or f"{outcome.status} {outcome.body[:200]!r}"
        raise StoppedError(f"{line}: {why}")


async def _tidied(entry: CaseVariant, scene: CaseContext) -> None:
    """Teardown, the brain's end, and that of all connections.

    What fails there is not what the case is about, and must not lose what it has found.
    """
    try:
        async with asyncio.timeout(10):
            await StepExecutor(scene).run(entry.case.teardown, CheckResults())
            if entry.case.brain:
                sender = scene.sender("daemon")
                line = f"DELETE {scene.variables()['brain_url']}"
                request, exchange = sender.request(line, {"X-Confirm-Delete": "yes"}, None)
                await sender.send(request, exchange, 10)
    except Exception as error:  # noqa: BLE001 - as above
        _log.debug("teardown failed", case=entry.id, error=repr(error))
    with suppress(Exception):
        await scene.close()


def _checks(
    entry: CaseVariant, findings: CheckResults, stopped: str, fault: str
) -> Iterator[Check]:
    rules, level = list(entry.case.rules), entry.case.level
    for slot in dict.fromkeys(entry.slots()):
        check = f"{entry.id}#{slot}"
        seen = findings.seen.get(slot)
        if seen is not None and (seen.faults or not (stopped or fault)):
            yield _seen_check(check, entry, seen)
        elif fault or not stopped:
            why = fault or "its step was never reached"
            yield Check(id=check, result=Result.ERROR, level=level, rules=rules, got=[why])
        else:
            yield Check(id=check, result=Result.UNTESTABLE, level=level, rules=rules, got=[stopped])


def _seen_check(check: str, entry: CaseVariant, seen: CheckState) -> Check:
    case = entry.case
    result = Result.PASS
    if seen.faults:
        result = Result.FAIL if case.level == "must" else Result.WARN
    elif seen.non_preferred:
        result = Result.WARN
    outcome = seen.outcome
    return Check(
        id=check,
        result=result,
        level=case.level,
        rules=list(case.rules),
        expected=describe(seen.expectation),
        got=[*seen.faults] or ([seen.non_preferred] if seen.non_preferred else []),
        step=outcome.what if outcome is not None else "",
        curl=outcome.curl() if outcome is not None else "",
    )


def _wire_check(entry: CaseVariant, findings: CheckResults, stopped: str) -> Check:
    """The shapes of all that went over the wire, whatever the case is about."""
    check = f"{entry.id}#wire"
    blamed = [(fault, outcome) for fault, outcome in findings.wire if fault.blame == "case"]
    found = blamed or findings.wire
    result = Result.ERROR if blamed else Result.FAIL if found else Result.PASS
    if result is Result.PASS and stopped:
        result = Result.UNTESTABLE
    first = found[0][1] if found else None
    return Check(
        id=check,
        result=result,
        level="must",
        rules=["wire.json", "wire.shape", "wire.problem"],
        expected="every answer in the shape that openapi.yaml and events.schema.json have",
        got=list(dict.fromkeys(f"{outcome.what}: {fault.what}" for fault, outcome in found))[:5]
        or ([stopped] if stopped else []),
        step=first.what if first is not None else "",
        curl=first.curl() if first is not None else "",
    )


def _alive_check(entry: CaseVariant, died: str | None) -> Check:
    return Check(
        id=f"{entry.id}#alive",
        result=Result.PASS if died is None else Result.FAIL,
        level="must",
        rules=["robust.alive"],
        expected="the daemon lives",
        got=[] if died is None else ["the daemon has ended:", *died.splitlines()[-5:]],
    )
