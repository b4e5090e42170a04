"""Rerankers: they score how well notes answer a query."""

from collections.abc import Sequence
from typing import Protocol

from memoryd.prompt.prompt import Note


class Reranker(Protocol):
    name: str

    async def scores(self, query: str, notes: Sequence[Note]) -> list[float]:
        """One finite score per note, in order; raises UpstreamError if the service fails."""
        ...
