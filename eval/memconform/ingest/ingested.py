"""The documents of a seeded brain, as they were sent: what every returned chunk is held to."""

import mmap
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from memconform.client.failures import ContractViolatedError
from memconform.contract.chunking import bodies, cut
from memconform.contract.core import Chunk, Ingested
from memconform.ingest.documents import Document

_CUTS = 64
"""Documents whose chunks are kept: to cut 8 MiB takes 9 ms, and each has a thousand chunks."""


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    document_id: str
    chunk_count: int


class IngestedDocuments:
    """Keeps contents in a file without a name, so that a corpus may be larger than memory."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="memconform-")  # noqa: SIM115 - closed below
        self._places: dict[str, _Place] = {}
        self._size = 0
        self._map: mmap.mmap | None = None
        self._cuts: dict[_Place, frozenset[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._map is not None:
            self._map.close()
        self._file.close()

    def add(self, document: Document, acknowledged: Ingested) -> None:
        """Remember a document with what the daemon called it."""
        self._file.write(document.content)
        start, self._size = self._size, self._size + len(document.content)
        self._places[document.path] = _Place(
            start, self._size, acknowledged.document_id, acknowledged.chunk_count
        )
        self._map = None

    def __len__(self) -> int:
        return len(self._places)

    @property
    def paths(self) -> list[str]:
        """In the order of ingest."""
        return list(self._places)

    @property
    def size(self) -> int:
        """Bytes of all contents."""
        return self._size

    def chunk_count(self, path: str) -> int:
        """How many chunks a document was acknowledged to be made into."""
        return self._places[path].chunk_count

    def document(self, path: str) -> Document:
        place = self._places[path]
        return Document(path, self._bytes()[place.start : place.end], "")

    def documents(self) -> Iterator[Document]:
        """Every document, in the order of ingest; their content type is not kept."""
        return map(self.document, self._places)

    def require_own(self, chunks: Sequence[Chunk]) -> None:
        """Hold the chunks of a response to their documents (core.search.text).

        Raises:
            ContractViolatedError: `foreign_chunk` where no such document was ingested, or more
                chunks of it come than it was made into; `foreign_text` where a chunk's text is no
                chunk of that document, or its documentId is not the one that the ingest answered.
                Where a daemon cuts texts in its own way, any exact part of the document is taken
                for a chunk.
        """
        for path, count in Counter(chunk.path for chunk in chunks).items():
            place = self._places.get(path)
            if place is None:
                raise ContractViolatedError(
                    "foreign_chunk", f"{path} was retrieved, and never ingested"
                )
            if count > place.chunk_count:
                raise ContractViolatedError(
                    "foreign_chunk",
                    f"{path} came as {count} chunks, and was acknowledged as {place.chunk_count}",
                )
        for chunk in chunks:
            self._require_text(chunk, self._places[chunk.path])

    def _require_text(self, chunk: Chunk, place: _Place) -> None:
        if chunk.document_id != place.document_id:
            raise ContractViolatedError(
                "foreign_text",
                f"{chunk.path} was ingested as document {place.document_id}, and retrieved as"
                f" {chunk.document_id}",
            )
        if not self._is_chunk(chunk.text.encode("utf-8", "surrogatepass"), place):
            raise ContractViolatedError(
                "foreign_text",
                f"{chunk.path} was retrieved with a text that is not a chunk of the document that"
                " was ingested",
                body=chunk.text,
            )

    def _is_chunk(self, text: bytes, place: _Place) -> bool:
        data = self._bytes()
        if not text or data.find(text, place.start, place.end) < 0:
            return False
        if place.chunk_count == 1:
            # Of a single chunk nothing may be missing, however a daemon cuts; but for blank ends.
            content = data[place.start : place.end]
            return text == content or _trimmed(text) in map(_trimmed, bodies(content))
        known = self._cut(place)
        return text in known if known else bool(text.strip())

    def _cut(self, place: _Place) -> frozenset[bytes]:
        """The chunks of a document, if it was cut as the contract says; else none."""
        if place not in self._cuts:
            if len(self._cuts) >= _CUTS:
                self._cuts.clear()
            content = self._bytes()[place.start : place.end]
            chunks = [cut(body) for body in bodies(content)]
            self._cuts[place] = frozenset(
                chunk for each in chunks if len(each) == place.chunk_count for chunk in each
            )
        return self._cuts[place]

    def _bytes(self) -> mmap.mmap | bytes:
        if not self._size:
            return b""
        if self._map is None:
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ)
        return self._map


def _trimmed(text: bytes) -> str:
    """Without blanks and a byte order mark at its ends, which a daemon's decoder may drop."""
    return text.decode("utf-8", "replace").strip().strip("\ufeff").strip()
