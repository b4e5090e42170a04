"""Result files: a summary and one line per question, so that no file is held in memory whole."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from memconform.errors import UsageError
from memconform.records import Record
from memconform.storage.sink import Masked, Sink, json_bytes
from memconform.validation_faults import first_fault

_QUESTIONS_BEGIN = ' "questions": [\n'
_QUESTIONS_END = "]\n"
_HEAD_BYTES = 256
_SCHEMA: Final = re.compile(rb'"schema_version": *"([^"]*)"')


def write_result(target: Sink, summary: Record, questions: Iterable[Masked]) -> None:
    """Write the summary's JSON object with a `questions` list appended, one question a line."""
    head = json_bytes(summary, indent=1).removesuffix(b"\n}")
    target.write_masked(Masked(head + f",\n{_QUESTIONS_BEGIN}".encode()))
    separator = b""
    for line in questions:
        target.write_masked(Masked(separator + line.rstrip(b"\n")))
        separator = b",\n"
    target.write_masked(Masked(b"\n" + _QUESTIONS_END.encode() + b"}\n"))


def read_head(result: Path) -> str:
    """The summary of a result file, as JSON text.

    Raises:
        ValueError: if the file is not a result.
        OSError: if it cannot be read.
    """
    with result.open(encoding="utf-8") as lines:
        head, first = _split_head(lines)
    return json.dumps(_reformatted(result)[0]) if first is None else head.rstrip().rstrip(",") + "}"


def read_lines(result: Path) -> Iterator[str]:
    """The questions of a result file, each as JSON text.

    Only one is in memory at a time, unless another program has reformatted the file.

    Raises:
        ValueError: if the file ends before its questions do, or is not a result.
        OSError: if it cannot be read.
    """
    with result.open(encoding="utf-8") as lines:
        _, first = _split_head(lines)
        if first is None:
            yield from map(json.dumps, _reformatted(result)[1])
            return
        for line in chain([first], lines):
            if line == _QUESTIONS_END:
                return
            if line != "\n":
                yield line.rstrip().removesuffix(",")
    raise ValueError(f"{result} ends before its questions do")


def has_lines(result: Path) -> bool:
    """Whether a report is followed by its questions; raises OSError if it is unreadable."""
    try:
        next(read_lines(result), None)
    except ValueError:
        return False
    return True


_REPORTS = "memconform report and memconform view show it"
_ITSELF = "give the results that it compares"

WRITERS: Final = {
    "result": ("run", "memconform parity, diff, report and view read it"),
    "journal": ("run", "memconform run --resume continues it"),
    "bench-report": (
        "bench",
        "memconform parity compare and diff compare its rows; memconform view shows its queries",
    ),
    "bench-parity-report": ("parity", _ITSELF),
    "bench-diff-report": ("diff", _ITSELF),
    "bench-journal": ("bench", "memconform bench --resume continues it"),
    "conform-report": ("conform", f"memconform conform findings shows its checks; {_REPORTS}"),
    "mutation-report": ("mutate", _REPORTS),
    "fuzz-report": ("fuzz", f"docs/FUZZ.md says how to repeat it; {_REPORTS}"),
    "load-report": ("load", _REPORTS),
    "parity-report": ("parity", f"{_REPORTS}; to compare, {_ITSELF}"),
    "diff-report": ("diff", _ITSELF),
    "run-report": (
        "run",
        "memconform report shows it; to compare, give results/runs/<run-id>/result.json",
    ),
    "answer-report": ("score", "memconform parity, diff, report and view read it"),
    "qa-report": ("score", "memconform parity, diff, report and view read it"),
    "qa-journal": ("score", "memconform score --resume continues it"),
    "qa-metrics": ("judge metrics", "memconform judge metrics printed what it has"),
    "calibration": ("judge calibrate", "memconform judge compare and score use it"),
    "judge-comparison": ("judge compare", _ITSELF),
    "lme-result": ("lme", "memconform diff, parity, lme arbitrate and report read it"),
    "lme-report": ("lme", "give a result-<sdk>.json of the folder that --output named"),
    "lme-parity": ("lme tri", f"{_REPORTS}; to compare, give the result-<sdk>.json beside it"),
    "lme-run": ("lme", "give the folder, or a result-<sdk>.json in it"),
    "lme-manifest": ("lme", "give the result-<sdk>.json beside it"),
    "lme-extract": ("lme", "give a result-<sdk>.json in its folder"),
    "lme-journal": ("lme", "the same command with --output FOLDER continues it"),
    "lme-review": ("diff", _ITSELF),
    "trend-report": ("diff", _ITSELF),
    "lme-arbitration": ("lme arbitrate", "give the result that it is about"),
    "lme-override": ("lme arbitrate", "memconform diff --overrides reads it"),
    "wmb-run": ("wmb run", "memconform score --rubric wmb reads the answers beside it"),
    "wmb-score": ("score", "memconform parity, diff, report and view read it"),
    "wmb-journal": ("score", "memconform score --rubric wmb --resume continues it"),
    "expansion": (
        "datasets expand",
        "memconform bench --keys and --ranges read its entries",
    ),
}
"""By the name of its schema: which command writes a file, and what reads it."""


@contextmanager
def reading(path: Path, what: str, hint: str) -> Iterator[None]:
    """Raise UsageError `result_unreadable` if a file that is read in the block is not whole.

    Args:
        path: of the file.
        what: it should be, for the message: `the whole result of a run`.
        hint: what to give instead.
    """
    try:
        yield
    except (ValueError, OSError, RecursionError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
        raise UsageError(
            f"{path} is not {what}", code="result_unreadable", hint=hint, excerpt=fault
        ) from error


def require_result_of_run(*files: Path) -> None:
    """Raise UsageError `result_unreadable` if one was written by another command than `run`."""
    require_schema("result", *files)


def require_schema(expected: str, *files: Path) -> None:
    """Raise UsageError `result_unreadable` if a command wrote one by another schema.

    Files that do not exist, or that no command has written, are ignored.
    """
    for file in files:
        schema = ""
        with suppress(OSError):
            schema = _schema_in_head(file) or ""
        name = schema_name(schema)
        if name in WRITERS and name != expected:
            command, readers = WRITERS[name]
            raise UsageError(
                f"{file} was written by `memconform {command}`",
                code="result_unreadable",
                hint=readers,
            )


def schema_name(schema: str) -> str:
    """The name in a `schema_version`, which has a number, too."""
    return schema.removeprefix("memconform/").partition("@")[0]


def _schema_in_head(result: Path) -> str | None:
    with result.open("rb") as file:
        match = _SCHEMA.search(file.read(_HEAD_BYTES))
    return None if match is None else match[1].decode("utf-8", "replace")


def schema_of(result: Path) -> str:
    """The `schema_version` of a JSON file.

    Raises:
        ValueError: if the file is not JSON or has no schema version.
        OSError: if it cannot be read.
    """
    if (schema := _schema_in_head(result)) is not None:
        return schema
    loaded = json.loads(result.read_bytes())
    if not isinstance(loaded, dict) or "schema_version" not in loaded:
        raise ValueError(f"{result} names no schema")
    return str(loaded["schema_version"])


def run_id_of(result: Path) -> str | None:
    """The id of the run whose result a file is; None for any other file."""
    try:
        loaded = json.loads(result.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    run_id = loaded.get("run_id") if isinstance(loaded, dict) else None
    return run_id if isinstance(run_id, str) else None


def _split_head(lines: Iterator[str]) -> tuple[str, str | None]:
    """Read the text before the questions, and the first line of the questions.

    That line is None if another program has reformatted the file: only `write_result` puts one
    question on a line.
    """
    head = "".join(takewhile(lambda line: line != _QUESTIONS_BEGIN, lines))
    first = next(lines, None)
    return head, None if first is not None and first.strip() == "{" else first


def _reformatted(result: Path) -> tuple[dict[str, Any], list[Any]]:
    """Summary and questions of a result that another program, such as jq, has reformatted.

    It is held in memory whole.
    """
    try:
        loaded = json.loads(result.read_bytes())
    except RecursionError as error:
        raise ValueError(f"{result} is nested too deeply") from error
    questions = loaded.pop("questions", None) if isinstance(loaded, dict) else None
    if not isinstance(questions, list):
        raise ValueError(f"{result} has no questions")  # noqa: TRY004 - a file, not an argument
    return loaded, questions
