"""The index in memory: bm25 as FTS5 has it, phrases, filters, and what changes leave behind."""

import random
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from memoryd.embed.embed import Vector
from memoryd.index.filter import Filters
from memoryd.index.index import LEAST_WASTE, Counts, Index, IndexedDocument
from memoryd.rank.rank import round_score
from memoryd.text.terms import nfkc, query_terms
from memoryd.upstream import UpstreamError

_JOINER = "\u1cf2"
"""A letter for the contract, and none for FTS5's tokenizer."""


def _document(
    path: str,
    *chunks: str,
    tags: Sequence[str] = (),
    session: object = None,
    vectors: list[Vector] | None = None,
) -> IndexedDocument:
    metadata: dict[str, Any] = {} if session is None else {"session_id": session}
    return IndexedDocument(path, "s", None, list(tags), metadata, list(chunks), vectors)


def _paths(index: Index, query: str, filters: Filters | None = None) -> list[str]:
    hits = index.keyword(query, filters or Filters(), 1000)
    return [index.chunk(hit.slot).path for hit in hits]


def _scores(index: Index, query: str) -> list[tuple[str, float]]:
    hits = index.keyword(query, Filters(), 1000)
    return [(index.chunk(hit.slot).path, hit.score) for hit in hits]


def _scores_of_fts5(texts: Mapping[str, str], query: str) -> list[tuple[str, float]]:
    with closing(sqlite3.connect(":memory:")) as database:
        columns = "path UNINDEXED, text, tokenize = 'porter unicode61'"
        database.execute(f"CREATE VIRTUAL TABLE t USING fts5 ({columns})")
        rows = ((path, nfkc(text)) for path, text in texts.items())
        database.executemany("INSERT INTO t VALUES (?, ?)", rows)
        expression = " OR ".join(f'"{term}"' for term in query_terms(query))
        found = database.execute("SELECT path, -bm25(t) FROM t WHERE t MATCH ?", (expression,))
        scored = [(path, round_score(score)) for path, score in found]
    return sorted(scored, key=lambda item: (-item[1], item[0]))


def test_changes_leave_the_scores_of_fts5() -> None:
    chance = random.Random(7)
    words = ["walking", "walks", "zebra", "Überraschung", "的", "the", "runner", f"a{_JOINER}b"]
    query = f"walk the zebra walk überraschung a{_JOINER}b {_JOINER}{_JOINER}"
    index = Index(None, None)
    texts: dict[str, str] = {}
    for step in range(3 * LEAST_WASTE):
        path = str(chance.randrange(40))
        if path in texts and chance.random() < 0.3:
            del texts[path]
            index.apply(removed=[path])
        else:
            texts[path] = " ".join(chance.choices(words, k=chance.randint(1, 9)))
            index.apply([_document(path, texts[path])])
        if step % 100 == 0:
            assert _scores(index, query) == _scores_of_fts5(texts, query)
    assert _scores(index, query) == _scores_of_fts5(texts, query)


def test_a_term_of_several_tokens_is_a_phrase() -> None:
    index = Index(None, None)
    index.apply([_document("a", "lions zebras"), _document("b", "zebra lion", "lion")])
    assert _paths(index, f"lion{_JOINER}zebra") == ["a"]
    assert _paths(index, _JOINER * 2) == []
    assert _paths(index, f"lion{_JOINER}giraffe") == []


def _with_vectors(path: str, *vectors: Iterable[float]) -> IndexedDocument:
    rows = [np.array(list(vector), dtype=np.float32) for vector in vectors]
    return _document(path, *[f"zebra x{path}"] * len(rows), vectors=rows)


def _near(index: Index, *vector: float) -> list[str]:
    hits = index.semantic(np.array(vector, dtype=np.float32), Filters(), 3)
    return [index.chunk(hit.slot).path for hit in hits]


def test_free_slots_are_dropped_without_mixing_documents() -> None:
    index = Index(None, "e")
    index.apply([_with_vectors("a", [1, 0, 0], [0, 1, 0]), _with_vectors("b", [0, 0, 1])])
    index.apply([_document("empty")])
    for _ in range(LEAST_WASTE):
        index.apply([_with_vectors("c", [0, 0.6, 0.8]), _with_vectors("b", [0, 0, 1])])
    assert index.counts() == Counts(4, 4, 4)
    assert len(index._slots) < LEAST_WASTE + 2 * 4 + 2
    assert [_near(index, *v)[0] for v in ([1, 0, 0], [0, 1, 0], [0, 0, 1])] == ["a", "a", "b"]
    assert _near(index, 0, 0.6, 0.8)[0] == "c"
    assert _paths(index, "xc") == ["c"]
    assert _paths(index, "zebra", Filters(prefixes=("a",))) == ["a", "a"]


def test_an_emptied_index_takes_vectors_of_other_dimensions() -> None:
    index = Index(None, "e")
    index.apply([_with_vectors("a", [1, 0, 0])])
    with pytest.raises(UpstreamError):
        index.apply([_with_vectors("b", [1, 0])])
    with pytest.raises(UpstreamError):
        _near(index, 1, 0)
    assert _paths(index, "zebra") == ["a"]
    index.apply(removed=["a"])
    with pytest.raises(UpstreamError):
        index.apply([_with_vectors("b", [1, 0, 0]), _with_vectors("c", [1, 0])])
    assert index.counts() == Counts(0, 0, 0)
    index.apply([_with_vectors("b", [1, 0])])
    assert _near(index, 1, 0) == ["b"]


def test_ties_are_decided_by_the_bytes_of_the_path_and_the_ordinal() -> None:
    index = Index(None, None)
    # U+FFFF comes before U+1D538 in UTF-8, and after it in UTF-16.
    paths = ["b", "ä", "a", "Z", "a/b", "\uffff", "\U0001d538"]
    for path in paths:
        index.apply([_document(path, "the same words", "the same words")])
    ordered = sorted(paths, key=str.encode)
    assert _paths(index, "same") == [path for path in ordered for _ in range(2)]
    third = index.keyword("same", Filters(), 3)[2]
    assert (index.chunk(third.slot).path, index.chunk(third.slot).ordinal) == (ordered[1], 0)


def test_filters() -> None:
    index = Index(None, None)
    index.apply(
        [
            _document("raw/a", "zebra", tags=["x", "y\0"], session="s1"),
            _document("raw_/b", "zebra", "zebra", tags=["y"]),
            _document("memory/c", "zebra", session="s2"),
            _document("memory/d", "zebra", session=7),
        ]
    )
    everything = ["memory/c", "memory/d", "raw/a", "raw_/b", "raw_/b"]
    for filters, paths in (
        (Filters(), everything),
        (Filters(prefixes=("",)), everything),
        (Filters(prefixes=("raw",)), everything[2:]),
        (Filters(prefixes=("raw", "raw/")), ["raw/a"]),
        (Filters(paths=["raw/a", "nowhere", "raw/a"]), ["raw/a"]),
        (Filters(paths=[]), []),
        (Filters(tags=["y", "z"]), ["raw_/b", "raw_/b"]),
        (Filters(tags=["y\0", "z"], prefixes=("raw",)), ["raw/a"]),
        (Filters(session_ids=["s2", "s1"]), ["memory/c", "raw/a"]),
        (Filters(session_ids=[""], tags=["y"]), []),
        (Filters(session_ids=["s1"], tags=["x"], paths=["raw/a"]), ["raw/a"]),
    ):
        assert _paths(index, "zebra", filters) == paths
