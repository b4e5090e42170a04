"""The vectors of one brain, in memory, ranked by exact float64 dot products."""

import numpy as np
import numpy.typing as npt

from memoryd.embedding import Vector


class VectorTable:
    """float32 vectors by slot, stored one dimension a row.

    That layout lets a query add dimension after dimension over all slots at once: every dot
    product is summed in index order, as the contract asks, and none is left to BLAS, whose order
    of summation is its own.
    """

    def __init__(self) -> None:
        self._columns = np.zeros((0, 64), dtype=np.float32)

    @property
    def dimensions(self) -> int:
        """0 before the first vector."""
        return self._columns.shape[0]

    def put(self, slot: int, vector: Vector) -> None:
        if not self.dimensions:
            self._columns = np.zeros((len(vector), 64), dtype=np.float32)
        capacity = self._columns.shape[1]
        if slot >= capacity:
            grown = np.zeros((self._columns.shape[0], max(slot + 1, 2 * capacity)), np.float32)
            grown[:, :capacity] = self._columns
            self._columns = grown
        self._columns[:, slot] = vector

    def dots(self, query: Vector, size: int) -> npt.NDArray[np.float64]:
        """The dot product of `query` with each of the first `size` slots."""
        total = np.zeros(size, dtype=np.float64)
        for index in np.flatnonzero(query) if self.dimensions else ():
            total += np.float64(query[index]) * self._columns[index, :size].astype(np.float64)
        return total
