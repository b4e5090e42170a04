"""The project's own format: one JSON object a line."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError

from memconform.datasets.model import Dataset, Question
from memconform.errors import UsageError, nearest

_FAULTS_SHOWN = 5


def open_jsonl(path: Path, name: str) -> Dataset:
    """Read `path` through once.

    Raises:
        UsageError: where the file cannot be read, or naming each line that is no valid row.
    """
    digest = hashlib.sha256()
    faults: list[str] = []
    lines_by_id: dict[str, int] = {}
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                digest.update(raw)
                try:
                    question = _row(raw, first=number == 1)
                except ValueError as error:
                    faults.append(f"{path}:{number}: {error}")
                    continue
                if question is None:
                    continue
                earlier = lines_by_id.setdefault(question.id, number)
                if earlier != number:
                    faults.append(f"{path}:{number}: id {question.id!r} is also on line {earlier}")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", code="dataset_unreadable", hint="check --dataset"
        ) from error
    if faults:
        count = f"{len(faults)} line{'s' if len(faults) > 1 else ''}"
        raise UsageError(
            f"{path} has {count} that cannot be used",
            code="dataset_invalid",
            hint="mend the lines named above; nothing was run",
            excerpt="\n".join(faults[:_FAULTS_SHOWN]),
        )
    sha256 = digest.hexdigest()
    return Dataset(name, path, sha256, len(lines_by_id), _reader(sha256))


def _reader(sha256: str) -> Callable[[Path], Iterator[Question]]:
    """Reads a file that was found valid, as long as it stays what it was."""

    def read(path: Path) -> Iterator[Question]:
        digest = hashlib.sha256()
        try:
            with path.open("rb") as file:
                for number, raw in enumerate(file, start=1):
                    digest.update(raw)
                    question = _row(raw, first=number == 1)
                    if question is not None:
                        yield question
        except (OSError, ValueError) as error:
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


def _row(raw: bytes, *, first: bool) -> Question | None:
    """One line as a question, None for a blank one.

    Raises:
        ValueError: saying what is wrong with the line.
    """
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8")
        row = json.loads(text) if text.strip() else None
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("holds half of a surrogate pair, which is no text") from error
    except RecursionError as error:
        raise ValueError("nests too deeply") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"bad JSON at column {error.colno}: {error.msg}") from error
    if row is None and not text.strip():
        return None
    if not isinstance(row, dict):
        raise ValueError(f"a row is a JSON object, not {type(row).__name__}")  # noqa: TRY004
    try:
        return Question.model_validate(row)
    except ValidationError as error:
        raise ValueError(_explain(error)) from error


def _explain(error: ValidationError) -> str:
    parts = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            parts.append(f"unknown key {where!r} {nearest(where, Question.model_fields)}".rstrip())
        elif fault["type"] == "missing":
            parts.append(f"key {where!r} is missing")
        else:
            parts.append(f"{where}: {fault['msg'].removeprefix('Value error, ')}")
    return "; ".join(parts)
