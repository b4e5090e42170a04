"""Chunks as a response returns them."""

from typing import Any

from memoryd.chunk import document_id
from memoryd.index.index import Index
from memoryd.rank.rank import Hit


def order(chunk: dict[str, Any]) -> tuple[float, bytes, int]:
    return -chunk["score"], chunk["path"].encode(), int(chunk["chunkId"].rpartition("#")[2])


def chunk_of(index: Index, hit: Hit) -> dict[str, Any]:
    stored = index.chunk(hit.slot)
    document = document_id(stored.path)
    chunk = {
        "chunkId": f"{document}#{stored.ordinal}",
        "documentId": document,
        "path": stored.path,
        "score": hit.score,
        "text": stored.text,
    }
    if stored.title is not None:
        chunk["title"] = stored.title
    if stored.metadata:
        chunk["metadata"] = stored.metadata
    return chunk
