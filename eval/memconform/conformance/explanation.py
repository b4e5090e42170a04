"""Explains a case in words: its rules, its requests, what passes and what fails. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from memconform.conformance.case import BaseStep, Case
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.expectations import describe
from memconform.conformance.rules import rules

_MAX_SHOWN = 400


def explain_case(entry: CaseVariant, location: str) -> str:
    """Explain a case, one fact per line; `location` is the `file:line` at which it is defined."""
    case = entry.case
    lines = [f"{entry.id} ({case.level}): {case.title}", f"  defined in {location}"]
    lines += [f"  why: {case.why}"] if case.why else []
    lines += [f"  rule {rule}: {rules()[rule].text}" for rule in case.rules]
    lines += [f"  needs {need}" for need in _needs(case)]
    lines += [f"  with {name} = {json.dumps(value)}" for name, value in entry.variables.items()]
    for path, document in case.documents.items():
        lines.append(f"  stores {path} {_abbreviate(document)}")
    for title, steps in (("first", case.setup), ("then", case.steps), ("last", case.teardown)):
        for step in steps:
            lines += [f"  {title}: {line}" for line in _step(step)]
    lines.append("  A check (#slot) passes if its expectation holds, and fails otherwise.")
    lines.append(
        "  In addition, every response must have the contract's shape (#wire), and the daemon must"
        " survive (#alive)."
    )
    return "\n".join(lines)


def _needs(case: Case) -> Iterator[str]:
    yield from (f"profile {profile.value}" for profile in case.profiles)
    yield from (f"mode {mode.value}" for mode in case.modes)
    if case.daemon.upstream == "scripted":
        script = case.upstream.model_dump_json(exclude_defaults=True) if case.upstream else "none"
        yield f"a scripted upstream, script {script}"
    for name, value in case.daemon.env.items():
        yield f"{name}={value}"


def _step(step: BaseStep) -> Iterator[str]:
    fields = step.model_dump(
        mode="json",
        by_alias=True,
        exclude_defaults=True,
        exclude={"expect", "require", "capture", "until", "repeat", "parallel"},
    )
    nested: list[Any] = [*getattr(step, "until", []), *getattr(step, "repeat", [])]
    branches: list[list[Any]] = getattr(step, "parallel", [])
    kind = type(step).__name__.removesuffix("Step").lower()
    start = kind
    if kind in fields:
        # A step that has its kind as a key, such as `http: GET /healthz`, begins with that key.
        start = f"{kind}: {_abbreviate(fields.pop(kind))}"
    yield " ".join((start, *(f"{key}: {_abbreviate(value)}" for key, value in fields.items())))
    for inner in nested:
        yield from (f"    {line}" for line in _step(inner))
    for branch in branches:
        yield "    concurrently:"
        for inner in branch:
            yield from (f"      {line}" for line in _step(inner))
    yield from (f"  required: {describe(required)}" for required in step.require)
    yield from (f"  #{slot}: {describe(expected)}" for slot, expected in step.expect.items())


def _abbreviate(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
