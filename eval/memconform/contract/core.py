"""Wire types of profile `core`: health, brains, ingest and search."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, StringConstraints
from pydantic.json_schema import SkipJsonSchema

from memconform.contract.terms import terms
from memconform.contract.wire import Closed, Mode, RankBy, Request, Response, Unknowable


class Health(Response):
    """Whether the daemon accepts requests."""

    ok: Unknowable[bool]


class Version(Response):
    """The daemon's name and version, and the version of the contract it implements."""

    name: Unknowable[str]
    version: str
    contract: Unknowable[str]
    run_id: str | None = None


BRAIN_ID_PATTERN = r"^[A-Za-z0-9._-]{1,128}$"
BrainId = Annotated[str, StringConstraints(pattern=BRAIN_ID_PATTERN)]


class CreateBrain(Request):
    """The body of a request to create a brain."""

    brain_id: BrainId
    description: str | None = None


Count = Annotated[int, Field(ge=0)]
Milliseconds = Annotated[float, Field(ge=0)]


class Brain(Response):
    """A brain and its counts; `pending` documents are stored but not yet searchable."""

    brain_id: str
    description: str | None = None
    documents: Unknowable[Count]
    chunks: Unknowable[Count]
    vectors: Unknowable[Count]
    pending: Unknowable[Count]


class BrainItem(Response):
    """A brain as an item of the list of brains."""

    brain_id: str


class Brains(Response):
    """The list of all brains."""

    items: list[BrainItem]


class IngestFile(Request):
    """A document to store and index."""

    path: str = Field(min_length=1)
    content_type: str
    content_base64: str = Field(json_schema_extra={"contentEncoding": "base64"})
    title: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class IngestBatch(Request):
    """Documents to store and index together."""

    documents: list[IngestFile] = Field(min_length=1, max_length=1024)


class Ingested(Response):
    """The acknowledgement of one ingested document."""

    document_id: Unknowable[str]
    path: str
    chunk_count: Unknowable[Count]
    bytes: Unknowable[Count]
    took_ms: Unknowable[Milliseconds]


class IngestedBatch(Response):
    """The acknowledgements of an ingested batch."""

    items: list[Ingested]
    took_ms: Unknowable[Milliseconds]


class Filters(Closed):
    """Conditions on documents; all that are present must hold (core.filter.and)."""

    path_prefix: str | None = None
    paths: list[str] | None = None
    tags: list[str] | None = None
    session_ids: list[str] | None = None
    scope: Literal["global", "project", "raw"] | None = None
    project: str | None = None


_DATE_OR_DATE_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9:]{8}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2}))?$"
)


class Recency(Closed):
    """Scores rise with the recency of documents (core.rank.recency)."""

    now: str = Field(pattern=_DATE_OR_DATE_TIME)
    relevance: float = Field(ge=0, le=1)
    weight: float = Field(ge=0, le=1, description="With relevance at most 1.")
    decay_days: float = Field(ge=1, le=36_500)


class Temporal(Closed):
    """Scores rise for documents that are dated near a target (core.rank.temporal)."""

    at: str = Field(pattern=_DATE_OR_DATE_TIME)
    tolerance_days: float = Field(ge=1, le=36_500)
    boost: float = Field(ge=0, le=1)


class Tuning(Closed):
    """Optional hints; a daemon echoes those it applied in `trace.tuning` (core.tuning)."""

    fusion: Literal["minmax", "rrf"] | None = None
    alpha: float | None = Field(default=None, ge=0, le=1)
    rrf_k: int | None = Field(default=None, ge=1, le=10_000)
    pool_factor: int | None = Field(default=None, ge=1, le=1_000)
    pool_floor: int | None = Field(default=None, ge=1, le=10_000)
    kernel: Literal["cosine", "inverse-l2"] | None = None
    recency: Recency | None = None
    temporal: Temporal | None = None


class RetrievalParams(Request):
    """Parameters shared by search and ask; 0 leaves a number to the daemon."""

    mode: Mode = Mode.AUTO
    question_date: str | None = Field(default=None, pattern=_DATE_OR_DATE_TIME)
    candidate_k: int | None = Field(default=None, ge=0, le=10_000)
    rerank_top_n: int | None = Field(default=None, ge=0, le=1_000)
    filters: Filters | None = None
    tuning: Tuning | None = None


DEEPEST = 1_000
"""Largest topK."""


class SearchRequest(RetrievalParams):
    """The body of a search request."""

    query: str = Field(min_length=1)
    top_k: int = Field(default=10, ge=1, le=DEEPEST)


class Chunk(Response):
    """A retrieved chunk and its score."""

    chunk_id: str
    document_id: Unknowable[str]
    path: str
    score: float
    text: str
    title: str | None = None
    summary: str | None = None
    metadata: dict[str, Any] | None = None


def _as_reason(value: object) -> object:
    """A reason that is no text says nothing, and one that is empty neither."""
    return value if isinstance(value, str) and value.strip() else None


class Trace(Response):
    """How a search was performed; `effective_mode` is the mode used, whatever was requested."""

    requested_mode: Unknowable[str]
    effective_mode: Unknowable[Mode]
    embedder_used: Unknowable[bool]
    reranked: Unknowable[bool]
    rerank_provider: str | None = None
    rerank_skip_reason: SkipJsonSchema[Annotated[str | None, BeforeValidator(_as_reason)]] = None
    """Why a search in mode hybrid-rerank was not reranked. The contract has no such key, because it
    has such a daemon serve hybrid; a run believes one that says it (`trace_fault`)."""
    vector_skip_reason: SkipJsonSchema[Annotated[str | None, BeforeValidator(_as_reason)]] = None
    """Why a search in a mode with vectors used none; whatever it is, that is another mode."""
    fell_back_to_bm25: Unknowable[bool] = Field(alias="fellBackToBm25")
    candidate_k: Unknowable[Count]
    search_ms: Unknowable[Milliseconds]
    tuning: dict[str, Any] | None = None


class Ranked(Response):
    """A message with ranked chunks, best first."""

    chunks: list[Chunk]
    _was_null: bool = PrivateAttr(default=False)

    @property
    def was_null(self) -> bool:
        """Whether the daemon sent null for the empty list (core.search.shape)."""
        return self._was_null

    def marked_null(self) -> Self:
        """Return this message, which the daemon sent with null for the empty list."""
        self._was_null = True
        return self


class SearchResponse(Ranked):
    """The ranked chunks of a search, best first, and how they were found."""

    took_ms: Unknowable[Milliseconds]
    trace: Trace


class SearchFault(str):
    """How a search contradicts its request or itself; `cause` has none of its values."""

    __slots__ = ("cause",)
    cause: str

    def __new__(cls, message: str, cause: str) -> Self:
        """Create a fault, which is its message."""
        fault = super().__new__(cls, message)
        fault.cause = cause
        return fault


_VECTOR_MODES = (Mode.SEMANTIC, Mode.HYBRID, Mode.HYBRID_RERANK)


RERANK_SKIPS = ("unanimity", "empty_candidates")
"""Reasons for which a daemon chose not to rerank. Any other may be a failure, such as `http 503`,
and is believed only if the dialect declares it."""


def trace_fault(
    trace: Trace, requested: Mode, rerank_skips: Sequence[str] = RERANK_SKIPS
) -> SearchFault | None:
    """Return how a trace contradicts the request or itself; None if it does not.

    A value that the daemon's dialect does not have contradicts nothing. `rerank_skips` are the
    reasons for which a search in mode hybrid-rerank need not have been reranked.
    """
    effective = trace.effective_mode
    if trace.requested_mode not in (None, requested):
        message = f"requestedMode is {trace.requested_mode!r}, but {requested.value} was requested"
        cause = "wrong value at trace.requestedMode"
        if trace.requested_mode in {mode.value for mode in Mode}:
            cause = f"trace.requestedMode is {trace.requested_mode}, expected {requested.value}"
        return SearchFault(message, cause)
    if effective is Mode.AUTO:
        return _contradiction("effectiveMode is auto, which is not a search mode")
    return None if effective is None else _mode_fault(trace, effective, rerank_skips)


def _mode_fault(trace: Trace, effective: Mode, rerank_skips: Sequence[str]) -> SearchFault | None:
    """Return how a trace contradicts the mode that it reports."""
    if trace.fell_back_to_bm25 and effective is not Mode.BM25:
        return _contradiction(f"fellBackToBm25 with effectiveMode {effective.value}")
    cause, reason = f"effectiveMode {effective.value} without", None
    if effective in _VECTOR_MODES and trace.embedder_used is False:
        cause, reason = f"{cause} an embedder", trace.vector_skip_reason
    elif (
        effective is Mode.HYBRID_RERANK
        and trace.reranked is False
        and trace.rerank_skip_reason not in rerank_skips
    ):
        cause, reason = f"{cause} reranking", trace.rerank_skip_reason
    else:
        return None
    return SearchFault(f"{cause}: {reason}" if reason else cause, cause)


def _contradiction(message: str) -> SearchFault:
    """A fault whose message names nothing but modes."""
    return SearchFault(message, message)


def ranks_all(trace: Trace, query: str) -> bool:
    """Whether an unfiltered search ranks every chunk: it uses vectors and the query has terms."""
    effective = trace.effective_mode
    compares = effective in _VECTOR_MODES or (
        effective is Mode.CONVERSATION and trace.embedder_used is True
    )
    return compares and bool(terms(query))


def score_rise(scores: Sequence[float]) -> SearchFault | None:
    """Return where the scores of a ranking rise (core.search.order); None if they never do."""
    for index in range(1, len(scores)):
        if scores[index] > scores[index - 1]:
            return SearchFault(
                f"the score rises from chunk {index - 1} to chunk {index}", "scores of chunks rise"
            )
    return None


NO_CHUNKS = "no chunks, although the mode ranks all of them"


def ranking_fault(
    chunks: Sequence[Chunk], top_k: int, *, ranks_all: bool, rank_by: RankBy = "score"
) -> SearchFault | None:
    """Return the first violation of the ranking rules; None if there is none.

    Violations are too many chunks, a duplicate chunk, a chunk without text, an empty ranking of a
    non-empty brain if `ranks_all`, and rising scores unless chunks are ranked by position.
    """
    if not chunks and ranks_all:
        return SearchFault(NO_CHUNKS, "chunks is empty")
    if len(chunks) > top_k:
        message = f"{len(chunks)} chunks, but topK is {top_k}"
        return SearchFault(message, "chunks has more items than topK")
    seen: set[str] = set()
    for index, chunk in enumerate(chunks):
        if chunk.chunk_id in seen:
            return SearchFault(
                f"chunk {chunk.chunk_id} was returned twice", "chunks has a chunk twice"
            )
        seen.add(chunk.chunk_id)
        if not chunk.text and not chunk.summary:
            return SearchFault(
                f"chunk {index} has neither text nor summary",
                "chunks.* has neither text nor summary",
            )
    return score_rise([chunk.score for chunk in chunks]) if rank_by == "score" else None
