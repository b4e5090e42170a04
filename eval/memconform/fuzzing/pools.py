"""Pools of values: texts, paths, dates and more, small enough that programs meet them again."""

from typing import Any

from hypothesis import strategies as st

from memconform.fuzzing.programs import BRAIN

Json = st.SearchStrategy[Any]

_WORDS = (
    "🐦bird", "\U0001d4bderon", "𐐀𐐁",
    "heron", "herons", "Heron", "kettle", "singing", "sings", "running", "runs", "42", "2024", "x1",
    "Straße", "STRASSE", "ﬁsh", "fish", "naïve", "nai\u0308ve", "東京", "İstanbul", "ὈΔΥΣΣΕΎΣ",
    "kettle\0heron", "二〇二四", "௰௱", "❶❷",
    "don't", "re-use", "a", "AND", "NOT", "NEAR", "the", "who", "waits", "a.b", "snake_case", "½",
)  # fmt: skip
_MARKS = (
    " ",
    " ",
    " ",
    ". ",
    "? ",
    "! ",
    "\n",
    "\n\n",
    ", ",
    "\r\n",
    '" ',
    "* ",
    " (",
    ") ",
    "  ",
    "\t",
    "\u3000",
)

# `$` begins variables and matchers of cases. No rule covers unassigned and private code points
# (core.rank.terms).
_CHARACTERS = st.characters(exclude_categories=("Cs", "Cn", "Co"), exclude_characters="$")
ODD = st.text(_CHARACTERS, max_size=8)


def _joined(parts: list[tuple[str, str]]) -> str:
    return "".join(word + mark for word, mark in parts)


_SENTENCES = st.lists(
    st.tuples(st.sampled_from(_WORDS), st.sampled_from(_MARKS)), min_size=1, max_size=9
).map(_joined)
# Answers of many deltas, and more terms than a query may use.
_LONG = st.tuples(st.sampled_from(_WORDS), st.integers(40, 300)).map(
    lambda pair: f"{pair[0]} sings " * pair[1]
)
# What is looked for stands behind what a hash, a column or a loop may have cut off: terms of which
# each is another, then a text beyond 64 KiB, which has few terms because programs embed it often.
_LATE = st.tuples(st.integers(257, 700), st.sampled_from(_WORDS)).map(
    lambda pair: "".join(f"w{number} " for number in range(pair[0])) + pair[1]
)
_LATE_BYTES = st.sampled_from(_WORDS).map(lambda word: "--------\n" * 7_400 + word)
TEXTS = st.one_of(*[_SENTENCES] * 24, *[ODD] * 6, *[_LONG] * 3, _LATE, _LATE, _LATE_BYTES)

_WIDTHS = (64, 72, 128, 255, 256, 512, 1_000, 1_024, 4_096, 65_535)
WIDE = st.tuples(st.sampled_from(_WIDTHS), st.sampled_from(("a", "b", "é"))).map(
    lambda pair: "w" * pair[0] + pair[1]
)
"""Texts just beyond the widths of columns, which differ only in their last character."""
_FRONT_MATTER = st.sampled_from(
    (
        "---\ntitle: 'Herons'\ndate: 2025-01-30\n---\n",
        '---\r\ntags: [a, b, c]\r\nsession_id: "s2"\r\n---\r\n',
        "---\n---\n",
        "---\ntitle: Birds\n",
        " ---\ntitle: Birds\n---\n",
        "---\nnot a key\n---\n",
        "---\ntitle: Birds\n---\n",
        "---\ntags: [red, 'blue']\nsession_id: s1\n---\n",
        "---\nno\n---\n",
        "---\n" + "".join(f"k{number}: v\n" for number in range(100)) + "title: Birds\n---\n",
        "---\ntitle: ''\ntags: []\nsession_id:\n---\n",
    )
)
CONTENTS = st.one_of(
    TEXTS.map(str.encode),
    TEXTS.map(str.encode),
    TEXTS.map(str.encode),
    st.tuples(_FRONT_MATTER, TEXTS).map(lambda pair: "".join(pair).encode()),
    st.binary(max_size=6),
)

PATHS = st.sampled_from(
    (
        "a.md", "b.md", "A.md", "c.txt", "dir/a.md", "dir/b.md", "dir/sub/c.md", "dir", "_h.md",
        "dir/_h.md", "_d/a.md", "ü.md", "u\u0308.md", "a b.md", "a+b.md", "a%41.md", "a.md.json",
        "東.md", "🐦.md", "memory/global/a.md", "memory/project/p1/a.md", "raw/a.md", ".dot", "é/a",
        "a.md.json/x", "dir/a.md/x", "a/b/c/d/e/f/g/h.md", "a/b/c/_d.md", "\uffee.md",
        "a.md.json/y/z", "l\nf.md", "f/" * 20 + "x.md", "f/" * 20 + "f",
        ("p" * 199 + "/") * 8 + "a.md",
        "b" * 250, "c" * 251,
    )
)  # fmt: skip
BAD_PATHS = st.sampled_from(
    ("", "/a.md", "a.md/", "a//b", ".", "..", "../a", "dir/../a", "./a", "a\\b", "a\0b", "a" * 251)
)
TAGS = st.one_of(
    st.lists(st.sampled_from(("red", "blue", "Red", "ü", "")), max_size=3),
    st.integers(20, 60).map(lambda count: [f"t{number}" for number in range(count)] + ["red"]),
    st.lists(WIDE, min_size=1, max_size=2),
)
_SESSIONS = st.sampled_from(("s1", "s2", "S1", "", "s\0a", "s\0b"))


def _many(last: Json, prefix: str) -> Json:
    """Lists of more values than a statement may have parameters, of which the last matters."""
    return st.tuples(st.sampled_from((100, 999, 1_200)), last).map(
        lambda pair: [f"{prefix}{number}" for number in range(pair[0])] + [pair[1]]
    )


_DATES = st.sampled_from(
    (
        "2024-02-29", "2025-01-31T10:00:00Z", "2025-01-31t10:00:00.5+02:00", "0000-01-01",
        "2025-01-20", "2025-02-28T23:59:59-23:59", "1969-12-31T23:59:59Z", "9999-12-31",
        "4000-02-29", "2200-02-29",
    )
)  # fmt: skip
METADATA = st.dictionaries(
    st.sampled_from(("session_id", "date", "page", "deep", "ü", "__proto__", "")),
    st.one_of(
        _SESSIONS, _DATES, WIDE, st.integers(-(2**53), 2**53), st.booleans(), st.none(),
        st.sampled_from((0, False, "", 0.5, 1e300, -2.5, [], {}, [1, {"a": None}])),
        st.sampled_from((0.1, 1e-7, 5e-324, 1e21, -0.0, 2**53 - 1, -(2**53))),
        # A parser that makes these a float loses digits.
        st.sampled_from((2**53 + 1, -(2**63) - 1, 2**64 + 1, 10**21 + 1)),
        st.sampled_from(("31 January 2024", "2023-02-29", "\ud7ff\ue000", "a\0b")),
    ),
    max_size=3,
)  # fmt: skip
TITLES = st.one_of(st.sampled_from(("Birds", "Kitchen", "")), ODD, WIDE)
_ZERO = st.sampled_from((0, -0.0))

POOLS: dict[str, Json] = {
    "query": TEXTS,
    "question": TEXTS,
    "path": PATHS,
    "to": PATHS,
    "from": PATHS,
    "paths": st.one_of(st.lists(PATHS, max_size=3), _many(PATHS, "x")),
    "path_prefix": st.sampled_from(("", "d", "dir/", "DIR/", "a", "ü", "_", "memory/", "a%")),
    "tags": TAGS,
    "session_ids": st.one_of(st.lists(_SESSIONS, max_size=2), _many(_SESSIONS, "x")),
    "project": st.sampled_from(("p1", "p", "")),
    "question_date": _DATES,
    "content_type": st.sampled_from(("text/markdown", "", "a/b; c=d")),
    "title": TITLES,
    "metadata": METADATA,
    "model": st.just("m"),
    "reason": st.one_of(ODD, st.just("")),
    "message": ODD,
    "author": ODD,
    "email": ODD,
    "now": _DATES,
    "at": _DATES,
    # Any relevance and weight are at most 1 together.
    "relevance": st.sampled_from((0, 0.25, 0.5)),
    "weight": st.sampled_from((0, 0.05, 0.5)),
    "top_k": st.one_of(st.integers(1, 5), st.integers(1, 12), st.sampled_from((1000, 5.0))),
    "candidate_k": st.one_of(st.integers(0, 12), st.just(10_000), _ZERO),
    # Without a mode, bm25 is searched: the oracle's embedder is the feature hash.
    "mode": st.sampled_from(
        ("bm25", "semantic", "hybrid", "hybrid", "hybrid", "hybrid-rerank", "auto", None)
    ),
    "rerank_top_n": st.one_of(st.integers(0, 12), _ZERO),
    "alpha": st.one_of(st.floats(0, 1), _ZERO),
    "pool_factor": st.one_of(st.integers(1, 4), st.sampled_from((50, 1_000))),
    "pool_floor": st.one_of(st.integers(1, 12), st.just(10_000)),
    "brain_id": st.just(BRAIN),
}
"""Values of keys whose schema is too general, by field name."""
