"""Append-only files of JSON lines that several people write."""

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from memconform.storage.sink import json_bytes, unwritable


def append_lines(path: Path, *records: BaseModel | dict[str, Any]) -> None:
    """Append one line per record, secrets masked, to a file that may exist; synced on return.

    A last line that is cut short is removed first: its writer was killed.

    Raises:
        ResultsError: if it cannot be written (`results_unwritable`).
    """
    data = b"".join(json_bytes(record) + b"\n" for record in records)
    try:
        with path.open("a+b") as file:
            # Some file systems have no locks; two people then take turns themselves.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            *_, last = file.read().split(b"\n")
            if is_cut(last):
                file.truncate(file.tell() - len(last))
            elif last:
                file.write(b"\n")
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unwritable(path, error) from error


def is_cut(line: bytes) -> bool:
    """Whether a last line, without its end, is not even JSON; empty ones are not cut."""
    try:
        json.loads(line or b"0")
    except (ValueError, RecursionError):
        return True
    return False
