"""Prompts for language models, and parsing of their replies (`vectors/prompt.json`)."""

from collections.abc import Sequence
from typing import Any

from memoryd.api.bodies import ReaderMode

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
