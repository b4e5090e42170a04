"""The documents of a seeded brain as they were sent; returned chunks are verified against them."""

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

_CACHED_CUTS = 64
"""Documents whose chunks are cached: cutting 8 MiB takes 9 ms and yields a thousand chunks each."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """Where a document's content is in the file, and how it was acknowledged."""

    start: int
    end: int
    document_id: str | None
    chunk_count: int | None


class IngestedDocuments:
    """The ingested documents, stored in an unnamed file so that a corpus may exceed memory."""

    def __init__(self, *, is_exact: bool = True) -> None:
        """Create it empty; without `is_exact`, a daemon may return other texts than it was sent."""
        self._is_exact = is_exact
        self._file = tempfile.TemporaryFile(prefix="memconform-")  # noqa: SIM115 - closed below
        self._extents: dict[str, _Extent] = {}
        self._size = 0
        self._map: mmap.mmap | None = None
        self._cuts: dict[_Extent, frozenset[bytes]] = {}

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

    def add(self, document: Document, acknowledged: Ingested | None) -> None:
        """Store a document with the id and chunk count that the daemon acknowledged.

        Both are unknown if it was not acknowledged, because it was stored by its path or as a file.
        """
        self._file.write(document.content)
        start, self._size = self._size, self._size + len(document.content)
        self._extents[document.path] = _Extent(
            start,
            self._size,
            acknowledged.document_id if acknowledged else None,
            acknowledged.chunk_count if acknowledged else None,
        )
        self._map = None

    def __len__(self) -> int:
        return len(self._extents)

    @property
    def paths(self) -> list[str]:
        """Paths in the order of ingestion."""
        return list(self._extents)

    @property
    def size(self) -> int:
        """The size of all contents in bytes."""
        return self._size

    def chunk_count(self, path: str) -> int | None:
        """The number of chunks that the daemon acknowledged for a document; None if unknown."""
        return self._extents[path].chunk_count

    def document(self, path: str) -> Document:
        """Read one document; its content type and metadata are not stored."""
        extent = self._extents[path]
        return Document(path, self._bytes()[extent.start : extent.end], "")

    def documents(self) -> Iterator[Document]:
        """Read every document in the order of ingestion."""
        return map(self.document, self._extents)

    def require_own(self, chunks: Sequence[Chunk]) -> None:
        """Verify the chunks of a response against their documents (core.search.text).

        For a daemon that cuts texts in its own way, any exact part of the document is accepted as
        a chunk; for one that may rewrite them, any text.

        Raises:
            ContractViolatedError: `foreign_chunk` if the document was never ingested, or has more
                chunks in the response than were acknowledged; `foreign_text` if a chunk's text is
                not a chunk of the document, or its documentId is not the acknowledged one.
        """
        for path, count in Counter(chunk.path for chunk in chunks).items():
            extent = self._extents.get(path)
            if extent is None:
                raise ContractViolatedError(
                    "foreign_chunk",
                    f"{path or 'a text of no document'} was retrieved but never ingested",
                )
            if extent.chunk_count is not None and count > extent.chunk_count:
                raise ContractViolatedError(
                    "foreign_chunk",
                    f"{count} chunks of {path} were retrieved, but only {extent.chunk_count}"
                    " acknowledged",
                )
        for chunk in chunks if self._is_exact else ():
            self._require_text(chunk, self._extents[chunk.path])

    def _require_text(self, chunk: Chunk, extent: _Extent) -> None:
        ids = {chunk.document_id, extent.document_id} - {None}
        if len(ids) > 1:
            raise ContractViolatedError(
                "foreign_text",
                f"{chunk.path} was ingested as document {extent.document_id} but retrieved as"
                f" {chunk.document_id}",
            )
        if not self._is_chunk(chunk.text.encode("utf-8", "surrogatepass"), extent):
            raise ContractViolatedError(
                "foreign_text",
                f"the text retrieved for {chunk.path} is not a chunk of the ingested document",
                body=chunk.text,
            )

    def _is_chunk(self, text: bytes, extent: _Extent) -> bool:
        data = self._bytes()
        if not text or data.find(text, extent.start, extent.end) < 0:
            return False
        if extent.chunk_count is None:
            return bool(text.strip())
        if extent.chunk_count == 1:
            # A single chunk must be the whole text, however a daemon cuts; blank ends do not count.
            content = data[extent.start : extent.end]
            return text == content or _trimmed(text) in map(_trimmed, bodies(content))
        chunks = self._cut(extent)
        return text in chunks if chunks else bool(text.strip())

    def _cut(self, extent: _Extent) -> frozenset[bytes]:
        """The contract's chunks of a document; empty if the daemon cut it in another way."""
        if extent not in self._cuts:
            if len(self._cuts) >= _CACHED_CUTS:
                self._cuts.clear()
            content = self._bytes()[extent.start : extent.end]
            cuts = [cut(body) for body in bodies(content)]
            self._cuts[extent] = frozenset(
                chunk for chunks in cuts if len(chunks) == extent.chunk_count for chunk in chunks
            )
        return self._cuts[extent]

    def _bytes(self) -> mmap.mmap | bytes:
        if not self._size:
            return b""
        if self._map is None:
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ)
        return self._map


def _trimmed(text: bytes) -> str:
    """Decode `text` without outer whitespace and byte order mark, which a decoder may drop."""
    return text.decode("utf-8", "replace").strip().strip("\ufeff").strip()
