"""The words that say too little to look for."""

from importlib import resources

STOP_WORDS = frozenset(
    resources.files("memoryd.text").joinpath("stopwords.txt").read_text().split()
)
