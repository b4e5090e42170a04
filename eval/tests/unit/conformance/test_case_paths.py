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
from itertools import product
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import pytest

from memconform.conformance import request_bodies
from memconform.conformance.applicability import dialect_skip_reason
from memconform.conformance.case import BaseStep, RequestStep, StoreStep
from memconform.conformance.case_paths import CasePaths, order_changes
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
            body = request_bodies.as_json(
                _without_content(request_bodies.build_body(step.json_, _VARIABLES))
            )
        yield substitute(line, _VARIABLES), body


def _without_content(value: Any) -> Any:
    """A body without the contents of documents, some of which have megabytes."""
    if isinstance(value, dict):
        contents = ("contentBase64", "content_base64")
        return {key: "" if key in contents else _without_content(v) for key, v in value.items()}
    return [_without_content(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class _Named:
    """A value of a request that names documents: a `path`, `dir`, `glob` or `prefix`."""

    kind: str
    text: str | None
    """What it means; None if it is not UTF-8, or has an escape that is none."""

    @property
    def traits(self) -> frozenset[str]:
        if self.text is None:
            return frozenset({"undecodable"})
        if self.kind not in ("path", "dir"):
            return frozenset() if self.text else frozenset({"empty"})
        return _traits(self.text)

    @property
    def is_valid(self) -> bool:
        return self.text is not None and self.traits <= {"hidden"}


@cache
def _traits(path: str) -> frozenset[str]:
    segments = path.split("/")
    depth = lowest = 0
    for segment in path.replace("\\", "/").split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(segment, 1)
        lowest = min(lowest, depth)
    facts = {
        "traversal": lowest < 0,
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
    return frozenset(name for name, holds in facts.items() if holds)


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
        named = (item.get(key) for key in ("path", "from", "to"))
        found += [_Named("path", text) for text in named if isinstance(text, str)]
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
                "below the sidecar of": a.startswith(f"{b}.json/"),
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


_COMPARED = 12
"""Compare so many of the first and last paths of a case with each other; some have thousands."""


def _changes(translation: Translation, requests: tuple[Request, ...]) -> Iterator[str]:
    """What a translation changes in the requests that are sent at all."""
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


@pytest.mark.parametrize("name", _DIALECTS)
def test_every_request_of_every_case_keeps_what_it_tests(name: str) -> None:
    """A suffix at the end of paths once turned a conflict into two unrelated documents."""
    changes = [
        f"{entry.id}: {change}"
        for entry, requests in _cases()
        for change in _changes(Translation(_DIALECTS[name]), requests)
    ]
    assert changes == []


@pytest.mark.parametrize("name", _DIALECTS)
def test_documents_sort_as_in_the_contract_or_the_case_is_not_applicable(name: str) -> None:
    dialect = _DIALECTS[name]
    paths = Translation(dialect).paths
    for entry, _ in _cases():
        texts = [path for path in entry.case.documents if "${" not in path]
        try:
            written = [paths.to_daemon(text).encode() for text in sorted(texts, key=str.encode)]
        except DialectError:
            continue
        if written != sorted(written):
            assert "sorts before" in (dialect_skip_reason(entry, dialect) or ""), entry.id


def test_few_cases_are_not_applicable_for_their_paths() -> None:
    """What can be measured is measured."""
    translation = Translation(_DIALECTS["both"])
    refused = set()
    for entry, requests in _cases():
        for request in requests:
            try:
                translation.request(*request)
            except DialectError:
                refused.add(entry.id)
    assert len(refused) < len(_cases()) / 20


class _SuffixAtTheEnd(CasePaths):
    """How paths were once written."""

    def to_daemon(self, path: str) -> str:
        return f"{self.prefix}{path}{self.suffix}"

    def in_query(self, value: str) -> str:
        return self.to_daemon(value) if value else value


def test_a_translation_that_loses_a_property_is_noticed() -> None:
    translation = Translation(_DIALECTS["both"])
    own = translation.dialect.model_copy(
        update={"paths": _SuffixAtTheEnd(prefix="kb/", suffix=".txt")}
    )
    object.__setattr__(translation, "dialect", own)
    lost = {
        trait
        for _, requests in _cases()
        for change in _changes(translation, requests)
        for trait in re.findall(r"'([a-z ]+)'", change.partition(" becomes ")[0])
    }
    assert {"traversal", "absolute", "trailing slash", "parent segment", "above", "below"} <= lost


def test_paths_that_come_back_are_those_of_the_case() -> None:
    paths = CasePaths(prefix="kb/", suffix=".txt")
    for path in ("a", "a/b.md", "_h/x", "größe.md", "a b/c"):
        assert paths.from_daemon(paths.to_daemon(path)) == path
        assert paths.folder_from_daemon(paths.folder_to_daemon(path)) == path
    assert paths.folder_from_daemon("kb") == ""
    for other in ("elsewhere/a.txt", "kb/a", "kb/a/b.txt", "kb"):
        assert paths.from_daemon(other) == other


def test_a_beginning_of_paths_selects_the_same_documents() -> None:
    paths = CasePaths(prefix="kb/", suffix=".txt")
    assert paths.prefix_to_daemon("a/") == "kb/a.txt/"
    assert paths.prefix_to_daemon("a/b") == "kb/a.txt/b"
    assert paths.prefix_to_daemon("") == "kb/"


@pytest.mark.parametrize(
    ("paths", "path", "why"),
    [
        (CasePaths(suffix=".txt"), "a.json/b", "sidecar"),
        (CasePaths(suffix=".txt"), "x" * 250, "longer"),
        (CasePaths(prefix="doc-"), "_hidden", "first segment"),
    ],
)
def test_a_path_that_would_test_something_else_is_not_applicable(
    paths: CasePaths, path: str, why: str
) -> None:
    with pytest.raises(DialectError, match=why) as caught:
        paths.to_daemon(path)
    assert caught.value.code == "not_in_dialect"
    with pytest.raises(DialectError, match=why):
        paths.in_query(path)


def test_an_order_that_a_suffix_changes_is_found() -> None:
    paths = CasePaths(suffix=".txt")
    assert order_changes(["b", "a", "a/b"], paths) is None
    assert order_changes(["a-b", "a"], paths) == ("a", "a-b")
    assert order_changes(["a-b", "a"], CasePaths(prefix="kb/")) is None


def test_files_of_the_state_folder_are_where_the_daemon_has_them() -> None:
    paths = CasePaths(prefix="kb/", suffix=".txt")
    assert paths.on_disk("brains/mc/a.md") == "brains/mc/kb/a.md.txt"
    assert paths.on_disk("brains/mc/*.md") == "brains/mc/kb/*.md.txt"
    for plain in ("brains/mc", "brains/mc/**/*", "index/**/*", "descriptions/mc.txt"):
        assert paths.on_disk(plain) == plain
    assert paths.from_disk("brains/mc/kb/a.md.txt") == "brains/mc/a.md"
    assert paths.from_disk("brains/mc") == "brains/mc"
    with pytest.raises(DialectError, match="meta/"):
        paths.on_disk("meta/mc/a.md.json")
    assert CasePaths().on_disk("meta/mc/a.md.json") == "meta/mc/a.md.json"
