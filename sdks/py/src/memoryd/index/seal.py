"""Noticing damage anywhere in an index file, and keeping what is intact.

SQLite has no checksums: it notices a page that makes no sense, and not a letter that changed. So a
file that was closed properly has a seal, the digest of all of its bytes. One without its seal, or
with another digest, is not trusted: what it holds is copied, document by document, to a new file,
as long as the checksum that each document was indexed with is right. The terms are computed again.
"""

import hashlib
import sqlite3
from contextlib import suppress
from importlib import resources
from pathlib import Path

_CORRUPT, _NOT_A_DATABASE, _ERROR = 11, 26, 1

SIDE_FILES = ("", "-wal", "-shm", ".seal", ".new")
"""What an index consists of: suffixes of its file."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite found that the content of the file is corrupt."""
    return _code(error) in (_CORRUPT, _NOT_A_DATABASE)


def is_unusable(error: sqlite3.Error) -> bool:
    """Whether the content of the file is at fault: it is corrupt, or lacks a table."""
    return is_damage(error) or _code(error) == _ERROR


def _code(error: sqlite3.Error) -> int:
    """The primary result code, without the extended bits."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def schema() -> str:
    """The statements that create the tables of an index."""
    return resources.files("memoryd.index").joinpath("schema.sql").read_text()


def checksum(made_by: str, *values: object) -> str:
    """The digest of what a document is indexed with: texts, bytes, None."""
    digest = hashlib.sha256()
    for value in (made_by, *values):
        data = value.encode() if isinstance(value, str) else value
        if isinstance(data, bytes):
            digest.update(b"%d:" % len(data))
            digest.update(data)
        else:
            digest.update(b"-")
    return digest.hexdigest()


def seal(file: Path) -> None:
    """Seal a file that was closed properly; without it, the file is only slower to open."""
    with suppress(OSError):
        _seal_of(file).write_text(_digest(file))


def break_seal(file: Path) -> bool:
    """Whether `file` is as it was when it was sealed. It can be written from now on."""
    try:
        expected = _seal_of(file).read_bytes()
    except FileNotFoundError:
        return False
    _seal_of(file).unlink()
    with suppress(FileNotFoundError):
        return not Path(f"{file}-wal").exists() and expected == _digest(file).encode()
    return False


def _seal_of(file: Path) -> Path:
    return Path(f"{file}.seal")


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
