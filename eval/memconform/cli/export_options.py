"""What `report` exports of a bench, and the values of `--export`, typed."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Which results to export to which files."""

    results: tuple[str, ...]
    export: tuple[str, ...]
    data: Path | None
    output: Path


def split_export(text: str) -> tuple[str | None, str]:
    """Split `[FORMAT=]FILE`; an `=` behind a dot or a slash belongs to the file."""
    name, equals, file = text.partition("=")
    if equals and "/" not in name and "." not in name:
        return name, file
    return None, text
