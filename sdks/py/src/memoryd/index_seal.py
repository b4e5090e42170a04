"""Noticing damage anywhere in an index file, and keeping what is intact.

SQLite has no checksums: it notices a page that makes no sense, and not a letter that changed. So a
file that was closed properly has a seal, the digest of all of its bytes. One without its seal, or
with another digest, is not trusted: what it holds is copied, document by document, to a new file,
as long as the checksum that each document was indexed with is right. The terms are computed again.
"""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib import resources
from itertools import count
from pathlib import Path
from typing import Any

from memoryd.text import nfkc

_Row = tuple[Any, ...]
_Chunk = tuple[str, bytes | None]

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
    return resources.files("memoryd").joinpath("schema.sql").read_text()


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


def salvage(file: Path, made_by: str) -> None:
    """Replace `file` by a new one with those of its documents that are intact.

    Raises:
        sqlite3.OperationalError: if there is no room for it.
    """
    new = Path(f"{file}.new")
    new.unlink(missing_ok=True)
    with closing(sqlite3.connect(new)) as target:
        target.execute("PRAGMA journal_mode = OFF")
        target.execute("PRAGMA synchronous = OFF")
        target.executescript(schema())
        target.execute("INSERT INTO settings VALUES ('made_by', ?)", (made_by,))
        ids = count(1)
        for row, chunks in _intact_documents(file, made_by):
            target.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            for ordinal, (text, vector) in enumerate(chunks):
                id_ = next(ids)
                values = (id_, row[0], ordinal, text, vector)
                target.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", values)
                terms = (id_, nfkc(text))
                target.execute("INSERT INTO chunk_terms(rowid, text) VALUES (?, ?)", terms)
        target.commit()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    new.rename(file)


def _intact_documents(file: Path, made_by: str) -> Iterator[tuple[_Row, list[_Chunk]]]:
    with closing(sqlite3.connect(file)) as source:
        # A text that is not UTF-8 any more must not end the salvage.
        source.text_factory = bytes
        for row in _rows_until_damage(source):
            with suppress(sqlite3.DatabaseError, UnicodeDecodeError, AttributeError):
                path = row[0].decode()
                chunks = source.execute(
                    "SELECT ordinal, text, vector FROM chunks WHERE path = ? ORDER BY ordinal",
                    (path,),
                ).fetchall()
                in_order = [ordinal for ordinal, _, _ in chunks] == list(range(len(chunks)))
                values = [value for _, *content in chunks for value in content]
                if in_order and row[-1].decode() == checksum(made_by, *row[:-1], *values):
                    fields = tuple(None if field is None else field.decode() for field in row)
                    yield fields, [(text.decode(), vector) for _, text, vector in chunks]


def _rows_until_damage(source: sqlite3.Connection) -> Iterator[_Row]:
    with suppress(sqlite3.DatabaseError):
        yield from source.execute(
            "SELECT path, stamp, title, session_id, tags, metadata, checksum FROM documents"
        )


def _seal_of(file: Path) -> Path:
    return Path(f"{file}.seal")


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
