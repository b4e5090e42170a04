"""The words that say too little to look for."""

from collections.abc import Sequence
from importlib import resources

STOP_WORDS = frozenset(
    resources.files("memoryd.text").joinpath("stopwords.txt").read_text().split()
)


def keywords(terms: Sequence[str]) -> Sequence[str]:
    """`terms` without stop words, or all of them if nothing is left."""
    return [term for term in terms if term not in STOP_WORDS] or terms
