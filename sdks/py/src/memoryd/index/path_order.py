"""Chunks in the order of their paths, in which a prefix is a range."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

import numpy as np

from memoryd.index.matrix import Slots


class PathOrder:
    """Texts are compared by code points, which is the order of their bytes in UTF-8."""

    def __init__(self, slots_by_path: Iterable[tuple[str, range]]) -> None:
        order = sorted(slots_by_path)
        self._paths = [path for path, slots in order for _ in slots]
        self._slots = np.array([slot for _, slots in order for slot in slots], dtype=np.int64)

    def starting_with(self, prefix: str) -> Slots:
        """The slots of all paths that start with `prefix`."""
        first = bisect_left(self._paths, prefix)
        end = bisect_right(self._paths, prefix, first, key=lambda path: path[: len(prefix)])
        slots: Slots = self._slots[first:end]
        return slots
