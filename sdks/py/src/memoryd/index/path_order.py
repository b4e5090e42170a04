"""Chunks in the order of their paths, in which a prefix is a range."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np

from memoryd.index.matrix import Slots


class PathOrder:
    def __init__(self, keys: Sequence[tuple[bytes, int] | None]) -> None:
        """`keys` are path and ordinal by slot; None for a free slot."""
        used = [slot for slot, key in enumerate(keys) if key is not None]
        paths = [key[0] for key in keys if key is not None]
        order = sorted(range(len(paths)), key=paths.__getitem__)
        self._paths = [paths[place] for place in order]
        self._slots = np.array(used, dtype=np.int64)[order]

    def starting_with(self, prefix: bytes) -> Slots:
        """The slots of all paths that start with `prefix`."""
        first = bisect_left(self._paths, prefix)
        end = bisect_right(self._paths, prefix, first, key=lambda path: path[: len(prefix)])
        slots: Slots = self._slots[first:end]
        return slots
