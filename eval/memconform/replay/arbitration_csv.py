"""Answers for a spreadsheet, and the verdicts that a person wrote into it."""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from memconform.errors import UsageError
from memconform.printing.spreadsheets import csv_line, guarded_exactly, unguarded
from memconform.redaction import redact
from memconform.replay.overrides import PersonVerdict
from memconform.replay.records import LmeQuestion
from memconform.storage.sink import Sink

COLUMNS = ("id", "question", "reference", "answer", "judge verdict", "verdict", "note")
_BOM = "\ufeff"
"""Without it a spreadsheet takes UTF-8 for the encoding of its country."""
_VERDICTS = get_args(PersonVerdict)


@dataclass(frozen=True, slots=True)
class CsvVerdict:
    """A verdict of one row."""

    question: LmeQuestion
    verdict: PersonVerdict
    note: str


def write_csv(questions: Sequence[LmeQuestion], target: Sink) -> None:
    """Write a row for each answer, with empty columns for the verdict and a note."""
    lines = [csv_line(COLUMNS, "\r\n")]
    for each in questions:
        cells = (each.id, each.question, "\n".join(each.reference_answers), each.answer or "")
        row = (*map(guarded_exactly, cells), each.judge_verdict, "", "")
        lines.append(csv_line(row, "\r\n"))
    target.write_text(_BOM + "".join(lines))


def read_csv(path: Path, questions: Sequence[LmeQuestion]) -> list[CsvVerdict]:
    """Read the verdicts of a file that `write_csv` wrote; rows without one are left out.

    Raises:
        UsageError: naming the row, if anything but verdicts and notes differs from what was
            written (`arbitration_invalid`), or if it is about other answers (`other_answer`).
    """
    by_id = {question.id: question for question in questions if question.answer is not None}
    verdicts: dict[str, CsvVerdict] = {}
    seen: dict[str, int] = {}
    for number, cells in _rows(path):

        def invalid(reason: str, number: int = number) -> UsageError:
            return _invalid(f"{path}: row {number}: {reason}")

        row = dict(zip(COLUMNS, map(unguarded, cells), strict=True))
        name = row["id"]
        question = by_id.get(name)
        if question is None:
            raise invalid(f"the result has no answer to {name!r}")
        if name in seen:
            raise invalid(f"{name!r} is in row {seen[name]} too")
        seen[name] = number
        if _words(row["answer"]) != _words(_as_written(question.answer or "")):
            raise UsageError(
                f"{path}: row {number} has another answer to {name!r} than the result",
                code="other_answer",
                hint="import the file beside the result from which it was exported",
            )
        verdict = _verdict(row, invalid)
        if verdict is not None:
            verdicts[name] = CsvVerdict(question, verdict, row["note"].strip())
    return list(verdicts.values())


def _verdict(row: dict[str, str], invalid: Callable[[str], UsageError]) -> PersonVerdict | None:
    text = row["verdict"].strip().lower()
    for verdict in _VERDICTS:
        if text == verdict:
            known: PersonVerdict = verdict
            return known
    if text:
        raise invalid(f"{row['verdict']!r} is not {' or '.join(_VERDICTS)}")
    if row["note"].strip():
        raise invalid("a note without a verdict would be lost")
    return None


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows below the head, by number; a cell may span lines, so these are no line numbers."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            head = next(rows, [])
            if tuple(head) != COLUMNS:
                raise _invalid(f"{path}: row 1: the columns are {', '.join(head) or 'missing'}")
            for number, cells in enumerate(rows, 2):
                if len(cells) not in (0, len(COLUMNS)):
                    raise _invalid(f"{path}: row {number}: {len(cells)} cells, not {len(COLUMNS)}")
                if any(cells):
                    yield number, cells
    except UnicodeDecodeError as error:
        raise _invalid(f"{path} is not UTF-8") from error
    except csv.Error as error:
        raise _invalid(f"{path}: line {rows.line_num}: {error}") from error
    except OSError as error:
        raise _invalid(f"{path}: {error.strerror}") from error


def _as_written(text: str) -> str:
    """What a sink makes of a text."""
    return redact(text).encode("utf-8", "backslashreplace").decode()


def _words(text: str) -> list[str]:
    """Spreadsheets change line ends, and spaces at the end."""
    return text.split()


def _invalid(message: str) -> UsageError:
    return UsageError(
        message,
        code="arbitration_invalid",
        hint=f"keep the columns {', '.join(COLUMNS)}, and save as CSV with commas, in UTF-8; write"
        f" {' or '.join(_VERDICTS)}, or nothing, as the verdict",
    )
