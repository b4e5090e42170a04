"""Terms: the tokenization that queries, the feature hash and the fake reader share."""

import re
import unicodedata

# `[^\W_]` is `[\p{L}\p{N}]`: compared over all code points of CPython 3.11's Unicode 14
# tables, the two classes are equal.
_RUN = re.compile(r"[^\W_]{2,}")

QUERY_TERM_LIMIT = 256


def nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def terms(text: str) -> list[str]:
    """Lower-cased runs of at least two letters or digits, in order, with duplicates."""
    return _RUN.findall(nfkc(text).lower())


def query_terms(query: str) -> list[str]:
    """The terms that a search uses: the first 256 of the query."""
    return terms(query)[:QUERY_TERM_LIMIT]
