"""A folder of programs: those that found something, and those that reached a new kind of answer."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memconform.contract.wire import JsonValue
from memconform.errors import UsageError
from memconform.fuzzing.normalized_answer import ProgramAnswer
from memconform.fuzzing.programs import Call, Program
from memconform.storage.sink import replacing

SCHEMA = "memconform/fuzz-program@1"


def to_json(program: Program) -> dict[str, Any]:
    """Return a program as JSON."""
    calls = []
    for call in program.calls:
        record: dict[str, Any] = {"route": call.route, "method": call.method, "target": call.target}
        if isinstance(call.body, bytes):
            record["base64"] = base64.b64encode(call.body).decode()
        elif call.body is not None:
            record["json"] = call.body
        if call.headers:
            record["headers"] = dict(call.headers)
        if call.defect:
            record["defect"] = call.defect
        calls.append(record)
    return {"schema": SCHEMA, "listens": program.listens, "calls": calls}


def from_json(record: Mapping[str, Any]) -> Program:
    """Return the program of a JSON object; raises KeyError or ValueError if it is none."""
    if record["schema"] != SCHEMA:
        raise ValueError(f"the schema is not {SCHEMA}")
    calls = []
    for item in record["calls"]:
        body = base64.b64decode(item["base64"]) if "base64" in item else item.get("json")
        headers, defect = dict(item.get("headers", {})), item.get("defect", "")
        calls.append(Call(item["route"], item["method"], item["target"], body, headers, defect))
    return Program(tuple(calls), bool(record["listens"]))


def read_programs(folder: Path) -> list[Program]:
    """Read all programs of a folder, by name; none if it does not exist.

    Raises:
        UsageError: `corpus_invalid` if a file is not a program.
    """
    programs = []
    for path in sorted(folder.glob("*.json")):
        try:
            programs.append(from_json(json.loads(path.read_text(encoding="utf-8"))))
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise UsageError(
                f"{path}: not a program of fuzz: {error}",
                code="corpus_invalid",
                hint="remove the file, or give another folder to --corpus",
            ) from error
    return programs


def write_program(folder: Path, program: Program) -> Path:
    """Write a program, under a name that its content determines."""
    text = json.dumps(to_json(program), ensure_ascii=True, indent=1) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{digest}.json"
    if not path.exists():
        with replacing(path) as target:
            target.write_text(text)
    return path


class Corpus:
    """The programs of a folder, and the kinds of answers that they reach."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reached: set[str] = set()
        self.added = 0
        """Number of programs that were added."""

    def programs(self) -> list[Program]:
        """All programs; raises UsageError as `read_programs` does."""
        return read_programs(self._folder)

    def keep(self, program: Program) -> None:
        """Add a program, unless it is there already."""
        known = set(self._folder.glob("*.json"))
        self.added += write_program(self._folder, program) not in known

    def observe(self, program: Program, answers: Sequence[ProgramAnswer], *, keeps: bool) -> None:
        """Note which kinds of answers a program reaches; add it if one of them is new."""
        last = -1
        for number, answer in enumerate(answers):
            kind = f"{_route(program, number)} {answer_kind(answer)}"
            if kind not in self._reached:
                self._reached.add(kind)
                last = number
        if keeps and last >= 0:
            # The calls after it did not contribute.
            self.keep(replace(program, calls=program.calls[: last + 1]))


def _route(program: Program, number: int) -> str:
    if number >= len(program.calls):
        return "events"
    call = program.calls[number]
    return f"{call.route} {call.method} {call.defect}"


def answer_kind(answer: ProgramAnswer) -> str:
    """Return the shape of an answer: its status and keys, without values."""
    return f"{answer.status} {answer.failure} {answer.media} {sorted(set(_shape(answer.body)))}"


_KINDS = ("code", "effectiveMode", "kind")
"""Keys whose values are kinds themselves."""


def _shape(value: JsonValue, where: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _KINDS:
                yield f"{where}/{key}={item}"
            elif key == "metadata":
                yield f"{where}/{key}"
            else:
                yield from _shape(item, f"{where}/{key}")
    elif isinstance(value, list):
        is_event = len(value) == 3 and isinstance(value[0], str)
        yield f"{where}[{min(len(value), 2)}]"
        for item in value[1:2] if is_event else value:
            yield from _shape(item, f"{where}/{value[0]}" if is_event else f"{where}/*")
    else:
        yield f"{where}:{type(value).__name__}"
