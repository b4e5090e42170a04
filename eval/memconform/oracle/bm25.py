"""Exact BM25 by SQLite's FTS5 (core.rank.bm25)."""

import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing

from memconform.contract.terms import terms

QUERY_TERMS = 256
"""A query uses only its first terms (core.rank.terms)."""


def query_terms(query: str) -> list[str]:
    """The terms that a search uses."""
    return terms(query)[:QUERY_TERMS]


def bm25(query: str, texts: Sequence[str]) -> dict[int, float]:
    """Return the scores, not rounded, of those texts that have one of the query's terms.

    The table is made anew each time, so nothing can remain of texts that were replaced.
    """
    words = query_terms(query)
    if not words or not texts:
        return {}
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize = 'porter unicode61')")
        rows = [(n, unicodedata.normalize("NFKC", text)) for n, text in enumerate(texts, 1)]
        db.executemany("INSERT INTO t(rowid, x) VALUES (?, ?)", rows)
        expression = " OR ".join(f'"{word}"' for word in words)
        found = db.execute("SELECT rowid - 1, -bm25(t) FROM t WHERE t MATCH ?", (expression,))
        return dict(found.fetchall())
