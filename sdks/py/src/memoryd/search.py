"""Retrieval: the best chunks for a query, with a trace of how they were found."""

import time
from dataclasses import dataclass
from typing import Any

from anyio import from_thread

from memoryd.brain import Brain
from memoryd.chunking import document_id
from memoryd.dates import by_date, document_date
from memoryd.embedding import Embedder, Vector
from memoryd.index import Filters, Index
from memoryd.models import FilterBody, Recency, RetrievalRequest, Temporal, Tuning
from memoryd.ranking import Hit, Kernel, fuse_minmax, fuse_rrf, round_score
from memoryd.reranking import Reranker
from memoryd.text import query_terms

_RERANK_TOP_N = 20

_SCOPES = {"global": "memory/global/", "project": "memory/project/", "raw": "raw/"}


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    chunks: list[dict[str, Any]]
    trace: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The parameters of a search: the effective mode, and the contract's defaults."""

    mode: str
    top_k: int
    fusion: str
    alpha: float
    rrf_k: int
    pool: int
    kernel: Kernel
    recency: Recency | None
    temporal: Temporal | None
    rerank_top_n: int

    @property
    def limit(self) -> int:
        """How many hits the ranking must return."""
        reranks = self.mode == "hybrid-rerank"
        return max(self.top_k, self.rerank_top_n) if reranks else self.top_k

    @classmethod
    def of(cls, mode: str, request: RetrievalRequest, top_k: int) -> "_Plan":
        tuning = request.tuning or Tuning()
        factor = 5 if tuning.pool_factor is None else tuning.pool_factor
        floor = 50 if tuning.pool_floor is None else tuning.pool_floor
        return cls(
            mode=mode,
            top_k=top_k,
            fusion=tuning.fusion or "minmax",
            alpha=0.5 if tuning.alpha is None else tuning.alpha,
            rrf_k=5 if tuning.rrf_k is None else tuning.rrf_k,
            pool=request.candidate_k or max(factor * top_k, floor),
            kernel=tuning.kernel or "cosine",
            recency=tuning.recency,
            temporal=tuning.temporal,
            rerank_top_n=request.rerank_top_n or _RERANK_TOP_N,
        )


@dataclass(frozen=True, slots=True)
class Retriever:
    """Searches brains with the configured embedder and reranker."""

    query_prefix: str = ""
    reranker: Reranker | None = None

    def retrieve(
        self, brain: Brain, query: str, top_k: int, request: RetrievalRequest
    ) -> RetrievalResult:
        """The best `top_k` chunks, in the requested mode or the one that it falls back to.

        Call it from a worker thread.

        Raises:
            UpstreamError: if the embedder or the reranker fails.
            Problem: `not_found` if the brain was deleted.
        """
        started = time.perf_counter()
        plan = _Plan.of(self._effective(request.mode, brain.embedder), request, top_k)
        chunks = self._chunks(brain, query, _filters(request.filters), plan)
        search_ms = (time.perf_counter() - started) * 1e3
        trace: dict[str, Any] = {
            "requestedMode": request.mode,
            "effectiveMode": plan.mode,
            "embedderUsed": plan.mode != "bm25",
            "reranked": plan.mode == "hybrid-rerank",
            "fellBackToBm25": plan.mode == "bm25" and request.mode not in ("bm25", "auto"),
            "candidateK": plan.pool,
            "searchMs": round(search_ms, 3),
        }
        if plan.mode == "hybrid-rerank" and self.reranker is not None:
            trace["rerankProvider"] = self.reranker.name
        if request.tuning is not None:
            trace["tuning"] = _applied_tuning(request, plan)
        return RetrievalResult(chunks, trace)

    def _effective(self, mode: str, embedder: Embedder | None) -> str:
        if mode == "bm25" or embedder is None:
            return "bm25"
        if mode == "hybrid-rerank" and self.reranker is not None:
            return mode
        return "semantic" if mode == "semantic" else "hybrid"

    def _chunks(
        self, brain: Brain, query: str, filters: Filters, plan: _Plan
    ) -> list[dict[str, Any]]:
        if not query_terms(query):
            return []
        vector = None
        # Embed before the index is locked: a slow service must not delay other requests.
        if plan.mode != "bm25" and brain.embedder is not None:
            [vector] = brain.embedder.embed([self.query_prefix + query])

        def search(index: Index) -> list[dict[str, Any]]:
            return [_chunk(index, hit) for hit in _rank(index, query, vector, filters, plan)]

        chunks = brain.query_index(search)
        if plan.mode == "hybrid-rerank" and self.reranker is not None and chunks:
            chunks = self._rerank(self.reranker, query, chunks, plan)
        return chunks[: plan.top_k]

    def _rerank(
        self, reranker: Reranker, query: str, chunks: list[dict[str, Any]], plan: _Plan
    ) -> list[dict[str, Any]]:
        head, tail = chunks[: plan.rerank_top_n], chunks[plan.rerank_top_n :]
        scores = [round_score(s) for s in from_thread.run(reranker.scores, query, head)]
        scored = [chunk | {"score": s} for chunk, s in zip(head, scores, strict=True)]
        below = min(scores) - 2
        return sorted(scored, key=_order) + [
            chunk | {"score": round_score(below + chunk["score"])} for chunk in tail
        ]


def _order(chunk: dict[str, Any]) -> tuple[float, bytes, int]:
    return -chunk["score"], chunk["path"].encode(), int(chunk["chunkId"].rpartition("#")[2])


def _applied_tuning(request: RetrievalRequest, plan: _Plan) -> dict[str, Any]:
    """The requested values that the search applied."""
    if request.tuning is None or plan.mode == "bm25":
        return {}
    used = {"kernel"}
    if plan.mode != "semantic":
        used |= {"recency", "temporal", "fusion", "rrf_k" if plan.fusion == "rrf" else "alpha"}
        used |= set() if request.candidate_k else {"pool_factor", "pool_floor"}
    return request.tuning.model_dump(by_alias=True, exclude_none=True, include=used)


def _filters(body: FilterBody | None) -> Filters:
    if body is None:
        return Filters()
    prefixes = [
        body.path_prefix,
        _SCOPES[body.scope] if body.scope else None,
        f"memory/project/{body.project}/" if body.project is not None else None,
    ]
    return Filters(
        prefixes=tuple(prefix for prefix in prefixes if prefix is not None),
        paths=body.paths,
        tags=body.tags,
        session_ids=body.session_ids,
    )


def _rank(
    index: Index, query: str, vector: Vector | None, filters: Filters, plan: _Plan
) -> list[Hit]:
    if vector is None:
        return index.keyword(query, filters, plan.top_k)
    if plan.mode == "semantic":
        return index.semantic(vector, filters, plan.top_k, plan.kernel)
    keyword = index.keyword(query, filters, plan.pool)
    semantic = index.semantic(vector, filters, plan.pool, plan.kernel)
    fused = (
        fuse_rrf(keyword, semantic, plan.rrf_k)
        if plan.fusion == "rrf"
        else fuse_minmax(keyword, semantic, plan.alpha)
    )
    if plan.recency is not None or plan.temporal is not None:
        fused = by_date(
            fused,
            lambda slot: document_date(index.chunk(slot).metadata),
            plan.recency,
            plan.temporal,
        )
    return sorted(fused, key=index.order)[: plan.limit]


def _chunk(index: Index, hit: Hit) -> dict[str, Any]:
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
