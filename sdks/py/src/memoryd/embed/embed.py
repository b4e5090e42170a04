"""Embedders: they turn texts into float32 vectors of length 1."""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]


class Embedder(Protocol):
    name: str
    """Identifies the vectors: those of embedders with the same name are comparable."""
    model: str
    """The name of the model, whichever service has it."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One L2-normalized vector per text; the zero vector if there is nothing to embed.

        Raises:
            UpstreamError: if a service fails.
        """
        ...


def normalize(values: npt.ArrayLike) -> Vector:
    """Scale to length 1 in float64, then convert to float32."""
    vector = np.array(values, dtype=np.float64)
    # In the order of the dimensions, as the contract requires; `np.sum` adds pairwise.
    norm = math.sqrt(float(np.cumsum(vector * vector)[-1]))
    return (vector / norm if norm else vector).astype(np.float32)
