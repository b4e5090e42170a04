"""Terms of a text, as rule core.rank.terms has them. Pure."""

import re
import unicodedata

# `[^\W_]` is `[\p{L}\p{N}]`: compared over all code points of CPython 3.11's Unicode 14 tables,
# the two classes are equal.
_RUN = re.compile(r"[^\W_]{2,}")


def terms(text: str) -> list[str]:
    """Lower-cased runs of at least two letters or digits of the NFKC form, duplicates kept."""
    return _RUN.findall(unicodedata.normalize("NFKC", text).lower())
