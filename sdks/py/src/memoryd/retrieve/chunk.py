"""Retrieved chunks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memoryd.chunk import document_id
from memoryd.index.index import Index
from memoryd.prompt.prompt import Note
from memoryd.rank.rank import Hit


@dataclass(frozen=True, slots=True)
class Chunk:
    document_id: str
    ordinal: int
    path: str
    score: float
    text: str
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def chunk_id(self) -> str:
        return f"{self.document_id}#{self.ordinal}"

    @property
    def note(self) -> Note:
        """The chunk as it is shown to language models."""
        date = self.metadata.get("date")
        return Note(self.path, self.text, self.title, date if isinstance(date, str) else None)


def order(chunk: Chunk) -> tuple[float, bytes, int]:
    return -chunk.score, chunk.path.encode(), chunk.ordinal


def notes_of(chunks: Sequence[Chunk]) -> list[Note]:
    return [chunk.note for chunk in chunks]


def chunk_of(index: Index, hit: Hit) -> Chunk:
    stored = index.chunk(hit.slot)
    return Chunk(
        document_id=document_id(stored.path),
        ordinal=stored.ordinal,
        path=stored.path,
        score=hit.score,
        text=stored.text,
        title=stored.title,
        metadata=stored.metadata,
    )
