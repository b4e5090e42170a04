"""Parsing of language models' replies (`vectors/prompt.json`)."""

import json
import math
import re

_CITATION = re.compile(r"\[([0-9]+(?: *, *[0-9]+)*)\]")


def cited(answer: str, notes: int) -> list[int]:
    """Indices, from 0, of the notes that an answer cites, in order of first citation."""
    digits = (
        n.strip().lstrip("0") for citation in _CITATION.findall(answer) for n in citation.split(",")
    )
    # Longer numbers cannot be valid, and Python refuses to parse over 4,300 digits.
    numbers = (int(n) for n in digits if 0 < len(n) < 10)
    return list(dict.fromkeys(n - 1 for n in numbers if n <= notes))


def read_scores(reply: str, documents: int) -> list[float] | None:
    """The scores in a reranker's reply; None unless there is one finite number per document."""
    start, end = reply.find("{"), reply.rfind("}")
    try:
        scores = json.loads(reply[start : end + 1])["scores"]
        if not isinstance(scores, list) or len(scores) != documents:
            return None
        read = [finite(score) for score in scores]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return read


def finite(number: object) -> float:
    """A number of JSON as a float64; raises ValueError or OverflowError for anything else."""
    if type(number) not in (int, float) or not math.isfinite(number):  # type: ignore[arg-type] # checked first
        raise ValueError(f"{number!r} is not a finite number")
    return float(number)  # type: ignore[arg-type] # as above
