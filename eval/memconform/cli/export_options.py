"""The command line of `report export`, typed."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Flags of `report export`, under their own names."""

    results: tuple[str, ...]
    export: tuple[str, ...]
    data: Path | None
    output: Path
