"""A disagreement as a file of one case, which `memconform conform --cases` takes."""

import base64
import hashlib
import re
from typing import Any

import yaml

from memconform.contract.problem import STATUS
from memconform.contract.schemas import Route
from memconform.contract.wire import JsonValue
from memconform.fuzzing.answers import Answer
from memconform.fuzzing.asking import filled
from memconform.fuzzing.comparing import agreeing, at
from memconform.fuzzing.programs import BRAIN, Call, route
from memconform.fuzzing.session import Disagreement

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
    "events": "events.change",
}
"""The rule that a case cites until somebody names a better one, by route."""


def case_file(found: Disagreement) -> tuple[str, str]:
    """A name, and the YAML: what most daemons answered is what it expects."""
    groups = agreeing(found.answers, found.difference.call)
    events = found.difference.call == len(found.program.calls)
    name = "events" if events else found.program.calls[found.difference.call].route
    case: dict[str, Any] = {
        "id": "",
        "title": f"{' and '.join(groups[0])} answer otherwise than {_others(groups)}",
        "rules": [_RULES[name]],
    }
    profiles = {route(call.route).profile.value for call in found.program.calls}
    profiles |= {"events"} if events else set()
    case["profiles"] = sorted(profiles - {"core"})
    expected = found.answers[groups[0][0]]
    case["steps"] = _steps(found, expected, events=events)
    digest = hashlib.sha256(repr(case["steps"]).encode()).hexdigest()[:8]
    slug = re.sub(r"[A-Z]", lambda match: "-" + match[0].lower(), name)
    case["id"] = f"fuzz-{slug}-{digest}"
    text = yaml.safe_dump([case], sort_keys=False, allow_unicode=True, width=100)
    return case["id"], _HEAD.format(where=found.difference.pointer) + text


_HEAD = """\
# Found by `memconform fuzz`: daemons part at {where} of the last answer. What it expects is what
# most of them answered, which need not be right; the rule that it cites is the route's, and may be
# another.

"""


def _others(groups: list[list[str]]) -> str:
    return " and ".join(name for group in groups[1:] for name in group)


def _steps(found: Disagreement, expected: list[Answer], *, events: bool) -> list[dict[str, Any]]:
    program, call = found.program, found.difference.call
    steps: list[dict[str, Any]] = []
    if events:
        line = "GET ${brain_url}/events"
        steps.append({"stream": line, "name": "events"})
        steps.append({"await": "events", "event": "ready"})
    for index, each in enumerate(program.calls[: call + 1]):
        steps += _step(each, f"s{index}", expected[call] if index == call else None, found)
    if events:
        steps.append({"http": "DELETE ${brain_url}", "headers": {"X-Confirm-Delete": "yes"}})
        changes = [data for name, data in expected[call].body if name == "change"]
        agreed = {"agreed": {"event": "change", "is": changes}}
        steps.append({"await": "events", "expect": agreed})
    return steps


def _step(
    call: Call, name: str, expected: Answer | None, found: Disagreement
) -> list[dict[str, Any]]:
    wanted: Route = route(call.route)
    line = f"{call.method} {call.target.replace('/v1/brains/' + BRAIN, '${brain_url}')}"
    sent: dict[str, Any] = {}
    if call.headers:
        sent["headers"] = dict(call.headers)
    if isinstance(call.body, bytes):
        sent["base64"] = base64.b64encode(call.body).decode()
    elif call.body is not None:
        sent["json"] = filled(call.body, "${brain}")
    if expected is None:
        return [{"http": line} | sent]
    checks = _checks(expected, found.difference.pointer)
    streams = wanted.stream and expected.status == 200
    if not streams:
        return [{"http": line} | sent | {"expect": checks}]
    return [{"stream": line, "name": name} | sent, {"await": name, "expect": checks}]


def _checks(expected: Answer, pointer: str) -> dict[str, Any]:
    """What the case expects of the answer at which daemons part."""
    agreed: Any = expected.status
    if expected.status is None:
        agreed = {"ended": "broken"}
    elif pointer.startswith("/headers/"):
        name = pointer.split("/")[2]
        words = dict(expected.headers).get(name, ())
        agreed = {"header": name, "is": ", ".join(words) or {"$absent": True}}
    elif expected.status >= 400:
        code = at(expected.body, "/code")
        agreed = code if code in STATUS else expected.status
    elif pointer.startswith("/body") and expected.media == "text/event-stream":
        return _stream_checks(expected)
    elif pointer.startswith("/body") and "bytes" in expected.body:
        content = base64.b64encode(bytes.fromhex(expected.body["bytes"])).decode()
        agreed = {"body": {"base64": content}}
    elif pointer.startswith("/body"):
        agreed = {"is": matcher(expected.body)}
    return {"agreed": agreed}


def _stream_checks(expected: Answer) -> dict[str, Any]:
    names = [name for name, _ in expected.body]
    checks: dict[str, Any] = {"order": {"events": " ".join(names)}}
    for name in dict.fromkeys(names):
        data = [matcher(data) for each, data in expected.body if each == name]
        checks[f"{name.replace('_', '-')}-agreed"] = {"event": name, "is": data}
    return checks


def matcher(value: JsonValue) -> JsonValue:
    """What the matchers of cases find equal: scores within their rounding."""
    if isinstance(value, dict):
        return {key: matcher(each) for key, each in value.items()}
    if isinstance(value, list):
        return [matcher(each) for each in value]
    return {"$approx": [value, 2e-9]} if isinstance(value, float) else value
