"""Rerankers: they score how well chunks answer a query."""

from collections.abc import Sequence
from typing import Any, Protocol


class Reranker(Protocol):
    name: str

    async def scores(self, query: str, chunks: Sequence[dict[str, Any]]) -> list[float]:
        """One finite score per chunk, in order; raises UpstreamError if the service fails."""
        ...
