"""Requests, valid and nearly so, as Hypothesis strategies made from the contract's models.

A model says which keys there are, which may be left out, and what numbers and choices they hold.
Texts come from small pools: what is stored must be found again, and two documents be about one
thing, or daemons would agree on having found nothing.
"""

from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema
from pydantic import BaseModel

from memconform.contract.core import Filters, Tuning
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

# `$` begins what a case has a meaning of its own for; code points that no table knows yet are not
# settled (core.rank.terms), nor are private ones.
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
        _SESSIONS, st.integers(-(2**53), 2**53), st.booleans(), st.none(),
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
    "recency": st.sampled_from((1, "a", {}, 0.5)),
    "temporal": st.sampled_from((1, "a", {}, True)),
    "top_k": st.one_of(st.integers(1, 5), st.integers(1, 12), st.sampled_from((1000, 5.0))),
    "candidate_k": st.one_of(st.integers(0, 12), st.just(10_000)),
    "rerank_top_n": st.integers(0, 12),
    "pool_factor": st.integers(1, 4),
    "pool_floor": st.integers(1, 12),
    "brain_id": st.just(BRAIN),
}
"""Values of keys about which a schema says too little; by the names of fields."""

_NESTED: dict[str, type[BaseModel]] = {"filters": Filters, "tuning": Tuning}


@cache
def body(model: type[BaseModel]) -> Json:
    """A valid body of a model. Kept: making it anew for each call took most of a program's time."""
    schema = model.model_json_schema()
    required: dict[str, Json] = {}
    optional: dict[str, Json] = {}
    for name, info in model.model_fields.items():
        key = info.alias or name
        prop = {"$defs": schema.get("$defs", {}), **schema["properties"][key]}
        chosen = required if info.is_required() else optional
        chosen[key] = _value(name, prop)
    return st.fixed_dictionaries(required, optional=optional)


def _value(name: str, schema: dict[str, JsonValue]) -> Json:
    if name in _NESTED:
        return body(_NESTED[name])
    if name == "content_base64":
        return _CONTENTS.map(lambda content: document("", content)["contentBase64"])
    pool = _POOLS.get(name)
    return pool if pool is not None else from_schema(schema)


_DOCUMENT = st.builds(
    lambda path, content, more: document(path, content, **more),
    _PATHS,
    _CONTENTS,
    st.fixed_dictionaries({}, optional={"title": _TITLES, "tags": _TAGS, "metadata": _METADATA}),
)
_BATCH = st.fixed_dictionaries({"documents": st.lists(_DOCUMENT, min_size=1, max_size=7)})


def _op(kind: str) -> Json:
    wants = {"type": st.just(kind), "path": _PATHS}
    if kind in ("write", "append"):
        wants["content_base64"] = _value("content_base64", {})
    if kind == "rename":
        wants["to"] = _PATHS
    return st.fixed_dictionaries(wants)


_OPS = st.fixed_dictionaries(
    {"ops": st.lists(st.sampled_from(("write", "append", "delete", "rename")).flatmap(_op),
                     min_size=1, max_size=4)},
    optional={"reason": _ODD},
)  # fmt: skip

_BODIES: dict[str, Json] = {"ingestFile": _DOCUMENT, "ingestBatch": _BATCH, "batchOps": _OPS}
"""Of routes whose bodies hold others."""


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
def _valid(draw: st.DrawFn, wanted: Route) -> Call:
    required = [p.name for p in wanted.parameters if p.required]
    optional = [p.name for p in wanted.parameters if not p.required]
    names = required + [name for name in optional if draw(st.booleans())]
    query = "&".join(f"{name}={draw(_PARAMETERS[name])}" for name in names)
    sent: Any = None
    if wanted.request is not None:
        known = _BODIES.get(wanted.name)
        sent = draw(known if known is not None else body(wanted.request))
    elif wanted.sends == "bytes":
        sent = draw(_CONTENTS)
    target = wanted.path + (f"?{query}" if query else "")
    headers = dict(wanted.headers)
    return Call(wanted.name, wanted.method.upper(), target, sent, headers)


_SCALARS: Json = st.sampled_from(
    (None, True, 0, -1, 1.5, 10**6, "", "x", [], {}, [None], "1", "null")
)


_NO_OBJECTS = (b"", b"{", b"null", b"[]", b'"x"', b"{} x", b'{"a":1,}', b"\xff")


@st.composite
def _spoilt(draw: st.DrawFn, call: Call) -> Call:
    """The same call with one thing wrong, or odd, about it."""
    ways = ["method", "target"]
    if isinstance(call.body, dict) and call.body:
        ways += ["body", "body", "body", "no-object"]
    if "?" in call.target:
        ways += ["query", "query", "query"]
    if call.headers:
        ways.append("headers")
    way = draw(st.sampled_from(ways))
    path, _, query = call.target.partition("?")
    match way:
        case "method":
            others = [method for method in ("PATCH", "PUT", "TRACE") if method != call.method]
            return replace(call, method=draw(st.sampled_from(others)), spoilt=way)
        case "target":
            ending = draw(st.sampled_from(("/", "/x", "x", "//")))
            return replace(call, target=path + ending, spoilt=way)
        case "body":
            return replace(call, body=draw(_spoilt_body(call.body)), spoilt=way)
        case "no-object":
            return replace(call, body=draw(st.sampled_from(_NO_OBJECTS)), spoilt=way)
        case "headers":
            return replace(call, headers={}, spoilt=way)
    return replace(call, target=f"{path}?{draw(_spoilt_query(query))}", spoilt=way)


@st.composite
def _spoilt_query(draw: st.DrawFn, query: str) -> str:
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
def _spoilt_body(draw: st.DrawFn, sent: dict[str, Any]) -> dict[str, Any]:
    """One key dropped, added or of any other value, in the body or in an object inside it."""
    changed = dict(sent)
    key = draw(st.sampled_from(sorted(changed)))
    inside = isinstance(changed[key], dict) and changed[key] != {}
    way = draw(st.sampled_from(("drop", "retype", "retype", "add", *(["nest"] if inside else []))))
    match way:
        case "nest":
            changed[key] = draw(_spoilt_body(changed[key]))
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
"""How often a route is asked, of those that have to do with one brain and end."""


def programs(profiles: set[Profile]) -> st.SearchStrategy[Program]:
    """Programs for daemons that all claim `profiles`."""
    claimed = [each for each in ROUTES if each.profile in profiles]
    names = [each.name for each in claimed for _ in range(_WEIGHTS.get(each.name, 0))]
    valid = st.sampled_from(names).flatmap(lambda name: _valid(route(name)))
    call = st.one_of(valid, valid, valid, valid.flatmap(_spoilt))
    filled = st.builds(
        lambda sent: Call("ingestBatch", "POST", route("ingestBatch").path, sent), _BATCH
    )
    listens = st.booleans() if Profile.EVENTS in profiles else st.just(value=False)
    # Most begin with something to find; shrinking takes the first choice, which is nothing.
    first = filled.map(lambda call: (call,))
    return st.builds(
        lambda begun, calls, hears: Program((*begun, *calls), hears),
        st.one_of(st.just(()), first, first, first, first),
        st.lists(call, min_size=1, max_size=10),
        listens,
    )
