"""On which line of a TOML file a key is, which its parser does not say."""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path


class ManifestLines:
    """The lines of the keys and tables of a manifest."""

    def __init__(self, text: str, name: str = "sdk.toml") -> None:
        self.name = name
        self._lines = key_lines(text)

    @classmethod
    def of_file(cls, path: Path) -> "ManifestLines":
        """Those of a file, by its path as it was given; none if it cannot be read."""
        text = ""
        with suppress(OSError, UnicodeDecodeError):
            text = path.read_text(encoding="utf-8-sig")
        return cls(text, str(path))

    def has(self, *keys: str) -> bool:
        """Whether the file has this key or table."""
        return keys in self._lines

    def place(self, *keys: str) -> str:
        """`sdk.toml:7` for a key, or for the innermost of its tables; without line if none is."""
        for length in range(len(keys), 0, -1):
            if (line := self._lines.get(keys[:length])) is not None:
                return f"{self.name}:{line}"
        return self.name


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line, from 1, at which each key and table of a TOML text is first written.

    A statement is as many lines as it takes until they can be parsed by themselves. From a line
    that is invalid on, nothing is found.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    statement, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        statement += f"{line}\n"
        try:
            value = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if statement.lstrip().startswith("["):
            table = max(_paths(value), key=len, default=())
            lines.setdefault(table, start)
        for path in () if statement.lstrip().startswith("[") else _paths(value):
            lines.setdefault((*table, *path), start)
        statement, start = "", 0
    return lines


def _paths(value: object, above: Sequence[str] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of a statement, each behind those that contain it."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*above, key)
        yield from _paths(inner, (*above, key))
