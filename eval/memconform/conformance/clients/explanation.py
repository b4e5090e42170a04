"""Explains a client case in words: its rules, its calls, responses, and what must come. Pure."""

import json

from memconform.conformance.clients.catalog import ClientVariant, call_slots
from memconform.conformance.clients.verdicts import describe_call
from memconform.conformance.rules import rules


def explain_client_case(entry: ClientVariant, location: str) -> str:
    """Explain a case, one fact per line; `location` is the `file:line` at which it is defined."""
    case = entry.case
    lines = [f"{entry.id} ({case.level}): {case.title}", f"  defined in {location}"]
    lines += [f"  why: {case.why}"] if case.why else []
    lines += [f"  rule {rule}: {rules()[rule].text}" for rule in case.rules]
    lines.append(f"  needs {', '.join(case.needed_claims)}; for streams of {', '.join(case.wires)}")
    lines += [f"  with {name} = {json.dumps(value)}" for name, value in entry.variables.items()]
    for call in case.calls:
        lines.append(f"  calls {call.model_dump_json(exclude_defaults=True, by_alias=True)}")
        words = describe_call(call)
        lines += [f"  #{slot}: {words[slot]}" for slot in call_slots(call)]
    for response in case.responses:
        sent = response.model_dump_json(exclude_defaults=True, by_alias=True)
        lines.append(f"  answers {'the usual answer' if sent == '{}' else sent}")
    lines.append("  The last response answers all further requests.")
    return "\n".join(lines)
