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
from memconform.fuzzing.programs import BRAIN, Call, Program, document, route

Json = st.SearchStrategy[Any]

_WORDS = (
    "heron", "herons", "Heron", "kettle", "singing", "sings", "running", "runs", "42", "2024", "x1",
    "Straße", "STRASSE", "ﬁsh", "fish", "naïve", "nai\u0308ve", "東京", "İstanbul", "ὈΔΥΣΣΕΎΣ",
    "don't", "re-use", "a", "AND", "NOT", "NEAR", "the", "who", "waits", "a.b", "snake_case", "½",
)  # fmt: skip
_MARKS = (" ", " ", " ", ". ", "? ", "! ", "\n", "\n\n", ", ", "\r\n", '" ', "* ", " (", ") ", "  ")

# `$` begins variables and matchers of cases. No rule covers unassigned and private code points
# (core.rank.terms).
_CHARACTERS = st.characters(exclude_categories=("Cs", "Cn", "Co"), exclude_characters="$")
_ODD = st.text(_CHARACTERS, max_size=8)


def _joined(parts: list[tuple[str, str]]) -> str:
    return "".join(word + mark for word, mark in parts)


_SENTENCES = st.lists(
    st.tuples(st.sampled_from(_WORDS), st.sampled_from(_MARKS)), min_size=1, max_size=9
).map(_joined)
TEXTS = st.one_of(_SENTENCES, _SENTENCES, _SENTENCES, _ODD)
_FRONT_MATTER = st.sampled_from(
    (
        "---\ntitle: Birds\n---\n",
        "---\ntags: [red, 'blue']\nsession_id: s1\n---\n",
        "---\nno\n---\n",
    )
)
_CONTENTS = st.one_of(
    TEXTS.map(str.encode),
    TEXTS.map(str.encode),
    TEXTS.map(str.encode),
    st.tuples(_FRONT_MATTER, TEXTS).map(lambda pair: "".join(pair).encode()),
    st.binary(max_size=6),
)

_PATHS = st.sampled_from(
    (
        "a.md", "b.md", "A.md", "c.txt", "dir/a.md", "dir/b.md", "dir/sub/c.md", "dir", "_h.md",
        "dir/_h.md", "_d/a.md", "ü.md", "u\u0308.md", "a b.md", "a+b.md", "a%41.md", "a.md.json",
        "東.md", "🐦.md", "memory/global/a.md", "memory/project/p1/a.md", "raw/a.md", ".dot", "é/a",
    )
)  # fmt: skip
_BAD_PATHS = st.sampled_from(
    ("", "/a.md", "a.md/", "a//b", ".", "..", "../a", "dir/../a", "./a", "a\\b", "a\0b", "a" * 251)
)
_TAGS = st.lists(st.sampled_from(("red", "blue", "Red", "ü", "")), max_size=3)
_SESSIONS = st.sampled_from(("s1", "s2", "S1", ""))
_DATES = st.sampled_from(
    ("2024-02-29", "2025-01-31T10:00:00Z", "2025-01-31t10:00:00.5+02:00", "0000-01-01")
)
_METADATA = st.dictionaries(
    st.sampled_from(("session_id", "date", "page", "deep", "ü")),
    st.one_of(
        _SESSIONS, _DATES, st.integers(-(2**53), 2**53), st.booleans(), st.none(),
        st.sampled_from((0.5, 1e300, -2.5, [], {}, [1, {"a": None}])),
    ),
    max_size=3,
)  # fmt: skip
_TITLES = st.one_of(st.sampled_from(("Birds", "Kitchen", "")), _ODD)

_POOLS: dict[str, Json] = {
    "query": TEXTS,
    "question": TEXTS,
    "path": _PATHS,
    "to": _PATHS,
    "from": _PATHS,
    "paths": st.lists(_PATHS, max_size=3),
    "path_prefix": st.sampled_from(("", "d", "dir/", "DIR/", "a", "ü", "_", "memory/", "a%")),
    "tags": _TAGS,
    "session_ids": st.lists(_SESSIONS, max_size=2),
    "project": st.sampled_from(("p1", "p", "")),
    "question_date": _DATES,
    "content_type": st.sampled_from(("text/markdown", "", "a/b; c=d")),
    "title": _TITLES,
    "metadata": _METADATA,
    "model": st.just("m"),
    "reason": _ODD,
    "message": _ODD,
    "author": _ODD,
    "email": _ODD,
    "now": _DATES,
    "at": _DATES,
    # Any relevance and weight are at most 1 together.
    "relevance": st.sampled_from((0, 0.25, 0.5)),
    "weight": st.sampled_from((0, 0.05, 0.5)),
    "top_k": st.one_of(st.integers(1, 5), st.integers(1, 12), st.sampled_from((1000, 5.0))),
    "candidate_k": st.one_of(st.integers(0, 12), st.just(10_000)),
    "rerank_top_n": st.integers(0, 12),
    "pool_factor": st.integers(1, 4),
    "pool_floor": st.integers(1, 12),
    "brain_id": st.just(BRAIN),
}
"""Values of keys whose schema is too general, by field name."""

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
        group = required if info.is_required() else optional
        group[key] = _value(name, prop)
    return st.fixed_dictionaries(required, optional=optional)


def _value(name: str, schema: dict[str, JsonValue]) -> Json:
    if name in _NESTED:
        return body(_NESTED[name])
    if name == "content_base64":
        return _CONTENTS.map(lambda content: document("", content)["contentBase64"])
    pool = _POOLS.get(name)
    return pool if pool is not None else from_schema(schema)


_DOCUMENT = st.builds(
    lambda path, content, extra: document(path, content, **extra),
    _PATHS,
    _CONTENTS,
    st.fixed_dictionaries({}, optional={"title": _TITLES, "tags": _TAGS, "metadata": _METADATA}),
)
_BATCH = st.fixed_dictionaries({"documents": st.lists(_DOCUMENT, min_size=1, max_size=7)})


def _op(kind: str) -> Json:
    fields = {"type": st.just(kind), "path": _PATHS}
    if kind in ("write", "append"):
        fields["content_base64"] = _value("content_base64", {})
    if kind == "rename":
        fields["to"] = _PATHS
    return st.fixed_dictionaries(fields)


_OPS = st.fixed_dictionaries(
    {"ops": st.lists(st.sampled_from(("write", "append", "delete", "rename")).flatmap(_op),
                     min_size=1, max_size=4)},
    optional={"reason": _ODD},
)  # fmt: skip

_BODIES: dict[str, Json] = {"ingestFile": _DOCUMENT, "ingestBatch": _BATCH, "batchOps": _OPS}
"""Strategies for routes whose bodies contain documents or operations."""


def _encoded(path: str) -> st.SearchStrategy[str]:
    return st.sampled_from((quote(path, safe=""), quote(path), quote_plus(path)))


_FLAGS = st.sampled_from(("true", "false"))
_PARAMETERS: dict[str, st.SearchStrategy[str]] = {
    "path": _PATHS.flatmap(_encoded),
    "dir": st.one_of(st.just(""), st.sampled_from(("dir", "dir/sub", "_d", "é"))).flatmap(_encoded),
    "recursive": _FLAGS,
    "include_generated": _FLAGS,
    "glob": st.sampled_from(("*", "*.md", "?.md", "a*", "[a].md", "*.*", "", "_*", "**")).flatmap(
        _encoded
    ),
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
        sent = draw(_CONTENTS)
    target = target_route.path + (f"?{query}" if query else "")
    headers = dict(target_route.headers)
    return Call(target_route.name, target_route.method.upper(), target, sent, headers)


_SCALARS: Json = st.sampled_from(
    (None, True, 0, -1, 1.5, 10**6, "", "x", [], {}, [None], "1", "null")
)


_NON_OBJECTS = (b"", b"{", b"null", b"[]", b'"x"', b"{} x", b'{"a":1,}', b"\xff")


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
            _BAD_PATHS.map(lambda bad: f"{name}={quote(bad, safe='')}"),
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
    "appendDocument": 2, "deleteDocument": 2, "renameDocument": 2, "brain": 2,
}  # fmt: skip
"""How often each route is called; only routes of a single brain whose response ends."""


def programs(profiles: set[Profile]) -> st.SearchStrategy[Program]:
    """Return a strategy for programs that use only `profiles`."""
    claimed = [candidate for candidate in ROUTES if candidate.profile in profiles]
    names = [r.name for r in claimed for _ in range(_WEIGHTS.get(r.name, 0))]
    valid = st.sampled_from(names).flatmap(lambda name: _valid(route(name)))
    call = st.one_of(valid, valid, valid, valid.flatmap(_invalid))
    ingest = st.builds(
        lambda sent: Call("ingestBatch", "POST", route("ingestBatch").path, sent), _BATCH
    )
    listens = st.booleans() if Profile.EVENTS in profiles else st.just(value=False)
    # Most programs begin by storing documents; shrinking prefers the first choice, an empty start.
    first = ingest.map(lambda call: (call,))
    return st.builds(
        lambda start, calls, listens: Program((*start, *calls), listens),
        st.one_of(st.just(()), first, first, first, first),
        st.lists(call, min_size=1, max_size=10),
        listens,
    )
