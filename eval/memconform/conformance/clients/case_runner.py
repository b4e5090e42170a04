"""Runs one client case: serves its responses, makes its calls, and judges what came."""

import asyncio
import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from memconform.conformance.case_runner import CaseRun
from memconform.conformance.clients.case import ClientCall
from memconform.conformance.clients.catalog import ClientVariant, call_slots
from memconform.conformance.clients.driver import Driver, Hello, Observed
from memconform.conformance.clients.scripted_daemon import ScriptedDaemon
from memconform.conformance.clients.seen_request import SeenRequest
from memconform.conformance.clients.verdicts import (
    CallRecord,
    Fault,
    call_faults,
    describe_call,
    shown_events,
)
from memconform.conformance.results import CaseResult, Cause, Check, Result
from memconform.conformance.step_result import StepResult
from memconform.errors import MemconformError
from memconform.printing.errors import render_error

BRAIN = "brain"
_ATTEMPTS = 3
"""How often a case is run whose pauses the harness itself did not keep."""
_LATE = 0.7
"""A pause of this part of a client's limit may have ended its call rightly, on a busy machine."""
_SETTLE_S = 4.0
"""How long the daemon may need to see the end of a request, once a call has ended."""
_BODIES: Mapping[str, Any] = {
    "ask": {"question": "Where is the lamp?"},
    "search": {"query": "lamp"},
}


def skip_reason(entry: ClientVariant, hello: Hello) -> str | None:
    """Say why a case does not apply to a client; None if it does."""
    if hello.wire not in entry.case.wires:
        return f"it is not for clients of {hello.wire}"
    for claim in entry.case.needed_claims:
        if claim not in hello.claims:
            return f"the driver does not claim {claim!r}"
    return None


def skipped_case(entry: ClientVariant, result: Result, why: str, *, cause: str = "") -> CaseResult:
    """The result of a case that was not run."""
    causes = [] if result is Result.NOT_APPLICABLE else [Cause(cause=cause or why)]
    checks = [_check(entry, check, result, got=[why], causes=causes) for check in entry.check_ids()]
    return CaseResult(case=entry.id, title=entry.case.title, checks=checks)


async def run_client_case(entry: ClientVariant, driver: Driver, hello: Hello) -> CaseRun:
    """Run a case on a driver.

    Raises:
        DriverError: if the driver ended, or broke its protocol.
    """
    started = time.perf_counter()
    for attempt in range(1, _ATTEMPTS + 1):
        run = _Run(entry, driver, hello)
        try:
            await run.serve()
        except OSError as error:
            if entry.case.calls[0].host != "[::1]":
                raise
            why = f"this machine has no IPv6: {error.strerror}"
            return CaseRun(skipped_case(entry, Result.NOT_APPLICABLE, why), [])
        if not run.was_late():
            break
        if attempt == _ATTEMPTS:
            why = "this machine is too busy to keep the pauses of the case"
            return CaseRun(skipped_case(entry, Result.UNTESTABLE, why), run.steps())
    took = round((time.perf_counter() - started) * 1e3, 3)
    result = CaseResult(case=entry.id, title=entry.case.title, took_ms=took, checks=run.checks())
    return CaseRun(result, run.steps(), hung=run.hung)


def failed_driver(entry: ClientVariant, error: MemconformError) -> CaseResult:
    """The result of a case during which the driver ended, or broke its protocol."""
    skipped = skipped_case(entry, Result.UNTESTABLE, error.message, cause="the driver fails")
    dead = _check(
        entry,
        f"{entry.id}#alive",
        Result.FAIL,
        expected=_ALIVE,
        got=render_error(error).splitlines(),
        causes=[Cause(cause="the driver ends, or breaks its protocol")],
    )
    return skipped.model_copy(update={"checks": [*skipped.checks[:-1], dead]})


_ALIVE = "the driver keeps running"


class _Run:
    """One attempt at a case."""

    def __init__(self, entry: ClientVariant, driver: Driver, hello: Hello) -> None:
        self._entry = entry
        self._driver = driver
        self._wire = hello.wire
        self._records: list[CallRecord] = []
        self._faults: list[str] = []
        self._port = 0

    async def serve(self) -> None:
        case = self._entry.case
        host = "::1" if case.calls[0].host == "[::1]" else "127.0.0.1"
        async with (
            ScriptedDaemon(case.responses, self._wire, Observed(), host) as daemon,
            ScriptedDaemon(case.responses[-1:], self._wire, Observed()) as elsewhere,
        ):
            daemon.elsewhere, self._port = elsewhere, daemon.port
            for call in case.calls:
                observed = Observed()
                daemon.progress = elsewhere.progress = observed
                first, other = len(daemon.requests), len(elsewhere.requests)
                await self._driver.call(_command(call, daemon.port), observed)
                requests = daemon.requests[first:]
                if call.requests.ended and requests:
                    await _settled(requests[-1])
                record = CallRecord(
                    call,
                    # Without a request, it is the response that one would have had.
                    [
                        *(daemon.response_to(first + n) for n in range(max(1, len(requests)))),
                        *(elsewhere.responses[:1] if len(elsewhere.requests) > other else ()),
                    ],
                    observed,
                    requests,
                    elsewhere.requests[other:],
                    self._wire,
                )
                self._records.append(record)
                if self.hung:
                    break
            self._faults = [*daemon.faults, *elsewhere.faults]

    def was_late(self) -> bool:
        """Whether a pause was so long that a client may have rightly taken it for silence."""
        return any(
            record.call.expected_outcome == "whole"
            and record.observed.ended == "error"
            and any(
                request.longest_pause > record.call.idle_ms / 1e3 * _LATE
                for request in record.requests
            )
            for record in self._records
        )

    @property
    def hung(self) -> bool:
        """Whether a call did not end, so that the driver is of no further use."""
        return any(record.observed.ended == "silent" for record in self._records)

    def checks(self) -> list[Check]:
        """The results of all checks."""
        entry = self._entry
        checks = []
        for number, record in enumerate(self._records, 1):
            faults, expected = call_faults(record), describe_call(record.call)
            step = f"{record.call.call} {number}"
            for slot in call_slots(record.call):
                id_ = f"{entry.id}#{slot}" if number == 1 else f"{entry.id}#{slot}-{number}"
                checks.append(self._evaluated(record, id_, expected[slot], faults[slot], step=step))
        made = {check.id for check in checks}
        for id_ in entry.check_ids()[:-1]:
            if id_ not in made:
                why = "the call before did not end"
                lost = [Cause(cause=f"{entry.case.rules[0]}: the call does not end")]
                checks.append(_check(entry, id_, Result.UNTESTABLE, got=[why], causes=lost))
        checks.append(_check(entry, f"{entry.id}#alive", Result.PASS, expected=_ALIVE))
        return checks

    def _evaluated(
        self, record: CallRecord, id_: str, expected: str, faults: Sequence[Fault], *, step: str
    ) -> Check:
        entry = self._entry
        if self._faults:
            causes = [Cause(cause="a bug in memconform")]
            return _check(entry, id_, Result.ERROR, got=self._faults, causes=causes)
        if any(request.is_unoffered for request in record.requests):
            why = "the client does not offer the encoding"
            return _check(entry, id_, Result.NOT_APPLICABLE, got=[why])
        if record.observed.ended == "silent" and not faults:
            causes = [Cause(cause=f"{entry.case.rules[0]}: the call does not end")]
            got = ["the call did not end"]
            return _check(entry, id_, Result.UNTESTABLE, got=got, causes=causes, step=step)
        result = Result.PASS
        if faults:
            result = Result.FAIL if entry.case.level == "must" else Result.WARN
        causes = [Cause(cause=f"{entry.case.rules[0]}: {fault.cause}") for fault in faults]
        return _check(
            entry, id_, result, expected=expected, got=[f.got for f in faults], causes=causes,
            step=step,
        )  # fmt: skip

    def steps(self) -> list[StepResult]:
        """What was seen on both sides, for people."""
        return [
            StepResult(
                label=f"{record.call.call} {number}",
                value="\n".join(_transcript(record, self._port)),
            )
            for number, record in enumerate(self._records, 1)
        ]


def _command(call: ClientCall, port: int) -> dict[str, Any]:
    """The line that makes a call."""
    body = _BODIES.get(call.call) if call.body is None else call.body
    if call.call == "ingest" and call.body is None:
        content = b"The lamp is in the attic.\n" * max(1, call.body_bytes // 26)
        body = {
            "path": "lamp.md",
            "contentType": "text/markdown",
            "contentBase64": base64.b64encode(content).decode(),
        }
    return {
        "call": call.call,
        "baseUrl": f"http://{call.host}:{port}{call.base}",
        "brain": BRAIN,
        "body": body,
        "token": call.token,
        "idleMs": call.idle_ms,
        "deadlineMs": call.deadline_ms,
        "retries": call.retries,
        "cancelAfter": call.cancel_after,
    }


async def _settled(request: SeenRequest) -> None:
    """Wait until the daemon has seen the end of a request, which may come after that of a call."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SETTLE_S):
            await request.ended.wait()


def _transcript(record: CallRecord, port: int) -> Iterator[str]:
    command = _command(record.call, port)
    if record.call.body_bytes:
        command["body"] = f"a document of {record.call.body_bytes} bytes"
    yield f"called with {json.dumps(command, ensure_ascii=False)}"
    for place, requests in (("", record.requests), (" at another origin", record.elsewhere)):
        for request in requests:
            where = f"connection {request.connection}{place}"
            yield f"> {request.method} {request.target} ({where})"
            yield from (f">   {name}: {value}" for name, value in request.headers)
            yield f">   {len(request.body)} bytes"
            yield from (f"< {shown_bytes(write)}" for write in request.sent)
    observed = record.observed
    yield from (f"= event {line}" for line in shown_events(observed.events)[:_MOST_EVENTS])
    if len(observed.events) > _MOST_EVENTS:
        yield f"= and {len(observed.events) - _MOST_EVENTS} more events"
    failure = observed.failure
    last = "" if failure is None else f" {json.dumps(failure.model_dump(exclude_none=True))}"
    if observed.result is not None:
        last = f" {json.dumps(observed.result, ensure_ascii=False)[:2000]}"
    yield f"= end of the call: {observed.ended}{last}"


def shown_bytes(data: bytes) -> str:
    """Bytes as text in which nothing is invisible."""
    return json.dumps(data.decode("utf-8", "backslashreplace"), ensure_ascii=False)[1:-1]


_MOST_EVENTS = 40
"""Shown of one call."""


def _check(
    entry: ClientVariant,
    id_: str,
    result: Result,
    *,
    expected: str = "",
    got: Sequence[str] = (),
    causes: Sequence[Cause] = (),
    step: str = "",
) -> Check:
    return Check(
        id=id_,
        result=result,
        level=entry.case.level,
        rules=list(entry.case.rules),
        expected=expected,
        got=list(got),
        causes=list(causes),
        step=step,
    )
