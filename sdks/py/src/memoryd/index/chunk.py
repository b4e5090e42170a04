"""The chunks of documents, as they are found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memoryd.chunk import document_id
from memoryd.prompt.prompt import Note
from memoryd.wire import exact_json


@dataclass(frozen=True, slots=True)
class Chunk:
    path: str
    ordinal: int
    score: float
    text: str
    title: str | None
    metadata_json: str
    """Which a search returns without parsing it."""

    @property
    def document_id(self) -> str:
        return document_id(self.path)

    @property
    def chunk_id(self) -> str:
        return f"{self.document_id}#{self.ordinal}"

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = exact_json.loads(self.metadata_json)
        return metadata

    @property
    def note(self) -> Note:
        """The chunk as it is shown to language models."""
        date = self.metadata.get("date")
        return Note(self.path, self.text, self.title, date if isinstance(date, str) else None)


def order(chunk: Chunk) -> tuple[float, bytes, int]:
    return -chunk.score, chunk.path.encode(), chunk.ordinal


def notes_of(chunks: Sequence[Chunk]) -> list[Note]:
    return [chunk.note for chunk in chunks]
