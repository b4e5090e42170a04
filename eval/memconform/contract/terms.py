"""Splits text into terms as defined by rule core.rank.terms. Pure."""

import re
import unicodedata

# `[^\W_]` equals `[\p{L}\p{N}]`, verified over all code points of CPython 3.11's Unicode 14 tables.
_RUN = re.compile(r"[^\W_]{2,}")


def terms(text: str) -> list[str]:
    """Return the lower-cased runs of two or more letters or digits in the NFKC form.

    Duplicates are kept.
    """
    return _RUN.findall(unicodedata.normalize("NFKC", text).lower())
