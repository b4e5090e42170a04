"""The command line of `fuzz`, typed."""

import sys
from dataclasses import dataclass
from pathlib import Path

DEFAULT_EXAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class FuzzOptions:
    """Flags of `fuzz`, under their own names."""

    sdk: tuple[str, ...]
    no_skip: bool
    env: tuple[str, ...]
    keep: bool
    against: str | None
    examples: int | None
    seconds: float | None
    seed: int | None
    keep_going: bool
    ignore: tuple[str, ...]
    corpus: Path | None
    output: Path
    json_file: str | None
    quiet: bool
    log_level: str

    @property
    def most_examples(self) -> int:
        """How many programs to try; any number if only the time is limited."""
        if self.examples is not None:
            return self.examples
        return DEFAULT_EXAMPLES if self.seconds is None else sys.maxsize
