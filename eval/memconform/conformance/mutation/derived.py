"""Mutants that follow from the contract's shapes: each key, status, header and code, gone wrong.

Pure. What the table holds is thought of, and may be forgotten; a key that is new in a model is
broken here by itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from memconform.conformance.mutation.mutant import Mutant
from memconform.contract.ask import EVENTS
from memconform.contract.events import PLAIN_EVENTS, Change
from memconform.contract.problem import MEDIA_TYPE, STATUS, Problem
from memconform.contract.schemas import ROUTES, Route
from memconform.fakes.mutation import Edit, EventEdit, Mutation, When

SHAPE = "wire.shape"
PROBLEM = "wire.problem"

_NEVER_SENT = ("chunk.summary",)
"""No daemon gives it yet, so that nothing of it can go wrong."""

_MAY_BE_MISSING = ("trace.rerank_provider", "done.answer")
"""Optional keys that no rule has a daemon give: without them nothing is broken."""

_RULES = {
    "version.run_id": "core.version.run",
    "trace.tuning": "core.tuning",
    "trace.rerank_provider": "core.mode.trace",
    "events.ping": "events.ping",
}
"""Rules of keys, and of events, that have one of their own."""

_RULES_OF_STATUS = {
    401: "auth.required",
    403: "auth.required",
    413: "robust.large",
    502: "core.ingest.embedder",
    504: "core.ingest.embedder",
}
"""Of statuses that not every daemon can be brought to by one request."""

_NOT_ANSWERED = ("rate_limited", "internal_error")
"""Codes that no request brings a good daemon to."""

_OTHER_STATUS = {200: 202, 201: 200, 204: 200}

_EVENT_MODELS: dict[str, type[BaseModel]] = {**EVENTS, "change": Change}


@dataclass(frozen=True, slots=True)
class _Key:
    pointer: str
    rule: str
    required: bool
    may_be_missing: bool

    @property
    def slug(self) -> str:
        """As it is part of an id: `chunks.trace.searchMs`."""
        return ".".join(part for part in self.pointer.split("/") if part not in ("", "*"))


def derived() -> Iterator[Mutant]:
    for route in ROUTES:
        yield from _of_status(route)
        yield from _of_media_type(route)
        if route.answer is not None:
            when = When(method=route.method.upper(), target=_target(route), status=[route.status])
            yield from _of_keys(route, route.answer, when)
        for name in route.stream:
            yield from _of_event(route, name)
    yield from _of_problems()


def _target(route: Route) -> str:
    """A regular expression that the route's targets fit."""
    return "^" + re.escape(route.path).replace(re.escape("{brainId}"), "[^/?]+") + r"(\?|$)"


def _of_status(route: Route) -> Iterator[Mutant]:
    other = _OTHER_STATUS[route.status]
    when = When(method=route.method.upper(), target=_target(route), status=[route.status])
    yield Mutant(
        f"{route.name}-status-{other}",
        SHAPE,
        route.profile,
        f"{route.name} succeeds with {other} for {route.status}",
        Mutation(when=when, status=other),
    )


def _of_media_type(route: Route) -> Iterator[Mutant]:
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


def _of_keys(route: Route, model: type[BaseModel], when: When) -> Iterator[Mutant]:
    for key in _keys(model):
        for how, edit in _ways(key):
            yield Mutant(
                f"{route.name}-{key.slug}-{how}",
                key.rule,
                route.profile,
                f"{route.name}: {key.slug} {_WORDS[how]}",
                Mutation(when=when, edits=[edit]),
            )


def _of_event(route: Route, name: str) -> Iterator[Mutant]:
    when = When(target=_target(route))
    if name in PLAIN_EVENTS:
        edit = EventEdit(event=name, op="data", value="{}")
        yield Mutant(
            f"{route.name}-{name}-data", _RULES.get(f"{route.name}.{name}", SHAPE), route.profile,
            f"{name} has other data",
            Mutation(when=when, events=[edit]),
        )  # fmt: skip
        return
    for key in _keys(_EVENT_MODELS[name]):
        for how, change in _ways(key):
            yield Mutant(
                f"{route.name}-{name}-{key.slug}-{how}",
                key.rule,
                route.profile,
                f"{name}: {key.slug} {_WORDS[how]}",
                Mutation(when=when, events=[EventEdit(event=name, op="edit", edits=[change])]),
            )


def _of_problems() -> Iterator[Mutant]:
    codes = {code: status for code, status in STATUS.items() if code not in _NOT_ANSWERED}
    when = When(status=sorted(set(codes.values())))
    for key in _keys(Problem):
        for how, edit in _ways(key):
            yield Mutant(
                f"problem-{key.slug}-{how}", PROBLEM, None, f"a problem's {key.slug} {_WORDS[how]}",
                Mutation(when=when, edits=[edit]),
            )  # fmt: skip
    for label, value in {"none": None, "json": "application/json"}.items():
        yield Mutant(
            f"problem-media-type-{label}", "wire.json", None,
            f"problems come {'without a media type' if value is None else f'as {value}'},"
            f" not {MEDIA_TYPE}",
            Mutation(when=when, headers={"Content-Type": value}),
        )  # fmt: skip
    for code, status in codes.items():
        other = 418 if status != 502 else 503
        when_it = When(status=[status])
        rule = _RULES_OF_STATUS.get(status, PROBLEM)
        yield Mutant(
            f"status-{status}-other", rule, None, f"{status} is answered as {other}, body too",
            Mutation(when=when_it, status=other, edits=[Edit(at="/status", set=other)]),
        )  # fmt: skip
        yield Mutant(
            f"status-{status}-500", rule, None, f"{status} is answered as internal_error",
            Mutation(
                when=when_it, status=500,
                edits=[Edit(at="/status", set=500), Edit(at="/code", set="internal_error")],
            ),
        )  # fmt: skip
        yield Mutant(
            f"status-{status}-code", rule, None, f"{status} has another code than {code}",
            Mutation(when=when_it, edits=[Edit(at="/code", set="bad_request")]),
        )  # fmt: skip
        yield Mutant(
            f"status-{status}-body", rule, None, f"the body of {status} names another status",
            Mutation(when=when_it, edits=[Edit(at="/status", set=499)]),
        )  # fmt: skip


_WORDS = {
    "missing": "is missing",
    "null": "is null",
    "retyped": "has another type",
    "renamed": "has another name",
}


def _ways(key: _Key) -> Iterator[tuple[str, Edit]]:
    """How a key goes wrong; an optional one may be null, or may be left out."""
    yield "retyped", Edit(at=key.pointer, op="retype")
    if key.may_be_missing:
        return
    yield "missing", Edit(at=key.pointer, op="remove")
    name = key.pointer.rpartition("/")[2]
    yield "renamed", Edit(at=key.pointer, op="rename", set=f"{name}_")
    if key.required:
        yield "null", Edit(at=key.pointer, set=None)


def _keys(model: type[BaseModel], at: str = "") -> Iterator[_Key]:
    """Every key of a model and of those inside it, by JSON pointers."""
    for name, info in model.model_fields.items():
        pointer = f"{at}/{info.alias or name}"
        full = f"{model.__name__.lower()}.{name}"
        if full in _NEVER_SENT:
            continue
        inner, many = _inside(info.annotation)
        free, rule = full in _MAY_BE_MISSING, _RULES.get(full, SHAPE)
        yield _Key(pointer, rule, info.is_required(), free)
        if inner is not None:
            yield from _keys(inner, f"{pointer}/*" if many else pointer)


def _inside(annotation: Any) -> tuple[type[BaseModel] | None, bool]:  # noqa: ANN401 - a type, of whatever kind
    """The model that a key holds, if it does, and whether it holds a list of it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    arguments = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) is list:
        return _inside(arguments[0])[0], True
    if get_origin(annotation) in (Union, UnionType) and len(arguments) == 1:
        return _inside(arguments[0])
    return None, False
