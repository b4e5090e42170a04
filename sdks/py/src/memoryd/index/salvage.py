"""Copying what is intact from a damaged index to a new one."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

from memoryd.index.seal import checksum, schema
from memoryd.text.terms import nfkc

_Row = tuple[Any, ...]

_Chunk = tuple[str, bytes | None]


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
