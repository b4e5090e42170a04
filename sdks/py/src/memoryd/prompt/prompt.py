"""Prompts for language models (`vectors/prompt.json`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ReaderMode = Literal["basic", "augmented"]

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


@dataclass(frozen=True, slots=True)
class Note:
    """What a language model sees of a chunk."""

    path: str
    text: str
    title: str | None = None
    date: str | None = None


def user_message(
    question: str,
    notes: Sequence[Note],
    question_date: str | None = None,
    reader_mode: ReaderMode = "basic",
) -> str:
    numbered = [
        f"[{number}] {note.path}{_aside(note) if reader_mode == 'augmented' else ''}\n{note.text}"
        for number, note in enumerate(notes, 1)
    ]
    date = f"Date of the question: {question_date}\n" if question_date else ""
    parts = ["Notes:", *numbered] if numbered else ["Notes: none"]
    return "\n\n".join([*parts, f"{date}Question: {question}"])


def _aside(note: Note) -> str:
    """The note's title and date, if it has them."""
    details = [value for value in (note.title, note.date) if value]
    return f" ({', '.join(details)})" if details else ""
