"""Journals: what a command has measured so far, from which it continues after a kill.

Every line is JSON. The first one, the header, says whose journal it is; records follow as they come
up; a footer says that it was not cut short. Commands differ in their headers and records alone.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from memconform.errors import ResultsError, UsageError
from memconform.records import Record
from memconform.storage.result_file import WRITERS, require_schema, schema_name, schema_of
from memconform.storage.sink import json_bytes

_FSYNC_SECONDS = 0.5
_FOOTER = b'{"stage": "footer"'
ANOTHER_RUN = "name another run, or start a new one; a journal must stay as it was written"
_SHOWN = 60
"""Longest value of a setting that is shown, in characters."""

_Header = TypeVar("_Header", bound="JournalHeader")
_Record = TypeVar("_Record")


class JournalHeader(Record):
    """The first line of a journal; each command has its own."""

    stage: Literal["header"] = "header"
    schema_version: str


class JournalFile:
    """A journal that is being written.

    Each write reaches the kernel at once and the disk about half a second later.

    Raises:
        ResultsError: from any method, if the file already exists or cannot be written
            (`journal_unwritable`).
    """

    def __init__(self, path: Path, header: JournalHeader) -> None:
        self.path = path
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise self.unwritable(error) from error
        self._offset = 0
        """Byte offset of the next write."""
        self._dirty = threading.Event()
        self._closing = threading.Event()
        self._sync_error: OSError | None = None
        # In a thread, because an fsync takes some milliseconds and would show up in the latencies.
        self._syncer = threading.Thread(
            target=self._sync_periodically, name="journal-fsync", daemon=True
        )
        self._syncer.start()
        self.append(header)

    def append(self, *records: BaseModel | dict[str, Any]) -> list[int]:
        """Write one line per record, secrets masked, and return the byte offset of each line."""
        lines = [json_bytes(record) + b"\n" for record in records]
        data = b"".join(lines)
        try:
            if self._sync_error is not None:
                raise self._sync_error
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:
            # What follows, be it the footer alone, must not continue a line that is cut.
            with suppress(OSError):
                self._file.truncate(self._offset)
                self._file.seek(self._offset)
            raise self.unwritable(error) from error
        offsets = accumulate(map(len, lines[:-1]), initial=self._offset)
        self._offset += len(data)
        self._dirty.set()
        return list(offsets)

    def close(self, **footer: object) -> None:
        """Append a footer and close the file."""
        self._closing.set()
        self._syncer.join()
        try:
            self.append({"stage": "footer", **footer})
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self.unwritable(error) from error
        finally:
            self._file.close()

    def unwritable(self, error: OSError) -> ResultsError:
        """The error to raise for a failed write."""
        return ResultsError(
            f"{self.path}: {error.strerror}",
            code="journal_unwritable",
            hint="check free space and permissions of the results folder; all measurements"
            f" so far are in {self.path}",
        )

    def _sync_periodically(self) -> None:
        while not self._closing.wait(_FSYNC_SECONDS):
            if self._dirty.is_set():
                self._dirty.clear()
                try:
                    os.fsync(self._file.fileno())
                except OSError as error:
                    self._sync_error = error


def has_begun(path: Path) -> bool:
    """Whether a journal has a whole line; a program that was killed at once has left none.

    Raises:
        UsageError: `journal_unreadable`.
    """
    try:
        return next(_whole_lines(path), None) is not None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error), ANOTHER_RUN) from error


def read_header(path: Path, header: type[_Header], hint: str = ANOTHER_RUN) -> _Header:
    """Read a journal's header; `hint` says what to do about one that is damaged.

    Raises:
        UsageError: `result_unreadable` for a file of another command, `journal_unreadable` for
            anything else that has no such header.
    """
    try:
        _, line = next(_whole_lines(path))
        return header.model_validate_json(line)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error), hint) from error
    except (StopIteration, ValidationError) as error:
        raise _unlike(path, header.model_fields["schema_version"].default, hint) from error


def read_records(
    path: Path,
    records: TypeAdapter[_Record],
    *,
    prefixes: tuple[bytes, ...] = (),
    hint: str = ANOTHER_RUN,
) -> Iterator[tuple[int, _Record]]:
    """Yield the byte offset and the content of each record between header and footer.

    A last line without a line end is left out: the program was killed while writing it.

    Args:
        path: of the journal.
        records: their type.
        prefixes: of the lines that are read, for few of many; all if there are none.
        hint: what to do about a damaged line.

    Raises:
        UsageError: `journal_unreadable`, which names the line that is not a record.
    """
    try:
        for number, (offset, line) in enumerate(_whole_lines(path), start=1):
            if not offset or (prefixes and not line.startswith(prefixes)):
                continue
            try:
                yield offset, records.validate_json(line)
            except ValidationError as error:
                raise _unreadable(path, f"line {number} is not a record", hint) from error
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error), hint) from error


def require_same_settings(
    path: Path, earlier: Mapping[str, object], now: Mapping[str, object], hint: str
) -> None:
    """Raise UsageError `resume_mismatch`, which says what differs, unless settings are the same."""
    if differing := list(differences(earlier, now)):
        raise UsageError(
            f"{path.parent} was made with other settings: {'; '.join(differing)}",
            code="resume_mismatch",
            hint=hint,
        )


def differences(
    earlier: Mapping[str, object], now: Mapping[str, object], within: str = ""
) -> Iterator[str]:
    """Describe what differs, such as `repeat was 3, is 1`; long values are left out."""
    for name in dict.fromkeys((*now, *earlier)):
        before, after = earlier.get(name), now.get(name)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(before, after, f"{within}{name}.")
        elif before != after:
            is_long = max(len(str(before)), len(str(after))) > _SHOWN
            # What a digest is of, not the digest: `data`, `questions`.
            shown = name.removesuffix("_sha256")
            yield f"{within}{shown}" + ("" if is_long else f" was {before}, is {after}")


def _unreadable(path: Path, reason: str, hint: str) -> UsageError:
    return UsageError(f"{path} cannot be read: {reason}", code="journal_unreadable", hint=hint)


def _unlike(path: Path, expected: str, hint: str) -> UsageError:
    """The error for a file without the header of a schema; raises that of another command."""
    name = schema_name(expected)
    require_schema(name, path)
    with suppress(OSError, ValueError, RecursionError):
        if expected == (found := schema_of(path)):
            return _unreadable(path, "its header is damaged", hint)
        if schema_name(found) == name:
            return _unreadable(path, f"another version of memconform wrote it ({found})", hint)
    return _unreadable(path, f"it is not a journal of `memconform {WRITERS[name][0]}`", hint)


def _whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the byte offset and the content of each line before the footer, the header first."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n") or line.startswith(_FOOTER):
                return
            yield offset, line
            offset += len(line)
