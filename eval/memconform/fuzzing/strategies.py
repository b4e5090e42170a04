"""Hypothesis strategies for valid and nearly valid requests, built from the contract's models.

The models determine the keys, which of them are optional, and their numbers and choices. Texts come
from small pools so that queries match stored documents, and several of them: otherwise daemons
would merely agree on empty results.
"""

from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema
from pydantic import BaseModel

from memconform.contract.core import Filters, Recency, Temporal, Tuning
from memconform.contract.schemas import ROUTES, Route
from memconform.contract.wire import JsonValue, Profile
from memconform.fuzzing.pools import (
    BAD_PATHS,
    CONTENTS,
    METADATA,
    PATHS,
    POOLS,
    TAGS,
    TITLES,
    Json,
)
from memconform.fuzzing.programs import BRAIN, RESTARTS, Call, Program, document, route

_NESTED: dict[str, type[BaseModel]] = {
    "filters": Filters,
    "tuning": Tuning,
    "recency": Recency,
    "temporal": Temporal,
}


@cache
def body(model: type[BaseModel]) -> Json:
    """Return a strategy for valid bodies of a model.

    Cached: building one for each call took most of a program's time.
    """
    schema = model.model_json_schema()
    required: dict[str, Json] = {}
    optional: dict[str, Json] = {}
    for name, info in model.model_fields.items():
        key = info.alias or name
        prop = {"$defs": schema.get("$defs", {}), **schema["properties"][key]}
        group = required if info.is_required() or name == "mode" else optional
        group[key] = _value(name, prop)
    return st.fixed_dictionaries(required, optional=optional)


def _value(name: str, schema: dict[str, JsonValue]) -> Json:
    if name == "filters":
        # With several filters, mostly nothing is found, whatever one of them does.
        return st.one_of(body(Filters), _one_filter())
    if name in _NESTED:
        return body(_NESTED[name])
    if name == "content_base64":
        return CONTENTS.map(lambda content: document("", content)["contentBase64"])
    pool = POOLS.get(name)
    return pool if pool is not None else from_schema(schema)


@cache
def _one_filter() -> Json:
    return (
        body(Filters)
        .filter(bool)
        .flatmap(
            lambda filters: st.sampled_from(sorted(filters)).map(lambda key: {key: filters[key]})
        )
    )


_DOCUMENT = st.builds(
    lambda path, content, extra: document(path, content, **extra),
    PATHS,
    CONTENTS,
    st.fixed_dictionaries({}, optional={"title": TITLES, "tags": TAGS, "metadata": METADATA}),
)
_BATCH = st.fixed_dictionaries({"documents": st.lists(_DOCUMENT, min_size=1, max_size=7)})


def _op(kind: str) -> Json:
    fields = {"type": st.just(kind), "path": PATHS}
    if kind in ("write", "append"):
        fields["content_base64"] = _value("content_base64", {})
    if kind == "rename":
        fields["to"] = PATHS
    return st.fixed_dictionaries(fields)


_TITLES = st.permutations(("Alpha", "Beta", ""))


@st.composite
def chains(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Generate documents with attributes, and a batch that moves, deletes and writes them.

    Every op of it succeeds, which of random ones hardly two do.
    """
    paths = draw(st.permutations(_CHAIN_PATHS))[: draw(st.integers(3, 4))]
    existing = set(paths[:2])
    documents = [
        document(path, b"heron " + path.encode(), title=title, tags=["red"])
        for path, title in zip(paths[:2], draw(_TITLES), strict=False)
    ]
    ops: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(2, 7))):
        kind = draw(st.sampled_from(("rename", "rename", "rename", "delete", "write", "append")))
        path = draw(st.sampled_from(sorted(existing) or paths)) if kind != "write" else None
        if kind == "write" or not existing:
            content = document("", b"heron anew")["contentBase64"]
            target = draw(st.sampled_from(paths))
            ops.append({"type": "write", "path": target, "content_base64": content})
            existing.add(target)
        elif kind == "append":
            content = document("", b" and more")["contentBase64"]
            ops.append({"type": kind, "path": path, "content_base64": content})
        else:
            ops.append({"type": kind, "path": path})
            existing.discard(str(path))
            if kind == "rename":
                ops[-1]["to"] = draw(st.sampled_from(paths))
                existing.add(ops[-1]["to"])
    return {"documents": documents}, {"ops": ops}


_CHAIN_PATHS = ("a.md", "b.md", "c.md", "dir/a.md", "_h.md")
_FOUND_BY_ALL = {"query": "heron", "mode": "bm25", "topK": 50}


def _chained(chain: tuple[dict[str, Any], dict[str, Any]]) -> tuple[Call, ...]:
    documents, ops = chain
    paths = ("ingestBatch", documents), ("batchOps", ops), ("search", _FOUND_BY_ALL)
    return tuple(Call(name, "POST", route(name).path, sent) for name, sent in paths)


_OPS = st.fixed_dictionaries(
    {"ops": st.lists(st.sampled_from(("write", "append", "delete", "rename")).flatmap(_op),
                     min_size=1, max_size=4)},
    optional={"reason": POOLS["reason"]},
)  # fmt: skip

_BODIES: dict[str, Json] = {"ingestFile": _DOCUMENT, "ingestBatch": _BATCH, "batchOps": _OPS}
"""Strategies for routes whose bodies contain documents or operations."""


def _encoded(path: str) -> st.SearchStrategy[str]:
    return st.sampled_from((quote(path, safe=""), quote(path), quote_plus(path)))


_FLAGS = st.sampled_from(("true", "false"))
_PARAMETERS: dict[str, st.SearchStrategy[str]] = {
    "path": PATHS.flatmap(_encoded),
    "dir": st.one_of(
        st.just(""), st.sampled_from(("dir", "dir/sub", "_d", "é", "f/" * 19 + "f"))
    ).flatmap(_encoded),
    "recursive": _FLAGS,
    "include_generated": _FLAGS,
    "glob": st.sampled_from(
        (
            "*",
            "*.md",
            "?.md",
            "a*",
            "[a].md",
            "*.*",
            "",
            "_*",
            "**",
            "*a*",
            "?",
            "*.m?",
            "a.md",
            "*d*.*m*",
            "l?f.md",
        )
    ).flatmap(_encoded),
}


@st.composite
def _valid(draw: st.DrawFn, target_route: Route) -> Call:
    required = [p.name for p in target_route.parameters if p.required]
    optional = [p.name for p in target_route.parameters if not p.required]
    names = required + [name for name in optional if draw(st.booleans())]
    query = "&".join(f"{name}={draw(_PARAMETERS[name])}" for name in names)
    sent: Any = None
    if target_route.request is not None:
        special = _BODIES.get(target_route.name)
        sent = draw(special if special is not None else body(target_route.request))
    elif target_route.sends == "bytes":
        sent = draw(CONTENTS)
    target = target_route.path + (f"?{query}" if query else "")
    headers = dict(target_route.headers)
    return Call(target_route.name, target_route.method.upper(), target, sent, headers)


_SCALARS: Json = st.sampled_from(
    (
        None,
        True,
        0,
        -1,
        1.5,
        10**6,
        "",
        "x",
        [],
        {},
        [None],
        "1",
        "null",
        5.0,
        2**70,
        " ",
        [1],
        [{}],
    )
)


_NON_OBJECTS = (
    b'{"a": NaN}', b'{"query": "\\ud800"}', b'{"a": ' + b"[" * 1_100 + b"]" * 1_100 + b"}",
    b"", b"{", b"null", b"[]", b'"x"', b"{} x", b'{"a":1,}', b"\xff",
)  # fmt: skip


@st.composite
def _invalid(draw: st.DrawFn, call: Call) -> Call:
    """Generate the same call with one part made invalid or unusual."""
    defects = ["method", "target"]
    if isinstance(call.body, dict) and call.body:
        defects += ["body", "body", "body", "no-object"]
    if "?" in call.target:
        defects += ["query", "query", "query"]
    if call.headers:
        defects.append("headers")
    defect = draw(st.sampled_from(defects))
    path, _, query = call.target.partition("?")
    match defect:
        case "method":
            others = [method for method in ("PATCH", "PUT", "TRACE") if method != call.method]
            return replace(call, method=draw(st.sampled_from(others)), defect=defect)
        case "target":
            ending = draw(st.sampled_from(("/", "/x", "x", "//")))
            return replace(call, target=path + ending, defect=defect)
        case "body":
            return replace(call, body=draw(_invalid_body(call.body)), defect=defect)
        case "no-object":
            return replace(call, body=draw(st.sampled_from(_NON_OBJECTS)), defect=defect)
        case "headers":
            return replace(call, headers={}, defect=defect)
    return replace(call, target=f"{path}?{draw(_invalid_query(query))}", defect=defect)


@st.composite
def _invalid_query(draw: st.DrawFn, query: str) -> str:
    name = query.partition("=")[0]
    return draw(
        st.one_of(
            st.just(f"{query}&{query.partition('&')[0]}"),
            st.sampled_from(("%", "%4", "%zz", "%ff")).map(lambda escape: query + escape),
            BAD_PATHS.map(lambda bad: f"{name}={quote(bad, safe='')}"),
            st.sampled_from(("1", "", "TRUE")).map(lambda flag: f"recursive={flag}"),
            st.sampled_from(("", "=x", "path", "x=1")),
        )
    )


@st.composite
def _invalid_body(draw: st.DrawFn, sent: dict[str, Any]) -> dict[str, Any]:
    """Drop, add or change one key, in the body or in an object inside it."""
    changed = dict(sent)
    key = draw(st.sampled_from(sorted(changed)))
    is_nested = isinstance(changed[key], dict) and changed[key] != {}
    changes = ("drop", "retype", "retype", "add", *(["nest"] if is_nested else []))
    match draw(st.sampled_from(changes)):
        case "nest":
            changed[key] = draw(_invalid_body(changed[key]))
        case "drop":
            del changed[key]
        case "add":
            changed[draw(st.sampled_from(("extra", "TopK", "top_k", "")))] = draw(_SCALARS)
        case _:
            changed[key] = draw(_SCALARS)
    return changed


_WEIGHTS = {
    "search": 6, "ask": 3, "ingestFile": 3, "ingestBatch": 2, "listDocuments": 2, "batchOps": 3,
    "readDocument": 1, "hasDocument": 1, "statDocument": 1, "writeDocument": 2,
    "appendDocument": 2, "deleteDocument": 2, "renameDocument": 2, "brain": 2, "deleteBrain": 1,
}  # fmt: skip
"""How often each route is called; only routes of a single brain whose response ends."""


_CHANGES = (
    "ingestFile", "ingestBatch", "batchOps", "writeDocument", "appendDocument", "deleteDocument",
    "renameDocument",
)  # fmt: skip
_RESTART_ONE_IN = 40
"""How many programs there are for each one with a restart, which takes about a second."""
_BRAIN_PATH = f"/v1/brains/{BRAIN}"
_INFO = Call("brain", "GET", _BRAIN_PATH)
_DELETE = Call("deleteBrain", "DELETE", _BRAIN_PATH, headers={"X-Confirm-Delete": "yes"})


def _create(description: str | None) -> Call:
    body = {"brainId": BRAIN} | ({} if description is None else {"description": description})
    return Call("createBrain", "POST", "/v1/brains", body)


def programs(profiles: set[Profile], *, restarts: bool = False) -> st.SearchStrategy[Program]:
    """Return a strategy for programs that use only `profiles`.

    With `restarts`, a few of them restart or kill the daemon.
    """
    claimed = [candidate for candidate in ROUTES if candidate.profile in profiles]
    names = [r.name for r in claimed for _ in range(_WEIGHTS.get(r.name, 0))]
    valid = st.sampled_from(names).flatmap(lambda name: _valid(route(name)))
    search = st.just("search").flatmap(lambda name: _valid(route(name)))
    changes = [name for name in names if name in _CHANGES]
    change = st.sampled_from(changes).flatmap(lambda name: _valid(route(name)))
    alone = st.one_of(valid, valid, valid, valid.flatmap(_invalid)).map(lambda call: (call,))
    # What a change did to the index shows in searches after it.
    checked = st.builds(lambda *calls: calls, change, search, search)
    # Brains of other ids would outlive the program.
    created = st.sampled_from((None, "", "A diary.", "d" * 1_500)).map(_create)
    chained = chains().map(_chained) if "batchOps" in names else checked
    recreated = st.builds(
        lambda create, call: (_DELETE, _INFO, create, _INFO, call), created, search
    )
    steps = st.lists(
        st.one_of(
            alone,
            alone,
            alone,
            alone,
            checked,
            checked,
            chained,
            chained,
            recreated,
            created.map(lambda call: (call,)),
        ),
        min_size=1,
        max_size=8,
    ).map(lambda groups: tuple(call for group in groups for call in group))
    ingest = st.builds(
        lambda sent: Call("ingestBatch", "POST", route("ingestBatch").path, sent), _BATCH
    )
    listens = st.booleans() if Profile.EVENTS in profiles else st.just(value=False)
    # Most programs begin by storing documents; shrinking prefers the first choice, an empty start.
    first = ingest.map(lambda call: (call,))
    start = st.one_of(st.just(()), first, first, first, first)
    plain = st.builds(
        lambda start, calls, listens: Program((*start, *calls), listens), start, steps, listens
    )
    if not restarts:
        return plain
    # A stream ends with its process, and what it had not sent by then is not specified.
    restarted = st.builds(
        lambda start, before, how, after: Program((*start, *before, _restart(how), *after)),
        first,
        steps,
        st.sampled_from(RESTARTS),
        steps,
    )
    return st.integers(0, _RESTART_ONE_IN).flatmap(
        lambda number: restarted if number == _RESTART_ONE_IN else plain
    )


def _restart(how: str) -> Call:
    return Call(how, "", "")
