"""Checks request bodies against the contract: types, ranges and forms. Pure.

A check returns the rejections that a value requires; none if it is valid.
"""

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memconform.contract.wire import JsonValue
from memconform.oracle.dates import seconds
from memconform.oracle.paths import is_canonical
from memconform.oracle.predictions import Rejection, invalid

Check = Callable[[JsonValue], list[Rejection]]

_WHITE_SPACE = frozenset(
    "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    + "".join(map(chr, range(0x2000, 0x200B)))
)
_ANNOTATION_BYTES = 4_096
_TYPES = [invalid("wire.types")]


def anything(value: JsonValue) -> list[Rejection]:
    """Any value."""
    del value
    return []


def text(value: JsonValue) -> list[Rejection]:
    """A string."""
    return [] if isinstance(value, str) else _TYPES


def texts(value: JsonValue) -> list[Rejection]:
    """An array of strings."""
    is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return [] if is_list else _TYPES


def query(value: JsonValue) -> list[Rejection]:
    """A string that is not blank."""
    if not isinstance(value, str):
        return _TYPES
    return [invalid("core.search.refuse")] if _WHITE_SPACE.issuperset(value) else []


def path(value: JsonValue) -> list[Rejection]:
    """A canonical path."""
    if not isinstance(value, str):
        return _TYPES
    return [] if is_canonical(value) else [invalid("core.ingest.path")]


def date(rule: str) -> Check:
    """A date or an RFC 3339 date-time."""

    def check(value: JsonValue) -> list[Rejection]:
        if not isinstance(value, str):
            return _TYPES
        return [] if seconds(value) is not None else [invalid(rule)]

    return check


def choice(rule: str, *values: str) -> Check:
    """One of some strings."""

    def check(value: JsonValue) -> list[Rejection]:
        if not isinstance(value, str):
            return _TYPES
        return [] if value in values else [invalid(rule)]

    return check


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def integer(rule: str, least: int, most: int) -> Check:
    """An integer; 5.0 is one."""

    def check(value: JsonValue) -> list[Rejection]:
        if not _is_number(value) or (isinstance(value, float) and not value.is_integer()):
            return [invalid("wire.types" if not _is_number(value) else rule)]
        return [] if least <= value <= most else [invalid(rule)]

    return check


def number(rule: str, least: float, most: float) -> Check:
    """A number in a range."""

    def check(value: JsonValue) -> list[Rejection]:
        if not _is_number(value):
            return _TYPES
        return [] if least <= value <= most else [invalid(rule)]

    return check


def annotation(value: JsonValue) -> list[Rejection]:
    """A string of at most 4,096 bytes."""
    if not isinstance(value, str):
        return _TYPES
    too_long = len(value.encode()) > _ANNOTATION_BYTES
    return [invalid("documents.batch.refuse")] if too_long else []


def encoded(rule: str) -> Check:
    """Canonical base64."""

    def check(value: JsonValue) -> list[Rejection]:
        if not isinstance(value, str):
            return _TYPES
        return [] if decoded(value) is not None else [invalid(rule)]

    return check


def decoded(value: str) -> bytes | None:
    """Decode base64; None if it is not the encoding of any bytes."""
    try:
        content = base64.b64decode(value, validate=True)
    except ValueError:
        return None
    return content if base64.b64encode(content).decode() == value else None


def metadata(value: JsonValue) -> list[Rejection]:
    """An object without numbers beyond float64."""
    if not isinstance(value, dict):
        return _TYPES
    return [] if _is_finite(value) else [invalid("core.ingest.refuse")]


def _is_finite(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    try:
        return not _is_number(value) or math.isfinite(value)
    except OverflowError:
        return False


def objects(least: int, most: int | None, rule: str) -> Check:
    """An array of objects."""

    def check(value: JsonValue) -> list[Rejection]:
        if not isinstance(value, list):
            return _TYPES
        if len(value) < least or (most is not None and len(value) > most):
            return [invalid(rule)]
        return []

    return check


def fields(
    body: JsonValue,
    checks: Mapping[str, Check],
    required: Sequence[str] = (),
    missing: str = "wire.types",
    *,
    closed: bool = False,
) -> list[Rejection]:
    """Check the keys of an object; null is the same as a missing key.

    Args:
        body: The object.
        checks: The check of each known key.
        required: Keys that must be there.
        missing: The rule that a missing key violates.
        closed: Whether unknown keys must be rejected.
    """
    if not isinstance(body, dict):
        return _TYPES
    found = [invalid(missing) for key in required if body.get(key) is None]
    if closed:
        found += [invalid("wire.unknown-keys") for key in body if key not in checks]
    for key, check in checks.items():
        if body.get(key) is not None:
            found += check(body[key])
    return found


def _closed(checks: Mapping[str, Check], required: Sequence[str], missing: str) -> Check:
    return lambda value: fields(value, checks, required, missing, closed=True)


_FILTERS: dict[str, Check] = {
    "pathPrefix": text,
    "paths": texts,
    "tags": texts,
    "sessionIds": texts,
    "scope": choice("core.filter.honest", "global", "project", "raw"),
    "project": text,
}


def _recency(value: JsonValue) -> list[Rejection]:
    rule = "core.rank.recency"
    unit = number(rule, 0, 1)
    checks = {
        "now": date(rule),
        "relevance": unit,
        "weight": unit,
        "decayDays": number(rule, 1, 36_500),
    }
    found = fields(value, checks, tuple(checks), rule, closed=True)
    return found or ([invalid(rule)] if value["relevance"] + value["weight"] > 1 else [])


_TEMPORAL: dict[str, Check] = {
    "at": date("core.rank.temporal"),
    "toleranceDays": number("core.rank.temporal", 1, 36_500),
    "boost": number("core.rank.temporal", 0, 1),
}

_TUNING: dict[str, Check] = {
    "fusion": choice("core.tuning", "minmax", "rrf"),
    "alpha": number("core.tuning", 0, 1),
    "rrfK": integer("core.tuning", 1, 10_000),
    "poolFactor": integer("core.tuning", 1, 1_000),
    "poolFloor": integer("core.tuning", 1, 10_000),
    "kernel": choice("core.tuning", "cosine", "inverse-l2"),
    "recency": _recency,
    "temporal": _closed(_TEMPORAL, tuple(_TEMPORAL), "core.rank.temporal"),
}

_RETRIEVAL: dict[str, Check] = {
    "mode": choice(
        "core.search.refuse",
        "auto",
        "bm25",
        "semantic",
        "hybrid",
        "hybrid-rerank",
        "conversation",
    ),
    "topK": integer("core.search.refuse", 1, 1_000),
    "questionDate": date("core.search.refuse"),
    "candidateK": integer("core.search.refuse", 0, 10_000),
    "rerankTopN": integer("core.search.refuse", 0, 1_000),
    "filters": _closed(_FILTERS, (), ""),
    "tuning": _closed(_TUNING, (), ""),
}

_SEARCH = _RETRIEVAL | {"query": query}
_ASK = _RETRIEVAL | {
    "question": query,
    "readerMode": choice("ask.before-stream", "basic", "augmented"),
    "model": text,
}
_DOCUMENT: dict[str, Check] = {
    "path": path,
    "contentType": text,
    "contentBase64": encoded("core.ingest.refuse"),
    "title": text,
    "tags": texts,
    "metadata": metadata,
}


def search(body: JsonValue) -> list[Rejection]:
    """Check the body of a search."""
    return fields(body, _SEARCH, ("query",), "core.search.refuse")


def ask(body: JsonValue) -> list[Rejection]:
    """Check the body of a question."""
    return fields(body, _ASK, ("question",), "core.search.refuse")


def document(body: JsonValue) -> list[Rejection]:
    """Check a document to ingest."""
    return fields(body, _DOCUMENT, ("path", "contentType", "contentBase64"), "core.ingest.refuse")


def batch(body: JsonValue) -> list[Rejection]:
    """Check the documents of an ingest."""
    found = fields(
        body,
        {"documents": objects(1, 1_024, "core.ingest.batch")},
        ("documents",),
        "core.ingest.batch",
    )
    return found or _named("documents", body["documents"], document)


def _named(key: str, items: Sequence[JsonValue], check: Check) -> list[Rejection]:
    return [
        invalid(rejection.rule, f"{key}[{number_}]")
        for number_, item in enumerate(items)
        for rejection in check(item)
    ]


def create(body: JsonValue) -> list[Rejection]:
    """Check the body that creates a brain."""
    checks = {"brainId": _brain_id, "description": text}
    return fields(body, checks, ("brainId",), "core.brain.id")


def _brain_id(value: JsonValue) -> list[Rejection]:
    if not isinstance(value, str):
        return _TYPES
    letters = value.isascii() and value.replace("-", "a").replace(".", "a").replace("_", "a")
    is_valid = letters and letters.isalnum() and len(value) <= 128 and value not in (".", "..")
    return [] if is_valid else [invalid("core.brain.id")]


def rename(body: JsonValue) -> list[Rejection]:
    """Check the body of a rename."""
    return fields(body, {"from": path, "to": path}, ("from", "to"))


_OP_KINDS: dict[str, tuple[str, Check]] = {
    "write": ("content_base64", encoded("documents.batch.refuse")),
    "append": ("content_base64", encoded("documents.batch.refuse")),
    "rename": ("to", path),
}


def operation(body: JsonValue) -> list[Rejection]:
    """Check one operation of a batch; keys that its type does not require are ignored."""
    refuse = "documents.batch.refuse"
    kinds = choice(refuse, "write", "append", "delete", "rename")
    checks: dict[str, Check] = {"type": kinds, "path": path}
    required = ["type", "path"]
    kind = body.get("type") if isinstance(body, dict) else None
    if isinstance(kind, str) and kind in _OP_KINDS:
        key, check = _OP_KINDS[kind]
        checks[key] = check
        required.append(key)
    return fields(body, checks, required, refuse)


def operations(body: JsonValue) -> list[Rejection]:
    """Check a batch of operations."""
    names = dict.fromkeys(("reason", "message", "author", "email"), annotation)
    checks = {"ops": objects(1, None, "documents.batch.refuse"), **names}
    found = fields(body, checks, ("ops",), "documents.batch.refuse")
    ops = body.get("ops") if isinstance(body, dict) else None
    items: list[Any] = ops if isinstance(ops, list) else []
    found += _named("ops", items, operation)
    over = len(items) > 1_024
    return [*found, Rejection(413, "documents.limit")] if over else found
