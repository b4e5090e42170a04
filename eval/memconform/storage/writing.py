"""Whole files, and the one sink: whatever is written passes through it, secrets masked."""

import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NewType

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from memconform.errors import ResultsError
from memconform.redaction import (
    MASK,
    hides_anything,
    redact,
    redact_bytes,
    redact_stream,
    redact_values,
)

_TEMPORARY = re.compile(r"\..+\.\d+\.[0-9a-f]{8}")
_LOCKED_SECONDS = 60
"""Far more than a writer needs from the creation of its file to the lock."""


Masked = NewType("Masked", bytes)
"""Bytes without a secret: what a sink has made or written before, or syntax of ours."""


class Sink:
    """Masks secrets in whatever is written to a file or a stream.

    JSON is masked value by value before it is text: masking the text could break its syntax, and
    numbers and field names are no secrets.
    """

    def __init__(self, write: Callable[[Masked], object]) -> None:
        self._write = write

    def write_json(
        self, value: BaseModel | Mapping[str, Any], *, indent: int | None = 1, end: str = "\n"
    ) -> None:
        """Write a value of JSON, and `end` behind it; without `indent` on one line."""
        self._write(Masked(json_bytes(value, indent=indent) + end.encode()))

    def write_text(self, text: str) -> None:
        """Write a text that is complete: a secret that lies across two calls is not found."""
        self._write(Masked(redact(text).encode("utf-8", "backslashreplace")))

    def write_bytes(self, data: bytes) -> None:
        """Write bytes of whatever kind, as complete as a text."""
        self._write(Masked(redact_bytes(data)))

    def write_masked(self, data: Masked) -> None:
        """Write what needs no look."""
        self._write(data)


def json_bytes(value: BaseModel | Mapping[str, Any], *, indent: int | None = None) -> Masked:
    """A value as JSON in UTF-8, with every secret masked in its strings."""
    if isinstance(value, BaseModel) and indent is None and not hides_anything():
        # A fifth of the time, and a run writes four records a question.
        with suppress(PydanticSerializationError):
            return Masked(value.model_dump_json().encode())
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    masked = redact_values(plain)
    try:
        return Masked(json.dumps(masked, indent=indent, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        # Half of a surrogate pair, which a daemon may send, is no text; as an escape it is JSON.
        return Masked(json.dumps(masked, indent=indent).encode())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file at once, secrets masked, without the time that `replacing` takes to be sure.

    Raises:
        ResultsError: where it cannot be written.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(redact_bytes(data))
    except OSError as error:
        raise unwritable(path, error) from error


def redact_file(path: Path) -> None:
    """Mask the secrets in a file that another program has written, in constant memory."""
    if path.is_file():
        with path.open("rb") as file:
            masked = any(MASK.encode() in piece for piece in redact_stream(file))
        if masked:
            with path.open("rb") as file, _replacing(path) as clean:
                clean.writelines(redact_stream(file))


@contextmanager
def replacing(target: Path) -> Iterator[Sink]:
    """A file that appears under its name whole, or not at all.

    Raises:
        ResultsError: where it cannot be written.
    """
    with _replacing(target) as file:
        yield Sink(file.write)


@contextmanager
def device(path: Path) -> Iterator[Sink]:
    """A device or a pipe that is there already; raises OSError where it cannot be written."""
    # Buffered: a raw file may take a part of what is written, where a signal comes in between.
    with path.open("wb") as file:
        yield Sink(file.write)


@contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target.parent.absolute())
        with temporary.open("xb") as file:
            _lock(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
            # Before it is closed, and its lock gone.
            temporary.replace(target)
    except OSError as error:
        raise unwritable(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


@cache
def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of writers that were killed, once for each folder.

    A writer holds a lock on its file, which the kernel releases with its last breath. That is a
    better proof than its process id, which another process may have by now, and which means nothing
    where the folder is shared with other machines or containers. The age is for the moment between
    the creation of a file and its lock.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) is None:
                continue
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < _LOCKED_SECONDS:
                    continue
                # For writing, which a lock needs on a network file system; where there are no
                # locks this fails, and the file stays.
                descriptor = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    Path(entry.path).unlink()
                finally:
                    os.close(descriptor)


def _lock(file: IO[bytes]) -> None:
    """Show others that the writer lives, where the file system has locks."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unwritable(path: Path, error: OSError) -> ResultsError:
    return ResultsError(
        f"cannot write {path}: {error.strerror}",
        code="results_unwritable",
        hint="choose another --output, or make room; the journal beside it holds what was measured",
    )
