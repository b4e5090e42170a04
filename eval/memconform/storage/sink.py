"""Atomic files, and the one sink that all output passes through and that masks secrets."""

import errno
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
"""Far more time than a writer needs between creating its file and locking it."""


Masked = NewType("Masked", bytes)
"""Bytes without secrets: produced or written earlier by a sink, or syntax of our own."""


class Sink:
    """Masks secrets in whatever is written to a file or a stream.

    JSON is masked value by value before serialization: masking the text could break its syntax, and
    numbers and field names are never secrets.
    """

    def __init__(self, write: Callable[[Masked], object]) -> None:
        self._write = write

    def write_json(
        self, value: BaseModel | Mapping[str, Any], *, indent: int | None = 1, end: str = "\n"
    ) -> None:
        """Write a JSON value followed by `end`; on one line if `indent` is None."""
        self._write(Masked(json_bytes(value, indent=indent) + end.encode()))

    def write_text(self, text: str) -> None:
        """Write a complete text; a secret that is split across two calls is not found."""
        self._write(Masked(redact(text).encode("utf-8", "backslashreplace")))

    def write_bytes(self, data: bytes) -> None:
        """Write arbitrary bytes, which must be complete for the same reason as a text."""
        self._write(Masked(redact_bytes(data)))

    def write_masked(self, data: Masked) -> None:
        """Write bytes that are known to contain no secret."""
        self._write(data)


def json_bytes(value: BaseModel | Mapping[str, Any], *, indent: int | None = None) -> Masked:
    """Serialize a value as JSON in UTF-8, with the secrets in its strings masked."""
    if isinstance(value, BaseModel) and indent is None and not hides_anything():
        # Takes a fifth of the time, and a run writes four records a question.
        with suppress(PydanticSerializationError):
            return Masked(value.model_dump_json().encode())
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    masked = redact_values(plain)
    try:
        return Masked(json.dumps(masked, indent=indent, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        # A daemon may send half of a surrogate pair: not UTF-8 text, but valid JSON if escaped.
        return Masked(json.dumps(masked, indent=indent).encode())


def copy_written(source: Path, target: Path) -> None:
    """Copy a file that a sink has written: it holds no secret.

    Raises:
        ResultsError: if it cannot be written (`results_unwritable`).
        OSError: if it cannot be read.
    """
    with source.open("rb") as file, replacing(target) as copy:
        for line in file:
            copy.write_masked(Masked(line))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file with secrets masked, faster than `replacing` but neither atomic nor synced.

    Raises:
        ResultsError: if it cannot be written (`results_unwritable`).
    """
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(redact_bytes(data))
    except OSError as error:
        raise unwritable(path, error) from error


def redact_file(path: Path) -> None:
    """Mask the secrets in a file that another program wrote, in constant memory.

    Raises:
        ResultsError: if it cannot be written (`results_unwritable`).
    """
    if path.is_file():
        with path.open("rb") as file:
            has_secrets = any(MASK.encode() in piece for piece in redact_stream(file))
        if has_secrets:
            with path.open("rb") as file, _replacing(path) as clean:
                clean.writelines(redact_stream(file))


@contextmanager
def replacing(target: Path, *, durable: bool = True) -> Iterator[Sink]:
    """Write a file atomically: it appears under its name complete or not at all.

    Args:
        target: the file, which is replaced if it exists.
        durable: whether it must outlive a power failure; syncing takes milliseconds, which is too
            long for a file that can be made again and whose reader notices damage.

    Raises:
        ResultsError: if it cannot be written (`results_unwritable`).
    """
    with _replacing(target, durable=durable) as file:
        yield Sink(file.write)


@contextmanager
def device(path: Path) -> Iterator[Sink]:
    """Write to an existing device or pipe.

    Raises:
        ResultsError: if it cannot be written (`results_unwritable`).
    """
    try:
        # Buffered, because a write to a raw file may be partial if a signal interrupts it.
        with path.open("wb") as file:
            yield Sink(file.write)
    except OSError as error:
        raise unwritable(path, error) from error


@contextmanager
def _replacing(target: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    if target.name == "-":
        # A user who types it means standard output, and would have to type ./- to remove the file.
        raise unwritable(target, OSError(errno.EINVAL, "- is no file name here"))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target.parent.absolute())
        with temporary.open("xb") as file:
            _lock(file)
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            # Before the file is closed, which releases its lock.
            temporary.replace(target)
    except OSError as error:
        raise unwritable(target, error) from error
    finally:
        # Where the folder cannot exist this fails too, and the first error says why.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@cache
def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of killed writers, once per folder.

    A writer holds a lock on its file, which the kernel releases when the process ends. A lock is
    better evidence than a process id, which may have been reused, and which means nothing if other
    machines or containers share the folder. The minimum age covers the moment between the creation
    of a file and its lock.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) is None:
                continue
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < _LOCKED_SECONDS:
                    continue
                # Opened for writing, because a lock on a network file system requires it. If there
                # are no locks, this fails and the file stays.
                descriptor = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    Path(entry.path).unlink()
                finally:
                    os.close(descriptor)


def _lock(file: IO[bytes]) -> None:
    """Mark the writer as alive for other processes, if the file system supports locks."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unwritable(path: Path, error: OSError) -> ResultsError:
    """The error to raise for a file that cannot be written."""
    return ResultsError(
        f"cannot write {path}: {error.strerror}",
        code="results_unwritable",
        hint="free space, or choose another place; a journal of the run has what was measured",
    )
