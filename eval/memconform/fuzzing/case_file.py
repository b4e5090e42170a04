"""Writes a disagreement as a case file, which `memconform conform --cases` can run."""

import base64
import hashlib
import re
from typing import Any

import httpx
import yaml

from memconform.client.recorder import Exchange
from memconform.conformance.pointer import MISSING, resolve, token
from memconform.contract.problem import STATUS
from memconform.contract.schemas import Route
from memconform.contract.wire import JsonValue
from memconform.fuzzing.comparison import SCORE_TOLERANCE, group_by_answer
from memconform.fuzzing.counterexample_search import Disagreement
from memconform.fuzzing.normalized_answer import ProgramAnswer
from memconform.fuzzing.program_runner import encode_body, fill_brain
from memconform.fuzzing.programs import BRAIN, RESTARTS, Call, Program, route

_RULES = {
    "search": "core.search.repeatable",
    "ask": "ask.order",
    "ingestFile": "core.ingest.replace",
    "ingestBatch": "core.ingest.batch",
    "brain": "core.brain.counts",
    "readDocument": "documents.read",
    "hasDocument": "documents.missing",
    "statDocument": "documents.stat",
    "listDocuments": "documents.list",
    "writeDocument": "documents.write",
    "appendDocument": "documents.append",
    "deleteDocument": "documents.delete",
    "renameDocument": "documents.rename",
    "batchOps": "documents.batch",
    "createBrain": "core.brain.create",
    "deleteBrain": "core.brain.delete",
    "restart": "core.search.history",
    "kill": "core.ingest.durable",
    "events": "events.change",
}
"""The rule that a generated case cites, by route; a person may name a better one."""


def case_file(disagreement: Disagreement) -> tuple[str, str]:
    """Return the id and the YAML of a case that expects what most daemons answered."""
    groups = group_by_answer(disagreement.answers, disagreement.difference.call)
    events = disagreement.difference.call == len(disagreement.program.calls)
    name = "events" if events else disagreement.program.calls[disagreement.difference.call].route
    case: dict[str, Any] = {
        "id": "",
        "title": f"{_others(groups)} against {' and '.join(groups[0])}: a difference found by fuzz",
        "rules": [_RULES[name]],
    }
    difference = disagreement.difference
    if difference.rule:
        case["title"] = f"{_others(groups)} against the contract: found by fuzz"
        case["rules"] = [difference.rule]
    requests = [call for call in disagreement.program.calls if call.route not in RESTARTS]
    profiles = {route(call.route).profile.value for call in requests}
    profiles |= {"events"} if events else set()
    case["profiles"] = sorted(profiles - {"core"})
    expected = disagreement.answers[groups[0][0]]
    case["steps"] = _steps(disagreement, expected, events=events)
    digest = hashlib.sha256(repr(case["steps"]).encode()).hexdigest()[:8]
    slug = re.sub(r"[A-Z]", lambda match: "-" + match[0].lower(), name)
    case["id"] = f"fuzz-{slug}-{digest}"
    text = yaml.safe_dump([case], sort_keys=False, allow_unicode=True, width=100)
    head = _ORACLE_HEAD if difference.rule else _HEAD
    return case["id"], head.format(where=difference.pointer, rule=difference.rule) + text


_ORACLE_HEAD = """\
# Found by `memconform fuzz --against oracle`: the daemon violates the contract at {where} of the
# last answer. The case expects what the contract requires; {rule} is most likely the broken rule.

"""
_HEAD = """\
# Found by `memconform fuzz`: daemons differ at {where} of the last answer. The case expects what
# most of them answered (of two, what the first answered), which is not necessarily correct. It
# cites the rule of the route; another one may fit better.

"""


def _others(groups: list[list[str]]) -> str:
    return " and ".join(name for group in groups[1:] for name in group)


def _steps(
    disagreement: Disagreement, expected: list[ProgramAnswer], *, events: bool
) -> list[dict[str, Any]]:
    program, call = disagreement.program, disagreement.difference.call
    steps: list[dict[str, Any]] = []
    if events:
        line = "GET ${brain_url}/events"
        steps.append({"stream": line, "name": "events"})
        steps.append({"await": "events", "event": "ready"})
    for index, request in enumerate(program.calls[: call + 1]):
        steps += _step(
            request, f"s{index}", expected[call] if index == call else None, disagreement
        )
    if events:
        steps.append({"http": "DELETE ${brain_url}", "headers": {"X-Confirm-Delete": "yes"}})
        check = _check(disagreement, expected[call])
        steps.append({"await": "events", "expect": {"agreed": check}})
    return steps


def _step(
    call: Call, name: str, expected: ProgramAnswer | None, disagreement: Disagreement
) -> list[dict[str, Any]]:
    if call.route in RESTARTS:
        restart: list[dict[str, Any]] = [{"process": "restart"}]
        if call.route == "kill":
            restart = [{"process": "kill"}, {"process": "start"}]
        if expected is not None:
            restart[-1]["expect"] = {"agreed": {"at": "/alive", "is": True}}
        return restart
    target: Route = route(call.route)
    line = f"{call.method} {call.target.replace('/v1/brains/' + BRAIN, '${brain_url}')}"
    sent: dict[str, Any] = {}
    if call.headers:
        sent["headers"] = dict(call.headers)
    if isinstance(call.body, bytes):
        sent["base64"] = base64.b64encode(call.body).decode()
    elif call.body is not None:
        sent["json"] = fill_brain(call.body, "${brain}")
    if expected is None:
        return [{"http": line} | sent]
    checks = {"agreed": _check(disagreement, expected)}
    is_stream = target.stream and expected.status == 200
    if not is_stream:
        return [{"http": line} | sent | {"expect": checks}]
    return [{"stream": line, "name": name} | sent, {"await": name, "expect": checks}]


def _check(disagreement: Disagreement, expected: ProgramAnswer) -> JsonValue:
    """Return an expectation that holds for `expected` and for none of the differing answers."""
    pointer = disagreement.difference.pointer
    part, _, rest = pointer.removeprefix("/").partition("/")
    if expected.status is None or part == "failure":
        return {"ended": "end" if expected.status is not None else "cut"}
    if part == "fault":
        return _fault_check(disagreement, expected)
    if part in ("media", "headers"):
        return _header_check("" if part == "media" else rest.partition("/")[0], expected)
    if part == "status" and expected.status >= 400:
        code = resolve(expected.body, "/code")
        return code if code in STATUS else expected.status
    if part == "body":
        return _body_check(disagreement, expected, rest)
    return expected.status


def _fault_check(disagreement: Disagreement, expected: ProgramAnswer) -> JsonValue:
    """Every case checks shapes; what `detail` must name is checked here."""
    faults = [str(value) for value in disagreement.difference.values.values()]
    names = [fault.partition("does not name ")[2] for fault in faults]
    named = next((name for name in names if name), None)
    if named is None or expected.status is None:
        return expected.status
    return {"at": "/detail", "is": {"$contains": named}}


def _header_check(name: str, expected: ProgramAnswer) -> JsonValue:
    """Expect exactly the words of `expected` in any order; HEAD is optional.

    Without a name, the media type.
    """
    if not name:
        media = {"$media_type": expected.media} if expected.media else {"$absent": True}
        return {"header": "content-type", "is": media}
    words = dict(expected.headers).get(name)
    if words is None:
        return {"header": name, "is": {"$absent": True}}
    present = "".join(rf"(?=.*(?<![a-z-]){re.escape(word)}(?![a-z-]))" for word in words)
    only = "|".join(re.escape(word) for word in (*words, "head"))
    return {"header": name, "is": {"$regex": rf"(?i)^{present}(?:(?:{only})\s*(?:,\s*|$))+$"}}


def _body_check(disagreement: Disagreement, expected: ProgramAnswer, rest: str) -> JsonValue:
    body = expected.body
    if isinstance(body, list):
        return _event_check(body, rest)
    if isinstance(body, dict) and body.keys() == {"bytes"} and isinstance(body["bytes"], str):
        return {"body": {"base64": base64.b64encode(bytes.fromhex(body["bytes"])).decode()}}
    if rest.startswith("keys/"):
        others = {key for key in disagreement.difference.values.values() if key not in body["keys"]}
        own = resolve(body, f"/{rest}")
        key, absent = (min(others), True) if others else (own, False)
        return {"at": f"/{token(key)}", "is": {"$absent": absent}}
    return {"at": f"/{rest}" if rest else "", "is": _value(body, f"/{rest}" if rest else "")}


def _event_check(events: list[list[JsonValue]], rest: str) -> JsonValue:
    number, _, inside = rest.partition("/")
    # Without a number, the answer is no stream at all.
    is_data = number.isdigit() and int(number) < len(events) and inside.startswith("1")
    if not is_data:
        # The events differ in name or number, or in their ids, which can only be expected to rise.
        ids = inside.startswith("2")
        return {"ids": "rising"} if ids else {"events": " ".join(event[0] for event in events)}
    name = events[int(number)][0]
    nth = sum(event[0] == name for event in events[: int(number)])
    within = inside.removeprefix("1")
    value = _value(events[int(number)][1], within)
    return {"event": name, "at": f"/{nth}{within}", "is": value}


def _value(body: JsonValue, pointer: str) -> JsonValue:
    """Return a matcher for the value at `pointer`: scores approximately, a missing one absent."""
    value = resolve(body, pointer)
    if value is MISSING:
        return {"$absent": True}
    if isinstance(value, dict | list):
        return {"$absent": False}
    if isinstance(value, float) and pointer.endswith("/score"):
        return {"$approx": [value, SCORE_TOLERANCE]}
    return "${brain}" if value == BRAIN else value


_ADDRESS = "http://127.0.0.1:18850"
_SHOWN_BRAIN = "fuzz"


def curl_lines(program: Program) -> list[str]:
    """Return commands that repeat a program by hand; the port is an example."""
    create = Call("createBrain", "POST", "/v1/brains", {"brainId": BRAIN})
    lines = []
    for call in (create, *program.calls):
        if call.route in RESTARTS:
            sent = "SIGTERM" if call.route == "restart" else "SIGKILL"
            lines.append(f"# end the daemon by {sent}, and start it again")
            continue
        content, headers = encode_body(call, _SHOWN_BRAIN)
        target = call.target.replace(BRAIN, _SHOWN_BRAIN).encode()
        request = httpx.Request(
            call.method,
            _ADDRESS,
            content=content,
            headers=headers,
            extensions={"target": target},
        )
        lines.append(Exchange(request, open=True).curl())
    return lines
