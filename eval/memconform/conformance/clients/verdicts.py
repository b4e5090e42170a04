"""Compares what a client has reported, and sent, with what a case expects. Pure."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from memconform.conformance.clients.case import ClientCall, ErrorSpec, Requests, Response, Wire
from memconform.conformance.clients.driver import Failure, Observed
from memconform.conformance.clients.seen_request import SeenRequest
from memconform.conformance.clients.wire import Event, expected_events, expected_result
from memconform.printing.plurals import plural

_SHOWN = 160
_END_SECONDS = 3.0
"""How long after the end of a call its request may go on: the contract's second, and two for a
machine that is busy."""
_LATE_SECONDS = 5.0
"""How much later than its limit a call may be seen to end, on a machine that is busy."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and what kind of defect shows in it: the same words for the same defect."""

    got: str
    cause: str


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call, with all that was seen of it on both sides."""

    call: ClientCall
    responses: Sequence[Response]
    """Those that its requests were given, in order; at least one."""
    observed: Observed
    requests: Sequence[SeenRequest]
    elsewhere: Sequence[SeenRequest]
    wire: Wire


def call_faults(record: CallRecord) -> dict[str, list[Fault]]:
    """The faults of a call, by slot; a slot without faults passes."""
    return {
        "outcome": list(_outcome_faults(record)),
        "events": list(_event_faults(record)),
        "result": list(_result_faults(record)),
        "requests": list(_request_faults(record)),
    }


def describe_call(call: ClientCall) -> dict[str, str]:
    """What a call must show, in words, by slot."""
    outcome = call.expected_outcome
    words = {
        "whole": "a complete answer" if call.call == "ask" else "the body of the response",
        "cancelled": "a cancelled answer",
        "any": "an answer or an error, in time",
    }
    expected = words.get(outcome) or f"an error: {_described(call.error)}"
    if call.or_error is not None:
        expected += f", or an error: {_described(call.or_error)}"
    return {
        "outcome": expected,
        "events": "the events that were sent" + ("" if outcome == "whole" else ", or the first"),
        "result": "the values that were sent",
        "requests": _described_requests(call),
    }


def _described_requests(call: ClientCall) -> str:
    """What the daemon must see of a call, in words."""
    wanted = call.requests
    counts = wanted.count or list(range(1, call.retries + 2))
    words = [
        f"{counts[0]} to {counts[-1]} requests" if counts[1:] else plural(counts[0], "request")
    ]
    if wanted.gap_ms is not None:
        words.append(f"{wanted.gap_ms:g} ms after the response before, at least")
    words += [f"method {wanted.method}"] if wanted.method else []
    words += [f"to {' or '.join(wanted.target)}"] if wanted.target else []
    for name, value in wanted.header.items():
        words.append(f"without {name}" if value is None else f"with {name}: {value}")
    words += ["with the body that was given"] * (wanted.body is not None)
    words += ["the client ends it while the daemon sends"] * wanted.ended
    words += ["no token at another origin"] * (wanted.elsewhere == "no-token")
    return ", ".join(words)


def _described(spec: ErrorSpec | None) -> str:
    if spec is None:
        return "any"
    parts = [" or ".join(spec.kind)]
    parts += [f"status {spec.status}"] if spec.status is not None else []
    parts += [f"code {spec.code}"] if spec.code is not None else []
    return ", ".join(parts)


def _shown(record: CallRecord) -> str:
    """How a call ended, in words."""
    observed = record.observed
    match observed.ended:
        case "error" if observed.failure is not None:
            failure = observed.failure
            status = "" if failure.status is None else f" {failure.status}"
            shown = f"an error: {failure.kind}{status} ({_cut(failure.message)})"
            if any(request.is_given_up for request in record.requests):
                shown += ", after the daemon had waited in vain for the end of the request"
            return shown
        case "cancelled":
            return "a cancelled answer"
        case "ok":
            return "success"
    return "no end of the call in time"


def _outcome_faults(record: CallRecord) -> Iterator[Fault]:
    call, observed = record.call, record.observed
    if observed.ended in ("silent", None):
        yield Fault(_shown(record), "the call does not end")
        return
    late = next((r.unobserved for r in record.requests if r.unobserved is not None), None)
    # A client that has all it waits for may end its request before its last report has been read.
    if late is not None and observed.ended == "error":
        got = f"{plural(len(observed.events), 'event')} when {late} had been sent, and all waited"
        yield Fault(got, "events are not yielded as they come")
        return
    expected = call.expected_outcome
    if expected == "any" or observed.ended == _ENDS.get(expected):
        return
    if observed.ended != "error" or observed.failure is None:
        what = "reports success" if observed.ended == "ok" else "reports that it was cancelled"
        where = "of an answer that was cancelled" if observed.ended == "ok" else "without a reason"
        if call.error is not None:
            where = f"in place of an error {' or '.join(call.error.kind)}"
        yield Fault(_shown(record), f"{what} {where}")
        return
    allowed = call.error or call.or_error
    if allowed is None:
        yield Fault(_shown(record), f"fails with {observed.failure.kind} where nothing is wrong")
    elif (fault := _error_fault(observed.failure, allowed, record)) is not None:
        yield fault
    elif allowed.kind == ["timeout"] and record.requests and observed.ended_at is not None:
        limit = min(call.idle_ms, call.deadline_ms) / 1e3
        took = observed.ended_at - record.requests[0].at
        if took > limit + _LATE_SECONDS:
            got = f"a timeout after {took:.1f} s, with a limit of {limit:g} s"
            yield Fault(got, "a call ends long after its limit")


_ENDS = {"whole": "ok", "cancelled": "cancelled"}


def _error_fault(failure: Failure, spec: ErrorSpec, record: CallRecord) -> Fault | None:
    got = _shown(record)
    if failure.kind not in spec.kind:
        return Fault(got, f"fails with {failure.kind} in place of {' or '.join(spec.kind)}")
    if spec.status is not None and failure.status != spec.status:
        return Fault(got, "the error has not the status of the response")
    if spec.code is not None and record.wire == "memory" and failure.code != spec.code:
        return Fault(f"{got}, code {failure.code}", "the error has not the code of the daemon")
    return None


def _event_faults(record: CallRecord) -> Iterator[Fault]:
    if record.call.call != "ask":
        return
    expected = expected_events(record.responses[-1], record.wire)
    got = record.observed.events
    for number, (wanted, found) in enumerate(zip(expected, got, strict=False), 1):
        if wanted[0] != found[0]:
            yield _other_event(
                f"event {number} is {_cut(found[0])}, expected {wanted[0]}", found[0]
            )
            return
        if fault := difference(wanted[1], found[1]):
            yield Fault(
                f"event {number}, {found[0]}, {fault}", "an event has other data than was sent"
            )
            return
    if len(got) > len(expected):
        name, data = got[len(expected)]
        why = "" if expected else "the call had to fail before any event; "
        yield _other_event(f"{why}then came {_cut(name)} {_cut(data)}", name)
    elif len(got) < len(expected) and _must_be_whole(record):
        missing = expected[len(got)][0]
        count = f"{len(got)} of {plural(len(expected), 'event')}"
        yield Fault(f"{count}, without event {len(got) + 1}, {missing}", "events are lost")


def _other_event(got: str, name: str) -> Fault:
    """The fault of an event that may not be yielded here."""
    if name == "error":
        return Fault(got, "an error is yielded, which must be how the call fails")
    return Fault(got, "an event is yielded that was not sent, or behind the end")


def _must_be_whole(record: CallRecord) -> bool:
    return record.call.expected_outcome == "whole" and record.observed.ended == "ok"


def _result_faults(record: CallRecord) -> Iterator[Fault]:
    if record.call.call == "ask" or record.observed.ended != "ok":
        return
    if record.call.expected_outcome != "whole":
        return
    fault = difference(expected_result(record.responses[-1]), record.observed.result)
    if fault is not None:
        yield Fault(f"of the response's body, {fault}", "another body than was sent")


def same(expected: Any, got: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether a value says what was sent."""
    return difference(expected, got) is None


def difference(expected: Any, got: Any, at: str = "") -> str | None:  # noqa: ANN401 - JSON
    """Where a value first differs from what was sent, in words; None if it says the same.

    An absent key and null are the same, as in the contract, and so is an empty text that was added;
    keys that the contract lacks, which begin with `x-`, may be left out.
    """
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in [*expected, *(got.keys() - expected.keys())]:
            wanted, found = expected.get(key), got.get(key)
            is_added = key not in expected and found in (None, "")
            if key.startswith("x-") and (key not in expected or key not in got):
                continue
            if not is_added and (fault := difference(wanted, found, f"{at}/{key}")):
                return fault
        return None
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return f"{at}: expected {plural(len(expected), 'item')}, got {len(got)}"
        pairs = enumerate(zip(expected, got, strict=True))
        faults = (difference(wanted, found, f"{at}/{n}") for n, (wanted, found) in pairs)
        return next(filter(None, faults), None)
    is_same = expected is got if _is_flag(expected) or _is_flag(got) else expected == got
    return None if is_same else f"{at}: expected {_cut(expected)}, got {_cut(got)}".lstrip(": ")


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _request_faults(record: CallRecord) -> Iterator[Fault]:
    expected, requests = record.call.requests, record.requests
    counts = expected.count or range(1, record.call.retries + 2)
    if len(requests) not in counts:
        wanted = " or ".join(map(str, counts))
        cause = "a call is not repeated" if requests else "no request is sent"
        if len(requests) > max(counts):
            cause = "a call is repeated that must not be"
        yield Fault(f"{plural(len(requests), 'request')}, expected {wanted}", cause)
    yield from _timing_faults(expected, requests)
    for request in requests:
        yield from _form_faults(expected, request)
    if expected.ended and requests:
        last = requests[-1]
        observed = record.observed
        # A program that cancels stops reading with the last event; the client may report it later.
        is_cancelled = record.call.expected_outcome == "cancelled"
        call_end = observed.yielded_at if is_cancelled else observed.ended_at
        after = None if last.ended_at is None else last.ended_at - (call_end or last.ended_at)
        if after is None or after > _END_SECONDS:
            got = "not ended" if after is None else f"ended {after:.1f} s after the call"
            yield Fault(got, "the request goes on after the call has ended")
    if expected.elsewhere == "no-token":
        for request in record.elsewhere:
            if request.header("authorization") is not None:
                yield Fault("authorization at another origin", "the token goes to another origin")


def _timing_faults(expected: Requests, requests: Sequence[SeenRequest]) -> Iterator[Fault]:
    if expected.gap_ms is None:
        return
    for before, after in pairwise(requests):
        gap = (after.at - (before.answered_at or before.at)) * 1e3
        if gap < expected.gap_ms:
            yield Fault(
                f"repeated after {gap:.0f} ms, expected {expected.gap_ms:g} at least",
                "a call is repeated before Retry-After",
            )
            return


def _form_faults(expected: Requests, request: SeenRequest) -> Iterator[Fault]:
    if request.method == "invalid":
        yield Fault(request.target, "a request is not HTTP")
        return
    if expected.method is not None and request.method != expected.method:
        yield Fault(f"{request.method} {request.target}", "a request with another method")
    if expected.target is not None and request.target not in expected.target:
        wanted = " or ".join(expected.target)
        yield Fault(f"{request.target}, expected {wanted}", "a request to another path")
    for name, value in expected.header.items():
        got = request.header(name)
        if (got is None) != (value is None) or (got or "").lower() != (value or "").lower():
            yield Fault(
                f"{name}: {got}, expected {value}", f"the header {name} is not as it must be"
            )
    if expected.body is not None and not same(expected.body, request.json()):
        yield Fault(f"sent {_cut(request.json())}", "the body of a request is not what was given")


def _cut(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # A client may cut a text within a pair of surrogates, which no file can hold.
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"


def shown_events(events: Sequence[Event]) -> list[str]:
    """Events as lines, for people."""
    return [f"{_cut(name)} {_cut(data)}" for name, data in events]
