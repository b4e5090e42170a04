"""Question sets in the project's own format: one JSON object per line."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from memconform.contract.strict_json import RepeatedKeyError, decode, repeated_key_position
from memconform.datasets.files import MAX_LINE, line_too_long, open_regular
from memconform.datasets.invisible import comparable
from memconform.datasets.question import Dataset, Question
from memconform.datasets.question_row import QuestionRow
from memconform.errors import UsageError
from memconform.validation_faults import validation_faults

_FAULTS_SHOWN = 5
_MAX_FAULT = 500
"""Characters of the message about a line, because ids and keys may be of any length."""
_CACHED_BYTES = 16 << 20
"""Questions of a file up to this size stay in memory, because a run iterates over them five times,
from planning to its result. A larger file is read again each time, one row in memory."""


def open_jsonl(path: Path, name: str) -> Dataset:
    """Read and validate a question set.

    Raises:
        UsageError: if the file cannot be read (`dataset_unreadable`), or has invalid lines
            (`dataset_invalid`); the excerpt names the first five.
    """
    digest = hashlib.sha256()
    faults: list[str] = []
    fault_count = 0
    ids: dict[str, tuple[int, str]] = {}
    clusters: dict[str, tuple[int, str]] = {}
    questions: list[Question] = []
    size = 0
    try:
        with open_regular(path) as file:
            for number, raw in _lines(path, file):
                digest.update(raw)
                size += len(raw)
                if size > _CACHED_BYTES:
                    questions.clear()
                try:
                    question = _row(raw, first=number == 1)
                    if question is not None:
                        _add_id(ids, question.id, number)
                        if question.cluster is not None:
                            _add_cluster(clusters, question.cluster, number)
                        if size <= _CACHED_BYTES:
                            questions.append(question)
                except ValueError as error:
                    fault_count += 1
                    if len(faults) < _FAULTS_SHOWN:
                        faults.append(f"{path}:{number}: {str(error)[:_MAX_FAULT]}")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", code="dataset_unreadable", hint="check --data"
        ) from error
    if faults:
        count = f"{fault_count} invalid line{'s' if fault_count > 1 else ''}"
        raise UsageError(
            f"{path} has {count}",
            code="dataset_invalid",
            hint="fix the lines listed above; nothing was run",
            excerpt="\n".join(faults),
        )
    sha256 = digest.hexdigest()
    read = _reader(sha256) if size > _CACHED_BYTES else lambda _: iter(questions)
    return Dataset(name, path, sha256, len(ids), read)


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a file with their line ends; raises UsageError if one is too long."""
    number = 0
    while raw := file.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            raise line_too_long(path, number)
        yield number, raw


def _add_id(ids: dict[str, tuple[int, str]], id_: str, number: int) -> None:
    """Add an id; raises ValueError if an earlier line has the same id or one that looks the same.

    In `--id`, a report or a diff, users could not distinguish them.
    """
    line, earlier = ids.setdefault(comparable(id_), (number, id_))
    if line == number:
        return
    if earlier == id_:
        raise ValueError(f"id {id_!r} is also on line {line}")
    raise _lookalike("id", id_, earlier, line)


def _add_cluster(clusters: dict[str, tuple[int, str]], cluster: str, number: int) -> None:
    """Add a cluster; raises ValueError if an earlier line has one that only looks the same.

    Its questions would count as independent of the others.
    """
    line, earlier = clusters.setdefault(comparable(cluster), (number, cluster))
    if earlier != cluster:
        raise _lookalike("cluster", cluster, earlier, line)


def _lookalike(key: str, value: str, earlier: str, line: int) -> ValueError:
    return ValueError(
        f"{key} {value!a} looks the same as {earlier!a} on line {line}: they differ only in"
        " Unicode normalization or in invisible characters"
    )


def _reader(sha256: str) -> Callable[[Path], Iterator[Question]]:
    """A function that reads a validated file again, and fails if it has changed."""

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
        f"{path} changed while it was being used",
        code="dataset_changed",
        hint="run again; the measurements are in the journal of the run's folder",
    )


def has_row(line: str) -> bool:
    """Whether a line is neither blank nor a comment, which starts with `#`."""
    return line.strip()[:1] not in ("", "#")


def _row(raw: bytes, *, first: bool) -> Question | None:
    """Parse a line; None for a blank line or a comment.

    Raises:
        ValueError: if the line is invalid, with the reason.
    """
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8")
        if not has_row(text):
            return None
        row = decode(text)
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("contains an unpaired surrogate, which is not valid text") from error
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
        raise ValueError(f"a row must be a JSON object, not {type(row).__name__}")  # noqa: TRY004
    try:
        return QuestionRow.model_validate(row).to_question()
    except ValidationError as error:
        raise ValueError(_explain(error)) from error


def _explain(error: ValidationError) -> str:
    return "; ".join(validation_faults(error, known=lambda _: QuestionRow.model_fields))
