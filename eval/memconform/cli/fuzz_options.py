"""The command line of `fuzz`, typed."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FuzzOptions:
    """Flags of `fuzz`, under their own names."""

    sdk: tuple[str, ...]
    no_skip: bool
    env: tuple[str, ...]
    keep: bool
    examples: int
    seed: int | None
    output: Path
    json_file: str | None
    log_level: str
