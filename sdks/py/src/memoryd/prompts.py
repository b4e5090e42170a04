"""Prompts for language models, and parsing of their replies (`vectors/prompt.json`)."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from memoryd.models import ReaderMode

_BASIC = (
    "You answer questions from notes. Use only what the notes say, in as few words as possible."
    " After each fact, cite its note, as [1]. If the notes do not say, answer exactly:"
    " No information available."
)
READER_SYSTEM: dict[ReaderMode, str] = {
    "basic": _BASIC,
    "augmented": _BASIC
    + " The notes may describe different times and contradict each other: order them by date,"
    " relative to the question's date, and trust the latest.",
}
RERANK_SYSTEM = (
    "You judge how well each note answers a question. Reply with nothing but a JSON object"
    ' {"scores": [...]}, one number from 0 to 10 for each note, in the order of the notes.'
)

_CITATION = re.compile(r"\[([0-9]+(?: *, *[0-9]+)*)\]")


def user_message(
    question: str,
    chunks: Sequence[dict[str, Any]],
    question_date: str | None = None,
    reader_mode: ReaderMode = "basic",
) -> str:
    notes = [
        f"[{number}] {chunk['path']}{_aside(chunk) if reader_mode == 'augmented' else ''}\n"
        f"{chunk['text']}"
        for number, chunk in enumerate(chunks, 1)
    ]
    date = f"Date of the question: {question_date}\n" if question_date else ""
    parts = ["Notes:", *notes] if notes else ["Notes: none"]
    return "\n\n".join([*parts, f"{date}Question: {question}"])


def _aside(chunk: dict[str, Any]) -> str:
    """The note's title and date, if it has them."""
    candidates = (chunk.get("title"), chunk.get("metadata", {}).get("date"))
    details = [value for value in candidates if isinstance(value, str) and value]
    return f" ({', '.join(details)})" if details else ""


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
