"""A result as a file: a summary, and its questions a line each, so that none is held whole."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Final

from memconform.records import Record
from memconform.storage.writing import Masked, Sink, json_bytes

_QUESTIONS_BEGIN = ' "questions": [\n'
_QUESTIONS_END = "]\n"
_SCHEMA: Final = re.compile(rb'"schema_version": *"([^"]*)"')


def write_result(target: Sink, summary: Record, questions: Iterable[Masked]) -> None:
    """The summary's object, opened again for the list of questions, one a line."""
    head = json_bytes(summary, indent=1).removesuffix(b"\n}")
    target.write_masked(Masked(head + f",\n{_QUESTIONS_BEGIN}".encode()))
    separator = b""
    for line in questions:
        target.write_masked(Masked(separator + line.rstrip(b"\n")))
        separator = b",\n"
    target.write_masked(Masked(b"\n" + _QUESTIONS_END.encode() + b"}\n"))


def read_head(result: Path) -> str:
    """The summary, as JSON; raises ValueError for what is no result, OSError where it fails."""
    with result.open(encoding="utf-8") as lines:
        head, first = _begun(lines)
    return json.dumps(_reformatted(result)[0]) if first is None else head.rstrip().rstrip(",") + "}"


def read_lines(result: Path) -> Iterator[str]:
    """The questions, each as JSON, one in memory at a time where the lines are ours.

    Raises:
        ValueError: where the file ends before its questions do.
    """
    with result.open(encoding="utf-8") as lines:
        _, first = _begun(lines)
        if first is None:
            yield from map(json.dumps, _reformatted(result)[1])
            return
        for line in chain([first], lines):
            if line == _QUESTIONS_END:
                return
            if line != "\n":
                yield line.rstrip().removesuffix(",")
    raise ValueError(f"{result} ends before its questions do")


def schema_of(result: Path) -> str:
    """The schema that a file of JSON names; raises ValueError where it names none."""
    with result.open("rb") as file:
        begin = file.read(256)
    if (found := _SCHEMA.search(begin)) is not None:
        return found[1].decode()
    loaded = json.loads(result.read_bytes())
    if not isinstance(loaded, dict) or "schema_version" not in loaded:
        raise ValueError(f"{result} names no schema")
    return str(loaded["schema_version"])


def run_id_of(result: Path) -> str | None:
    """Whose result a file is; None for any other file."""
    try:
        loaded = json.loads(result.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    found = loaded.get("run_id") if isinstance(loaded, dict) else None
    return found if isinstance(found, str) else None


def _begun(lines: Iterator[str]) -> tuple[str, str | None]:
    """What stands before the questions, and their first line.

    None where another program set the lines: a question has one to itself only where we did.
    """
    head = "".join(takewhile(lambda line: line != _QUESTIONS_BEGIN, lines))
    first = next(lines, None)
    return head, None if first is not None and first.strip() == "{" else first


def _reformatted(result: Path) -> tuple[dict[str, Any], list[Any]]:
    """A result that went through another JSON program, such as jq, and is held whole."""
    try:
        loaded = json.loads(result.read_bytes())
    except RecursionError as error:
        raise ValueError(f"{result} is too deep") from error
    questions = loaded.pop("questions", None) if isinstance(loaded, dict) else None
    if not isinstance(questions, list):
        raise ValueError(f"{result} has no questions")  # noqa: TRY004 - a file, not an argument
    return loaded, questions
