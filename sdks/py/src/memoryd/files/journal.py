"""The journal of a change, on disk so that any daemon can undo it after a kill.

Its format is the contract's (`state.journal`), so that it is the same for every SDK.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple, Self

from memoryd.files.regular import read_regular, write_whole

NAME = "journal"

_TARGET = re.compile(r"(?:brains|meta)/([A-Za-z0-9._-]{1,128})/[^\0]+")


class JournalError(Exception):
    """The journal is not one that this daemon can read."""


class Step(NamedTuple):
    target: str
    """Relative to the state folder, which may be moved."""
    old: str
    """The name in the change's folder of what was at `target`."""
    new: str | None
    """The name in the change's folder of what is placed at `target`; None if it is removed."""

    @property
    def brain_id(self) -> str:
        return self.target.split("/")[1]

    def encode(self) -> bytes:
        kind = {"remove": self.target} if self.new is None else {"put": self.target}
        files = {"old": self.old} if self.new is None else {"new": self.new, "old": self.old}
        return json.dumps(kind | files).encode() + b"\n"


class Journal:
    """Records each step before it is taken; undoing a step that was not taken does no harm."""

    def __init__(self, change: Path) -> None:
        self.steps: list[Step] = []
        self._path = change / NAME
        self._file = self._path.open("xb", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def record(self, target: str, old: str, new: str | None = None) -> None:
        """Record that `target`, if it exists, is kept as `old`, and that `new` takes its place."""
        step = Step(target, old, new)
        line = step.encode()
        write_whole(self._file, line)
        self.steps.append(step)

    def end(self) -> None:
        """Remove the journal: from then on nobody undoes the change."""
        self._path.unlink(missing_ok=True)


def read_steps(change: Path) -> list[Step]:
    """Read the steps of a change.

    Raises:
        JournalError: if a line is not a step, or the journal is a link, say.
    """
    content = read_regular(change / NAME)
    if content is None:
        raise JournalError("it is not a regular file")
    lines = content.split(b"\n")
    # A line without its newline was cut off by the kill, before its step was taken.
    return [_step(line) for line in lines[:-1]]


def _step(line: bytes) -> Step:
    try:
        loaded: Any = json.loads(line)
    except (ValueError, RecursionError):
        loaded = None
    match loaded:
        case {"put": str(target), "new": str(new), "old": str(old)} if len(loaded) == 3:
            step = Step(target, old, new)
        case {"remove": str(target), "old": str(old)} if len(loaded) == 2:
            step = Step(target, old, None)
        case _:
            raise JournalError(f"the line {line[:80]!r} is not a step")
    names = [name for name in (step.old, step.new) if name is not None]
    if not _TARGET.fullmatch(target) or not all(map(_is_name, [*target.split("/"), *names])):
        raise JournalError(f"the line {line[:80]!r} names a file outside the brains")
    if any("/" in name or name == NAME for name in names):
        raise JournalError(f"the line {line[:80]!r} names a file outside the change")
    return step


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and "\0" not in name
