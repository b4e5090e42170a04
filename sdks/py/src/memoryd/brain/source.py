"""Preparing documents for the index: front matter, chunks and vectors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from memoryd import frontmatter
from memoryd.chunk import chunk
from memoryd.embed.embed import Embedder
from memoryd.files.tree import Document
from memoryd.index.index import IndexedDocument
from memoryd.wire import exact_json


def prepare(documents: Mapping[str, Document], embedder: Embedder | None) -> list[IndexedDocument]:
    """Chunk and embed `documents`, all chunks in one call.

    Raises:
        UpstreamError: if the embedder fails.
    """
    indexed = [_read(path, document) for path, document in documents.items()]
    if embedder is None:
        return indexed
    vectors = iter(embedder.embed([text for document in indexed for text in document.chunks]))
    return [replace(d, vectors=[next(vectors) for _ in d.chunks]) for d in indexed]


def _read(path: str, document: Document) -> IndexedDocument:
    sidecar = _parse_sidecar(document.sidecar)
    try:
        source = frontmatter.parse(document.content.decode())
    except UnicodeDecodeError:
        source = frontmatter.Document("")
    title = sidecar.get("title", source.metadata.get("title"))
    tags = sidecar.get("tags", source.metadata.get("tags"))
    return IndexedDocument(
        path=path,
        stamp="",
        title=title if isinstance(title, str) else None,
        tags=[tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
        metadata={**source.metadata, **(sidecar.get("metadata") or {})},
        chunks=chunk(source.text),
        vectors=None,
    )


def _parse_sidecar(sidecar: bytes | None) -> dict[str, Any]:
    """Decode a sidecar; one that is not an object, or nested too deep, is empty."""
    try:
        from_json(sidecar or b"", allow_inf_nan=False)
        loaded = exact_json.loads(sidecar or b"")
    except ValueError:
        return {}
    return loaded if isinstance(loaded, dict) and exact_json.are_finite(loaded) else {}
