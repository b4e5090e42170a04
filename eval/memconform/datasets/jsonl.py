"""The project's own format: one JSON object a line."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from memconform.contract.strict_json import RepeatedKeyError, decode, repeated_key_position
from memconform.datasets.files import MAX_LINE, line_too_long, open_regular
from memconform.datasets.invisible import comparable
from memconform.datasets.model import Dataset, Question
from memconform.datasets.question_row import QuestionRow
from memconform.errors import UsageError
from memconform.validation import validation_faults

_FAULTS_SHOWN = 5
_MAX_FAULT = 500
"""Characters of what is said of a line: its id or key may be of any length."""
_KEPT_BYTES = 16 << 20
"""A file up to this size is kept as questions: a run asks for them five times, from planning to its
result. A larger one is read anew each time, a row in memory."""


def open_jsonl(path: Path, name: str) -> Dataset:
    """Read `path` through once.

    Raises:
        UsageError: where the file cannot be read, or naming each line that is no valid row.
    """
    digest = hashlib.sha256()
    faults: list[str] = []
    fault_count = 0
    ids: dict[str, tuple[int, str]] = {}
    kept: list[Question] = []
    size = 0
    try:
        with open_regular(path) as file:
            for number, raw in _lines(path, file):
                digest.update(raw)
                size += len(raw)
                if size > _KEPT_BYTES:
                    kept.clear()
                try:
                    question = _row(raw, first=number == 1)
                    if question is not None:
                        _add_id(ids, question.id, number)
                        if size <= _KEPT_BYTES:
                            kept.append(question)
                except ValueError as error:
                    fault_count += 1
                    if len(faults) < _FAULTS_SHOWN:
                        faults.append(f"{path}:{number}: {str(error)[:_MAX_FAULT]}")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", code="dataset_unreadable", hint="check --dataset"
        ) from error
    if faults:
        count = f"{fault_count} line{'s' if fault_count > 1 else ''}"
        raise UsageError(
            f"{path} has {count} that cannot be used",
            code="dataset_invalid",
            hint="mend the lines named above; nothing was run",
            excerpt="\n".join(faults),
        )
    sha256 = digest.hexdigest()
    read = _reader(sha256) if size > _KEPT_BYTES else lambda _: iter(kept)
    return Dataset(name, path, sha256, len(ids), read)


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines of a file by number, with their ends; raises UsageError for too long a line."""
    number = 0
    while raw := file.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            raise line_too_long(path, number)
        yield number, raw


def _add_id(ids: dict[str, tuple[int, str]], given: str, number: int) -> None:
    """Remember an id; raises ValueError where an earlier line has it, or one that looks the same.

    By `--id`, in a report or in a diff nobody could tell them apart.
    """
    line, earlier = ids.setdefault(comparable(given), (number, given))
    if line == number:
        return
    if earlier == given:
        raise ValueError(f"id {given!r} is also on line {line}")
    raise ValueError(
        f"id {given!a} looks the same as {earlier!a} on line {line}: they differ only in"
        " Unicode normalization, or in characters that are not seen"
    )


def _reader(sha256: str) -> Callable[[Path], Iterator[Question]]:
    """Reads a file that was found valid, as long as it stays what it was."""

    def read(path: Path) -> Iterator[Question]:
        digest = hashlib.sha256()
        try:
            with open_regular(path) as file:
                for number, raw in _lines(path, file):
                    digest.update(raw)
                    question = _row(raw, first=number == 1)
                    if question is not None:
                        yield question
        except (OSError, ValueError, UsageError) as error:
            raise _changed(path) from error
        if digest.hexdigest() != sha256:
            raise _changed(path)

    return read


def _changed(path: Path) -> UsageError:
    return UsageError(
        f"{path} changed while it was used",
        code="dataset_changed",
        hint="run again; what was measured is in the journal of the run's folder",
    )


def has_row(line: str) -> bool:
    """Whether a line is neither blank nor a comment, which begins with `#`."""
    return line.strip()[:1] not in ("", "#")


def _row(raw: bytes, *, first: bool) -> Question | None:
    """One line as a question, None for one that has none.

    Raises:
        ValueError: saying what is wrong with the line.
    """
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8")
        if not has_row(text):
            return None
        row = decode(text)
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("holds half of a surrogate pair, which is not text") from error
    except MemoryError as error:
        raise ValueError("does not fit in memory") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"bad JSON at column {error.colno}: {error.msg}") from error
    except RepeatedKeyError as error:
        column = repeated_key_position(text, error.key) + 1
        raise ValueError(f"{error}, at column {column}") from error
    if not isinstance(row, dict):
        raise ValueError(f"a row is a JSON object, not {type(row).__name__}")  # noqa: TRY004
    try:
        return QuestionRow.model_validate(row).to_question()
    except ValidationError as error:
        raise ValueError(_explain(error)) from error


def _explain(error: ValidationError) -> str:
    return "; ".join(validation_faults(error, known=lambda _: QuestionRow.model_fields))
