"""Profile `core`: brains, ingest, search."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from memconform.contract.terms import terms
from memconform.contract.wire import Closed, Mode, Request, Response


class Health(Response):
    ok: bool


class Version(Response):
    name: str
    version: str
    contract: str
    run_id: str | None = None


BRAIN_ID_PATTERN = r"^[A-Za-z0-9._-]{1,128}$"
BrainId = Annotated[str, StringConstraints(pattern=BRAIN_ID_PATTERN)]


class CreateBrain(Request):
    brain_id: BrainId
    description: str | None = None


class Brain(Response):
    """One brain's counts; `pending` documents are stored but not yet searchable."""

    brain_id: str
    description: str | None = None
    documents: int = Field(ge=0)
    chunks: int = Field(ge=0)
    vectors: int = Field(ge=0)
    pending: int = Field(ge=0)


class BrainItem(Response):
    brain_id: str


class Brains(Response):
    items: list[BrainItem]


class IngestFile(Request):
    path: str = Field(min_length=1)
    content_type: str
    content_base64: str = Field(json_schema_extra={"contentEncoding": "base64"})
    title: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class IngestBatch(Request):
    documents: list[IngestFile] = Field(min_length=1, max_length=1024)


class Ingested(Response):
    document_id: str
    path: str
    chunk_count: int = Field(ge=0)
    bytes: int = Field(ge=0)
    took_ms: float = Field(ge=0)


class IngestedBatch(Response):
    items: list[Ingested]
    took_ms: float = Field(ge=0)


class Filters(Closed):
    """All that are given must hold (core.filter.and)."""

    path_prefix: str | None = None
    paths: list[str] | None = None
    tags: list[str] | None = None
    session_ids: list[str] | None = None
    scope: Literal["global", "project", "raw"] | None = None
    project: str | None = None


class Tuning(Closed):
    """Wishes; a daemon repeats in `trace.tuning` those it went by (core.tuning)."""

    fusion: Literal["minmax", "rrf"] | None = None
    alpha: float | None = Field(default=None, ge=0, le=1)
    rrf_k: int | None = Field(default=None, ge=1, le=10_000)
    pool_factor: int | None = Field(default=None, ge=1, le=1_000)
    pool_floor: int | None = Field(default=None, ge=1, le=10_000)
    recency: Any = None
    temporal: Any = None


class RetrievalParams(Request):
    """What search and ask have in common; 0 leaves a number to the daemon."""

    mode: Mode = Mode.AUTO
    question_date: str | None = Field(
        default=None,
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9:]{8}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2}))?$",
    )
    candidate_k: int | None = Field(default=None, ge=0, le=10_000)
    rerank_top_n: int | None = Field(default=None, ge=0, le=1_000)
    filters: Filters | None = None
    tuning: Tuning | None = None


DEEPEST = 1_000
"""The largest topK."""


class SearchRequest(RetrievalParams):
    query: str = Field(min_length=1)
    top_k: int = Field(default=10, ge=1, le=DEEPEST)


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


_VECTOR_MODES = (Mode.SEMANTIC, Mode.HYBRID, Mode.HYBRID_RERANK)


def trace_fault(trace: Trace, requested: Mode) -> str | None:
    """What a trace says that contradicts the request or itself."""
    effective = trace.effective_mode
    if trace.requested_mode != requested:
        return f"requestedMode is {trace.requested_mode!r}, {requested.value} was asked for"
    if effective is Mode.AUTO:
        return "effectiveMode is auto, which is not a search mode"
    if trace.fell_back_to_bm25 and effective is not Mode.BM25:
        return f"fellBackToBm25 beside effectiveMode {effective.value}"
    if effective in _VECTOR_MODES and not trace.embedder_used:
        return f"effectiveMode {effective.value} without an embedder"
    if effective is Mode.HYBRID_RERANK and not trace.reranked:
        return "effectiveMode hybrid-rerank, and yet not reranked"
    return None


def ranks_all(effective: Mode, query: str) -> bool:
    """Whether a search without filters ranks every chunk: by vectors, for a query with terms."""
    return effective in _VECTOR_MODES and bool(terms(query))


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
            return f"chunk {chunk.chunk_id} was returned twice"
        seen.add(chunk.chunk_id)
        if not chunk.text and not chunk.summary:
            return f"chunk {index} has neither text nor summary"
        if index and chunk.score > chunks[index - 1].score:
            return f"the score rises from chunk {index - 1} to chunk {index}"
    return None
