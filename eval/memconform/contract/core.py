"""Profile `core`: brains, ingest, search."""

import re
import unicodedata
from typing import Any

from pydantic import Field

from memconform.contract.wire import Mode, Request, Response


class Health(Response):
    ok: bool


class Version(Response):
    name: str
    version: str
    contract: str
    run_id: str | None = None


class CreateBrain(Request):
    brain_id: str
    description: str | None = None


class Brain(Response):
    """One brain's counts; `pending` documents are stored but not yet searchable."""

    brain_id: str
    description: str | None = None
    documents: int = Field(ge=0)
    chunks: int = Field(ge=0)
    vectors: int = Field(ge=0)
    pending: int = Field(ge=0)


class IngestFile(Request):
    path: str
    content_type: str
    content_base64: str
    title: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class IngestBatch(Request):
    documents: list[IngestFile]


class Ingested(Response):
    document_id: str
    path: str
    chunk_count: int = Field(ge=0)
    bytes: int = Field(ge=0)
    took_ms: float = Field(ge=0)


class IngestedBatch(Response):
    items: list[Ingested]
    took_ms: float = Field(ge=0)


class Filters(Request):
    path_prefix: str | None = None
    paths: list[str] | None = None


class SearchRequest(Request):
    """`candidate_k` and `rerank_top_n` of 0 defer to the daemon and are not sent."""

    query: str
    top_k: int
    mode: Mode
    question_date: str | None = None
    candidate_k: int | None = None
    rerank_top_n: int | None = None
    filters: Filters | None = None


class Chunk(Response):
    chunk_id: str
    document_id: str
    path: str
    score: float
    text: str
    title: str | None = None
    summary: str | None = None
    metadata: dict[str, Any] | None = None


class Trace(Response):
    """How a search was made; `effective_mode` is the truth, whatever was asked for."""

    requested_mode: str
    effective_mode: Mode
    embedder_used: bool
    reranked: bool
    rerank_provider: str | None = None
    fell_back_to_bm25: bool = Field(alias="fellBackToBm25")
    candidate_k: int = Field(ge=0)
    search_ms: float = Field(ge=0)
    tuning: dict[str, Any] | None = None


class SearchResponse(Response):
    chunks: list[Chunk]
    took_ms: float = Field(ge=0)
    trace: Trace


_TERM = re.compile(r"[^\W_]{2}")
_VECTOR_MODES = (Mode.SEMANTIC, Mode.HYBRID, Mode.HYBRID_RERANK)


def trace_fault(trace: Trace, requested: Mode) -> str | None:
    """What a trace says that contradicts the request or itself."""
    effective = trace.effective_mode
    if trace.requested_mode != requested:
        return f"requestedMode is {trace.requested_mode!r}, {requested.value} was asked for"
    if effective is Mode.AUTO:
        return "effectiveMode is auto, which is no way to search"
    if trace.fell_back_to_bm25 and effective is not Mode.BM25:
        return f"fellBackToBm25 beside effectiveMode {effective.value}"
    if effective in _VECTOR_MODES and not trace.embedder_used:
        return f"effectiveMode {effective.value} without an embedder"
    if effective is Mode.HYBRID_RERANK and not trace.reranked:
        return "effectiveMode hybrid-rerank, and yet not reranked"
    return None


def ranks_all(effective: Mode, query: str) -> bool:
    """Whether a search without filters ranks every chunk: by vectors, for a query with terms."""
    return (
        effective in _VECTOR_MODES
        and _TERM.search(unicodedata.normalize("NFKC", query)) is not None
    )


def ranking_fault(chunks: list[Chunk], top_k: int, *, ranks_all: bool) -> str | None:
    """What breaks the rules of a ranking.

    Too many chunks, one twice, scores that rise, a chunk without text; or none at all where
    every chunk of a brain that is not empty is ranked.
    """
    if not chunks and ranks_all:
        return "no chunk, where the mode ranks them all"
    if len(chunks) > top_k:
        return f"{len(chunks)} chunks where topK is {top_k}"
    seen: set[str] = set()
    for index, chunk in enumerate(chunks):
        if chunk.chunk_id in seen:
            return f"chunk {chunk.chunk_id} is there twice"
        seen.add(chunk.chunk_id)
        if not chunk.text and not chunk.summary:
            return f"chunk {index} has neither text nor summary"
        if index and chunk.score > chunks[index - 1].score:
            return f"the score rises from chunk {index - 1} to chunk {index}"
    return None
