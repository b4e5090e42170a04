"""Flags of the commands that show stored results."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Flags of the commands that show stored results."""

    results: tuple[str, ...]
    baseline: tuple[str, ...]
    output: Path
    file: str
