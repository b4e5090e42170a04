"""Retrieval: the best chunks for a query, with a trace of how they were found."""

import time
from dataclasses import dataclass
from typing import Any

from anyio import from_thread

from memoryd.api.bodies import FilterBody, RetrievalRequest
from memoryd.brain.brain import Brain
from memoryd.embed.embed import Embedder, Vector
from memoryd.index.filter import Filters
from memoryd.index.index import Index
from memoryd.rank.dates import by_date, document_date
from memoryd.rank.fuse import fuse_minmax, fuse_rrf
from memoryd.rank.rank import Hit, round_score
from memoryd.rerank.rerank import Reranker
from memoryd.retrieve.chunk import chunk_of, order
from memoryd.retrieve.plan import Plan, applied_tuning
from memoryd.text.terms import query_terms

_SCOPES = {"global": "memory/global/", "project": "memory/project/", "raw": "raw/"}


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    chunks: list[dict[str, Any]]
    trace: dict[str, Any]


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
        plan = Plan.of(self._effective(request.mode, brain.embedder), request, top_k)
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
            trace["tuning"] = applied_tuning(request, plan)
        return RetrievalResult(chunks, trace)

    def _effective(self, mode: str, embedder: Embedder | None) -> str:
        if mode == "bm25" or embedder is None:
            return "bm25"
        if mode == "hybrid-rerank" and self.reranker is not None:
            return mode
        return "semantic" if mode == "semantic" else "hybrid"

    def _chunks(
        self, brain: Brain, query: str, filters: Filters, plan: Plan
    ) -> list[dict[str, Any]]:
        if not query_terms(query):
            return []
        vector = None
        # Embed before the index is locked: a slow service must not delay other requests.
        if plan.mode != "bm25" and brain.embedder is not None:
            [vector] = brain.embedder.embed([self.query_prefix + query])

        def search(index: Index) -> list[dict[str, Any]]:
            return [chunk_of(index, hit) for hit in _rank(index, query, vector, filters, plan)]

        chunks = brain.query_index(search)
        if plan.mode == "hybrid-rerank" and self.reranker is not None and chunks:
            chunks = self._rerank(self.reranker, query, chunks, plan)
        return chunks[: plan.top_k]

    def _rerank(
        self, reranker: Reranker, query: str, chunks: list[dict[str, Any]], plan: Plan
    ) -> list[dict[str, Any]]:
        head, tail = chunks[: plan.rerank_top_n], chunks[plan.rerank_top_n :]
        scores = [round_score(s) for s in from_thread.run(reranker.scores, query, head)]
        scored = [chunk | {"score": s} for chunk, s in zip(head, scores, strict=True)]
        below = min(scores) - 2
        return sorted(scored, key=order) + [
            chunk | {"score": round_score(below + chunk["score"])} for chunk in tail
        ]


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
    index: Index, query: str, vector: Vector | None, filters: Filters, plan: Plan
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
