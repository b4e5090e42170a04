"""The vectors of one brain, in memory, for exact search."""

import numpy as np
import numpy.typing as npt

from memoryd.embed.embed import Vector

Slots = npt.NDArray[np.int64]

Vectors = npt.NDArray[np.float32]


class VectorMatrix:
    """float32 vectors of length 1 by slot, stored with one dimension per row.

    The contract requires sums in float64 and in the order of the dimensions. BLAS sums in float32
    and in its own order, many times faster; its sums only rule out slots that cannot be among the
    best. In this layout BLAS reads 100,000 vectors of 384 dimensions in 6 ms, against 9 ms with a
    vector per row.
    """

    def __init__(self) -> None:
        self._columns = np.zeros((0, 64), dtype=np.float32)

    @property
    def dimensions(self) -> int:
        """0 before the first vector."""
        return self._columns.shape[0]

    def put(self, first: int, rows: Vectors) -> None:
        """Put one vector a row, to `first` and the slots after it."""
        capacity, end = self._columns.shape[1], first + len(rows)
        if end > capacity or not self.dimensions:
            grown = np.zeros((rows.shape[1], max(end, 2 * capacity)), np.float32)
            grown[: self.dimensions, :capacity] = self._columns
            self._columns = grown
        self._columns[:, first:end] = rows.T

    def rows(self, slots: range) -> Vectors | None:
        """The vectors of `slots`, one a row; None if there are none."""
        if not self.dimensions or not slots:
            return None
        return self._columns[:, slots.start : slots.stop].T

    def keep(self, taken: npt.NDArray[np.bool_]) -> None:
        """Renumber the slots without those that are not taken."""
        if self.dimensions:
            self._columns = np.compress(taken, self._columns, axis=1)

    def contenders(self, query: Vector, slots: Slots, limit: int) -> Slots:
        """The `slots` that may be among the best `limit` by rounded dot product.

        `slots` must be in ascending order.

        A float32 sum of n products, in any order, is off by at most n·u / (1 - n·u) times the sum
        of their absolute values (u = 2^-24; Higham, Accuracy and Stability, 3.1), which for
        vectors of length 1 is at most 1. So `limit` slots have dot products above the sum in last
        place minus that error, and slots that may tie with them have sums above that minus the
        error again. 3e-8 covers the rounding to 1e-9 and to float32, and inverse-l2, which is
        rounded too and at its flattest a cosine of -1, where it changes by 1/18 of the cosine.
        """
        if len(slots) <= limit:
            return slots
        sums = (query @ self._columns[:, : slots[-1] + 1])[slots]
        last = np.partition(sums, len(sums) - limit)[len(sums) - limit]
        error = 1.01 * self.dimensions * 2.0**-24
        candidates: Slots = slots[sums >= np.float64(last) - 2 * error - 3e-8]
        return candidates

    def dots(self, query: Vector, slots: Slots) -> npt.NDArray[np.float64]:
        """The exact dot product of `query` with each of `slots`, in ascending order."""
        if not len(slots):
            return np.zeros(0)
        # Selecting many columns takes longer than summing all of them.
        many = len(slots) > self._columns.shape[1] // 16
        columns = self._columns[:, : slots[-1] + 1] if many else self._columns[:, slots]
        total = np.zeros(columns.shape[1], dtype=np.float64)
        for index in np.flatnonzero(query):
            total += np.float64(query[index]) * columns[index].astype(np.float64)
        return total[slots] if many else total
