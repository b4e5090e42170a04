"""Who does the shards of a command: the value of `--executor`."""

import re
from dataclasses import dataclass
from typing import Final

_ADDRESS: Final = re.compile(
    r"dask://(?P<scheduler>[^/?]+:\d+)|dask:local(\?workers=(?P<workers>[1-9]\d{0,3}))?"
)


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """A scheduler that runs, or workers of this machine."""

    scheduler: str | None
    """HOST:PORT; None for workers of this machine."""
    workers: int = 1

    @classmethod
    def parse(cls, text: str) -> "ClusterAddress":
        """Read `dask://HOST:PORT` or `dask:local?workers=4`; raises ValueError for others."""
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is neither dask://HOST:PORT nor dask:local?workers=N")
        return cls(match["scheduler"], int(match["workers"] or 1))

    @property
    def is_local(self) -> bool:
        """Whether its workers see the files of this machine."""
        return self.scheduler is None
