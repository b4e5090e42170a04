"""Derives mutants from the contract's shapes: each key, status, header and code, broken. Pure.

The table of mutants is written by hand and may miss something; a new key of a model gets its
mutants here automatically.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutation import Edit, EventEdit, Mutation, When
from memconform.contract.ask import EVENTS
from memconform.contract.events import PLAIN_EVENTS, Change
from memconform.contract.problem import MEDIA_TYPE, STATUS, Problem
from memconform.contract.schemas import ROUTES, Route

SHAPE = "wire.shape"
PROBLEM = "wire.problem"

_NEVER_SENT = ("chunk.summary", "trace.rerank_skip_reason", "trace.vector_skip_reason")
"""Keys that no daemon of the contract sends, so there is nothing to break."""

_MAY_BE_MISSING = ("trace.rerank_provider", "done.answer")
"""Optional keys that no rule requires: a daemon without them is still correct."""

_RULES = {
    "version.run_id": "core.version.run",
    "trace.tuning": "core.tuning",
    "trace.rerank_provider": "core.mode.trace",
    "events.ping": "events.ping",
}
"""Rules of keys and events that have a rule of their own."""

_RULES_OF_STATUS = {
    401: "auth.required",
    403: "auth.required",
    413: "robust.large",
    502: "core.ingest.embedder",
    504: "core.ingest.embedder",
}
"""Rules of statuses that a single request cannot provoke on every daemon."""

_UNREACHABLE = ("rate_limited", "internal_error")
"""Codes that no request provokes on a correct daemon."""

_OTHER_STATUS = {200: 202, 201: 200, 204: 200}

_EVENT_MODELS: dict[str, type[BaseModel]] = {**EVENTS, "change": Change}


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of a model, and how it may be broken."""

    pointer: str
    rule: str
    required: bool
    may_be_missing: bool

    @property
    def slug(self) -> str:
        """The key as part of a mutant id: `chunks.trace.searchMs`."""
        return ".".join(part for part in self.pointer.split("/") if part not in ("", "*"))


def derived_mutants() -> Iterator[Mutant]:
    """Yield the mutants of all routes, their response bodies, their events, and all problems."""
    for route in ROUTES:
        yield from _status_mutants(route)
        yield from _media_type_mutants(route)
        if route.answer is not None:
            when = When(method=route.method.upper(), target=_target(route), status=[route.status])
            yield from _key_mutants(route, route.answer, when)
        for name in route.stream:
            yield from _event_mutants(route, name)
    yield from _problem_mutants()


def _target(route: Route) -> str:
    """Return a regular expression that matches the route's targets."""
    return "^" + re.escape(route.path).replace(re.escape("{brainId}"), "[^/?]+") + r"(\?|$)"


def _status_mutants(route: Route) -> Iterator[Mutant]:
    other = _OTHER_STATUS[route.status]
    when = When(method=route.method.upper(), target=_target(route), status=[route.status])
    yield Mutant(
        f"{route.name}-status-{other}",
        SHAPE,
        route.profile,
        f"{route.name} succeeds with {other} instead of {route.status}",
        Mutation(when=when, status=other),
    )


def _media_type_mutants(route: Route) -> Iterator[Mutant]:
    if route.answer is None and not route.stream and route.answers == "json":
        return
    when = When(method=route.method.upper(), target=_target(route), status=[route.status])
    for label, value in {"none": None, "html": "text/html"}.items():
        yield Mutant(
            f"{route.name}-media-type-{label}",
            SHAPE,
            route.profile,
            f"{route.name} answers {'without a media type' if value is None else f'as {value}'}",
            Mutation(when=when, headers={"Content-Type": value}),
        )


def _key_mutants(route: Route, model: type[BaseModel], when: When) -> Iterator[Mutant]:
    for key in _keys(model):
        for how, edit in _edits(key):
            yield Mutant(
                f"{route.name}-{key.slug}-{how}",
                key.rule,
                route.profile,
                f"{route.name}: {key.slug} {_DESCRIPTIONS[how]}",
                Mutation(when=when, edits=[edit]),
            )


def _event_mutants(route: Route, name: str) -> Iterator[Mutant]:
    when = When(target=_target(route))
    if name in PLAIN_EVENTS:
        edit = EventEdit(event=name, op="data", value="{}")
        yield Mutant(
            f"{route.name}-{name}-data", _RULES.get(f"{route.name}.{name}", SHAPE), route.profile,
            f"{name} has different data",
            Mutation(when=when, events=[edit]),
        )  # fmt: skip
        return
    for key in _keys(_EVENT_MODELS[name]):
        for how, change in _edits(key):
            yield Mutant(
                f"{route.name}-{name}-{key.slug}-{how}",
                key.rule,
                route.profile,
                f"{name}: {key.slug} {_DESCRIPTIONS[how]}",
                Mutation(when=when, events=[EventEdit(event=name, op="edit", edits=[change])]),
            )


def _problem_mutants() -> Iterator[Mutant]:
    codes = {code: status for code, status in STATUS.items() if code not in _UNREACHABLE}
    when = When(status=sorted(set(codes.values())))
    for key in _keys(Problem):
        for how, edit in _edits(key):
            yield Mutant(
                f"problem-{key.slug}-{how}", PROBLEM, None,
                f"a problem's {key.slug} {_DESCRIPTIONS[how]}",
                Mutation(when=when, edits=[edit]),
            )  # fmt: skip
    for label, value in {"none": None, "json": "application/json"}.items():
        yield Mutant(
            f"problem-media-type-{label}", "wire.json", None,
            f"problems are sent {'without a media type' if value is None else f'as {value}'},"
            f" not {MEDIA_TYPE}",
            Mutation(when=when, headers={"Content-Type": value}),
        )  # fmt: skip
    for code, status in codes.items():
        other = 418 if status != 502 else 503
        when_status = When(status=[status])
        rule = _RULES_OF_STATUS.get(status, PROBLEM)
        yield Mutant(
            f"status-{status}-other", rule, None, f"{status} becomes {other}, in the body too",
            Mutation(when=when_status, status=other, edits=[Edit(at="/status", set=other)]),
        )  # fmt: skip
        yield Mutant(
            f"status-{status}-500", rule, None, f"{status} becomes 500 internal_error",
            Mutation(
                when=when_status, status=500,
                edits=[Edit(at="/status", set=500), Edit(at="/code", set="internal_error")],
            ),
        )  # fmt: skip
        yield Mutant(
            f"status-{status}-code", rule, None, f"{status} has a code other than {code}",
            Mutation(when=when_status, edits=[Edit(at="/code", set="bad_request")]),
        )  # fmt: skip
        yield Mutant(
            f"status-{status}-body", rule, None, f"the body of {status} has a different status",
            Mutation(when=when_status, edits=[Edit(at="/status", set=499)]),
        )  # fmt: skip


_DESCRIPTIONS = {
    "missing": "is missing",
    "null": "is null",
    "retyped": "has the wrong type",
    "renamed": "has the wrong name",
}


def _edits(key: _Key) -> Iterator[tuple[str, Edit]]:
    """Yield the ways to break a key; an optional key may be null."""
    yield "retyped", Edit(at=key.pointer, op="retype")
    if key.may_be_missing:
        return
    yield "missing", Edit(at=key.pointer, op="remove")
    name = key.pointer.rpartition("/")[2]
    yield "renamed", Edit(at=key.pointer, op="rename", set=f"{name}_")
    if key.required:
        yield "null", Edit(at=key.pointer, set=None)


def _keys(model: type[BaseModel], at: str = "") -> Iterator[_Key]:
    """Yield every key of a model and of the models inside it, with a JSON pointer."""
    for name, info in model.model_fields.items():
        pointer = f"{at}/{info.alias or name}"
        full = f"{model.__name__.lower()}.{name}"
        if full in _NEVER_SENT:
            continue
        inner, is_list = _inner_model(info.annotation)
        may_be_missing, rule = full in _MAY_BE_MISSING, _RULES.get(full, SHAPE)
        yield _Key(pointer, rule, info.is_required(), may_be_missing)
        if inner is not None:
            yield from _keys(inner, f"{pointer}/*" if is_list else pointer)


def _inner_model(annotation: Any) -> tuple[type[BaseModel] | None, bool]:  # noqa: ANN401 - a type, of whatever kind
    """Return the model that a key contains, if any, and whether it is a list of it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    arguments = [type_ for type_ in get_args(annotation) if type_ is not type(None)]
    if get_origin(annotation) is list:
        return _inner_model(arguments[0])[0], True
    if get_origin(annotation) in (Union, UnionType) and len(arguments) == 1:
        return _inner_model(arguments[0])
    return None, False
