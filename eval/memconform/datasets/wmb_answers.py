"""Stored answers in WMB-100K's format, and the record of the run that made them.

`answers.json` is an array of `{"question_id", "memories_returned", "system_response",
"latency_ms"}`. A row without memories, or with the response `NO_RESULT`, returned nothing. Rows of
`wmb run` say which run made them (`RowOrigin`); rows with an `error` hold one. Other keys are
ignored, as the released script ignores all others.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memconform.datasets.files import PieceReader, too_large, unfit
from memconform.datasets.json_array import elements
from memconform.datasets.rows import reason_of, text, texts
from memconform.datasets.wmb_names import Part

NO_RESULT: Final = "NO_RESULT"
"""The response of a row that returned nothing."""

ORIGIN: Final = "memconform"
"""The key of a row's `RowOrigin`."""

_MAX_ROWS: Final = 100_000
"""37 for each question; a file with more is not one of answers, and would fill the memory."""

_SHOWN: Final = 120
"""Characters of an error that are kept."""

_HINT: Final = (
    'write an array of {"question_id": "…", "memories_returned": ["…"], "system_response": "…",'
    ' "latency_ms": 12}'
)


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """The run of `wmb run` that made a row: a copy of the answers alone shows what it lacks."""

    run: str
    parts: Part
    asked: int
    """How many questions this run asked, with those that it lost."""

    def row(self) -> dict[str, Any]:
        """As it stands in a row."""
        return {"run": self.run, "parts": self.parts, "asked": self.asked}


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row of a file of answers."""

    question: str
    memories: tuple[str, ...]
    response: str
    latency_ms: float | None
    """None if the row has none."""
    origin: RowOrigin | None = None
    """None for rows of other programs."""
    fault: str | None = None
    """Why the row holds no answer, if it says so."""

    @property
    def returned_nothing(self) -> bool:
        return not self.memories or self.response == NO_RESULT

    @property
    def text(self) -> str:
        """The memories as a judge reads them."""
        return "\n".join(self.memories)

    @property
    def is_joined(self) -> bool:
        """Whether the response is nothing but the memories."""
        return self.response == " ".join(self.memories)


def read_answer_rows(source: PieceReader) -> Iterator[AnswerRow]:
    """Yield the rows of a file of any size; one of them is in memory.

    Raises:
        UsageError: `dataset_invalid`, naming the row, for one without an id, with memories that are
            not a list of texts, or a latency that is no number of milliseconds;
            `dataset_unreadable`, `dataset_too_large`.
    """
    for number, element in enumerate(elements(source)):
        if number == _MAX_ROWS:
            raise too_large(source.path, f"has more than {_MAX_ROWS:,} rows", _HINT)
        try:
            if not isinstance(element, dict):
                raise TypeError("is not an object")  # noqa: TRY301 - a row's fault, as the others
            yield _row(element)
        except (KeyError, TypeError, ValueError) as error:
            reason = reason_of(error)
            if isinstance(error, UnicodeEncodeError):
                reason = "contains an unpaired surrogate"
            raise unfit(source.path, f"row {number}: {reason}", _HINT) from error


def _row(row: dict[str, Any]) -> AnswerRow:
    memories = texts(row, "memories_returned") if row.get("memories_returned") is not None else []
    answer = AnswerRow(
        question=text(row, "question_id"),
        memories=tuple(memories),
        response=text(row, "system_response") if row.get("system_response") is not None else "",
        latency_ms=_latency(row.get("latency_ms")),
        origin=_origin(row[ORIGIN]) if row.get(ORIGIN) is not None else None,
        fault=_fault(row),
    )
    "".join((answer.question, *answer.memories)).encode()
    return answer


def _fault(row: dict[str, Any]) -> str | None:
    """Why a row is no answer: it reports an error instead of memories, or has nothing at all."""
    if (error := row.get("error")) and not row.get("memories_returned"):
        shown = error if isinstance(error, str) else json.dumps(error)
        return " ".join(shown.split())[:_SHOWN]
    if row.get("memories_returned") is None and row.get("system_response") is None:
        return "the row has neither memories nor a response"
    return None


def _origin(value: object) -> RowOrigin:
    match value:
        case {"run": str(run), "parts": "A" | "B" | "both" as parts, "asked": int(asked)}:
            return RowOrigin(run, parts, asked)
    raise TypeError(f"{ORIGIN!r} is not what `wmb run` writes")


_LONGEST_MS = 86_400_000
"""A search of more than a day is a number that went wrong, such as 1e300."""


def _latency(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"'latency_ms' must be a number, not {value!r:.60}")
    if not 0 <= value <= _LONGEST_MS:
        raise ValueError(f"'latency_ms' must be from 0 to a day's, not {value!r:.60}")
    return value


def answers_digest(path: Path) -> str:
    """The SHA-256 of a file's decompressed bytes."""
    with PieceReader(path) as source:
        while source.read():
            pass
        return source.sha256
