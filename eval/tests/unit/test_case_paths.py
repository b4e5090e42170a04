"""A translation keeps what a case tests: every request of all cases, in every dialect with paths.

The properties are computed here from what is sent, and not by the code that translates.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import combinations, product
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import pytest

from memconform.conformance import bodies
from memconform.conformance.case import BaseStep, RequestStep, StoreStep
from memconform.conformance.case_paths import CasePaths, reordered
from memconform.conformance.catalog import CaseVariant, catalog, walk_steps
from memconform.conformance.translation import Translation
from memconform.conformance.variables import UnknownVariableError, substitute
from memconform.contract.dialect import Dialect
from memconform.contract.dialect_keys import DialectError

_BRAIN = "/v1/brains/mc-1"
_VARIABLES = {
    "brain": "mc-1",
    "brain_url": _BRAIN,
    "other_brain": "mc-1-2",
    "outside": "/outside.txt",
    "index": 0,
    "host": "127.0.0.1:1",
    "address": "http://127.0.0.1:1",
    "state": "/state",
    "run_id": "run",
}


def _dialects() -> dict[str, Dialect]:
    shipped = resources.files("memconform") / "dialects"
    tables = {f.name: tomllib.loads(f.read_text()) for f in shipped.iterdir()}
    tables["both"] = {"paths": {"prefix": "kb/", "suffix": ".txt"}}
    tables["prefix"] = {"paths": {"prefix": "store/of/"}}
    tables["suffix"] = {"paths": {"suffix": ".document"}}
    tables["joined"] = {"paths": {"prefix": "doc-"}}
    return {name: Dialect.model_validate(table) for name, table in tables.items()}


_DIALECTS = _dialects()
Request = tuple[str, bytes | None]


def _sent(entry: CaseVariant) -> Iterator[Request]:
    """The requests of a case that name paths; those with a part of a response are left out."""
    documents = entry.case.documents
    stored = [StoreStep.model_validate({"store": documents, "via": "put"})] if documents else []
    for step in (*stored, *walk_steps(entry.case)):
        try:
            yield from (request for request in _requests(step) if _named(request))
        except UnknownVariableError:
            continue


def _requests(step: BaseStep) -> Iterator[Request]:
    if isinstance(step, StoreStep):
        for path in substitute(step.store, _VARIABLES):
            yield f"PUT {_BRAIN}/documents?path={quote(path)}", b"x"
        return
    line = getattr(step, "http", "") or getattr(step, "stream", "")
    if isinstance(step, RequestStep) and step.server != "upstream":
        body = None
        if "json_" in step.model_fields_set:
            body = bodies.as_json(bodies.build_body(step.json_, _VARIABLES))
        yield substitute(line, _VARIABLES), body


@dataclass(frozen=True)
class _Named:
    """A value of a request that names documents: a `path`, `dir`, `glob` or `prefix`."""

    kind: str
    text: str | None
    """What it means; None if it is not UTF-8, or has an escape that is none."""

    @property
    def traits(self) -> set[str]:
        if self.text is None:
            return {"undecodable"}
        if self.kind not in ("path", "dir"):
            return {"empty"} if not self.text else set()
        return set(_traits(self.text))

    @property
    def is_valid(self) -> bool:
        return self.text is not None and self.traits <= {"hidden"}


def _traits(path: str) -> Iterator[str]:
    segments = path.split("/")
    depth = 0
    for segment in path.replace("\\", "/").split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(segment, 1)
        if depth < 0:
            yield "traversal"
    facts = {
        "empty": not path,
        "absolute": path.startswith("/"),
        "dot segment": "." in segments,
        "parent segment": ".." in segments,
        "trailing slash": len(path) > 1 and path.endswith("/"),
        "empty segment": "" in segments[1:-1],
        "backslash": "\\" in path,
        "NUL": "\0" in path,
        "too long": len(path.encode("utf-8", "surrogatepass")) > 2_048
        or any(len(s.encode("utf-8", "surrogatepass")) > 250 for s in segments),
        "hidden": segments[-1].startswith("_"),
    }
    yield from (name for name, holds in facts.items() if holds)


def _named(request: Request) -> list[_Named]:
    line, body = request
    query = line.partition("?")[2]
    found = []
    if "/documents" in line:
        for parameter in query.split("&"):
            name, _, value = parameter.partition("=")
            # The brain itself, which is the default of a listing, has no name.
            if name in ("path", "dir", "glob") and (value or name == "path"):
                found.append(_Named(name, _meaning(value)))
    value = _parsed(body)
    if not isinstance(value, dict):
        return found
    items = [value, *_objects(value.get("documents")), *_objects(value.get("ops"))]
    for item in items:
        for key in ("path", "from", "to"):
            if isinstance(item.get(key), str):
                found.append(_Named("path", item[key]))
    filters = value.get("filters")
    if isinstance(filters, dict):
        paths = filters.get("paths")
        texts = paths if isinstance(paths, list) else []
        found += [_Named("path", text) for text in texts if isinstance(text, str)]
        if isinstance(filters.get("pathPrefix"), str):
            found.append(_Named("prefix", filters["pathPrefix"]))
    return found


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _parsed(body: bytes | None) -> Any:
    try:
        return json.loads(body or b"null")
    except (ValueError, RecursionError):
        return None


def _meaning(value: str) -> str | None:
    if re.search("%(?![0-9A-Fa-f]{2})", value):
        return None
    try:
        return unquote_to_bytes(value.replace("+", " ")).decode()
    except UnicodeError:
        return None


def _relation(one: _Named, two: _Named) -> set[str]:
    """How two valid values relate; the order is apart, because not every case observes it."""
    a, b = one.text or "", two.text or ""
    match one.kind, two.kind:
        case ("path" | "dir", "path" | "dir"):
            facts = {
                "equal": a == b,
                "below": a.startswith(f"{b}/"),
                "above": b.startswith(f"{a}/"),
                "directly below": a.rpartition("/")[0] == b,
                "siblings": a.rpartition("/")[0] == b.rpartition("/")[0],
            }
        case ("prefix", "path"):
            facts = {"selects": b.startswith(a)}
        case ("glob", "path"):
            names = b.split("/")
            facts = {f"matches {i}": _matches(a, name) for i, name in enumerate(reversed(names))}
        case _:
            facts = {}
    return {name for name, holds in facts.items() if holds}


def _matches(glob: str, name: str) -> bool:
    pattern = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in glob)
    return re.fullmatch(pattern, name, re.DOTALL) is not None


@cache
def _cases() -> tuple[tuple[CaseVariant, tuple[Request, ...]], ...]:
    """Each distinct set of requests once."""
    seen = {requests: entry for entry in catalog() if (requests := tuple(_sent(entry)))}
    return tuple((entry, requests) for requests, entry in seen.items())


_COMPARED = 25
"""Compare so many of the first and last paths of a case with each other; some have thousands."""


def _changes(dialect: Dialect, requests: tuple[Request, ...]) -> Iterator[str]:
    """What a translation changes in the requests that are sent at all."""
    translation = Translation(dialect)
    pairs: list[tuple[_Named, _Named]] = []
    for request in requests:
        try:
            own = translation.request(*request)
        except DialectError:
            continue
        before, after = _named(request), _named(own)
        if translation.paths.prefix:
            after = [n for n in after if n != _Named("dir", translation.paths.folder_to_daemon(""))]
        if [n.kind for n in before] != [n.kind for n in after]:
            yield f"{request[0]}: {before} becomes {after}"
        for one, two in zip(before, after, strict=False):
            if one.traits != two.traits:
                yield f"{one} {one.traits} becomes {two} {two.traits}"
            pairs.append((one, two))
    valid = list(dict.fromkeys(pair for pair in pairs if pair[0].is_valid))
    valid = [*valid[:_COMPARED], *valid[_COMPARED:][-_COMPARED:]]
    for (one, own_one), (two, own_two) in product(valid, valid):
        if _relation(one, two) != _relation(own_one, own_two):
            yield (
                f"{one} and {two}: {_relation(one, two)} becomes"
                f" {own_one} and {own_two}: {_relation(own_one, own_two)}"
            )
