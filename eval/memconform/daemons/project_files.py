"""The files of a repository that somebody else wrote: bounded, without following links."""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

_LARGEST = 1 << 20
"""Bytes of the longest file that is read: a lock file may be longer, and nobody reads it here."""
_MOST = 20_000
"""Entries that are looked at, so that a home folder given by mistake takes a moment."""
_DEEPEST = 6
_NEVER = frozenset(
    (
        *("node_modules", "vendor", "target", "dist", "build", "obj", "out", "testdata"),
        *("venv", "env", "__pycache__", "test", "tests", "examples", "third_party"),
    )
)
"""Folders of other people's code, of outputs and of tests: no daemon to serve lies there."""
_PLAIN = re.compile(r"[A-Za-z0-9_@+][\w.@+-]*(?:/[A-Za-z0-9_@+][\w.@+-]*)*", re.ASCII)


def is_plain(path: str) -> bool:
    """Whether a name or path can stand in an argument or a glob and mean nothing but itself."""
    return _PLAIN.fullmatch(path) is not None


class ProjectFiles:
    """What a folder holds, by paths relative to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def paths(self) -> Sequence[str]:
        """Plain paths of the files, nearest to the root first."""
        return sorted(self._walk(), key=lambda path: (path.count("/"), path))

    def _walk(self) -> Iterator[str]:
        looked_at = 0
        for above, folders, files in os.walk(self.folder):
            place = Path(above).relative_to(self.folder)
            deep = len(place.parts) >= _DEEPEST
            folders[:] = [] if deep else [f for f in sorted(folders) if self._is_looked_into(f)]
            for name in files:
                looked_at += 1
                path = (place / name).as_posix()
                if is_plain(path):
                    yield path
            if looked_at > _MOST:
                return

    @staticmethod
    def _is_looked_into(name: str) -> bool:
        return not name.startswith(".") and name not in _NEVER

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        return (self.folder / path).is_file()

    def named(self, *suffixes: str) -> list[str]:
        """The paths that end so."""
        return [path for path in self.paths if path.endswith(suffixes)]

    def globs(self, suffix: str, below: str = "") -> tuple[str, ...]:
        """Globs for the files that end so, which leave out outputs and other people's code.

        Each matches a file, because one without a match is an error of a manifest.
        """
        inner = [path.removeprefix(below) for path in self.named(suffix) if path.startswith(below)]
        direct = [f"{below}*{suffix}"] if any("/" not in path for path in inner) else []
        folders = sorted({path.partition("/")[0] for path in inner if "/" in path})
        return (*direct, *(f"{below}{folder}/**/*{suffix}" for folder in folders))

    def text(self, path: str) -> str:
        """The text of a file; empty if it is missing, too long, or no regular file."""
        file = self.folder / path
        with suppress(OSError):
            if file.is_file() and file.stat().st_size <= _LARGEST:
                return file.read_text(encoding="utf-8-sig", errors="replace")
        return ""

    def toml(self, path: str) -> dict[str, Any]:
        """The tables of a file; empty if it is missing or invalid."""
        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(self.text(path))
        return {}

    def json(self, path: str) -> dict[str, Any]:
        """The object of a file; empty if it is missing, invalid, or another value."""
        with suppress(ValueError, RecursionError):
            value = json.loads(self.text(path))
            return value if isinstance(value, dict) else {}
        return {}


def table(value: object, *keys: str) -> dict[str, Any]:
    """A table within tables; empty if anything on the way is missing or something else."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
