"""Retrieval: the best chunks for a query, with a trace of how they were found."""

import time
from dataclasses import dataclass, replace

from memoryd.brain.brain import Brain
from memoryd.embed.embed import Embedder, Vector
from memoryd.embed.featurehash import FEATURE_HASH
from memoryd.index.chunk import Chunk, notes_of, order
from memoryd.index.index import Index
from memoryd.rank.dates import by_date, document_date
from memoryd.rank.fuse import fuse_minmax, fuse_reciprocal
from memoryd.rank.rank import Hit, round_score
from memoryd.rerank.rerank import Reranker
from memoryd.retrieve.plan import Mode, Plan, RetrievalRequest, ServedMode, Tuning, applied_tuning
from memoryd.text.terms import query_terms
from memoryd.upstream import call_service


@dataclass(frozen=True, slots=True)
class Trace:
    """How the chunks were found."""

    requested_mode: Mode
    effective_mode: ServedMode
    embedder_used: bool
    reranked: bool
    rerank_provider: str | None
    fell_back_to_bm25: bool
    candidate_k: int
    search_ms: float
    tuning: Tuning | None
    """What was applied of the requested tuning; None if none was requested."""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    chunks: list[Chunk]
    trace: Trace


@dataclass(frozen=True, slots=True)
class Retriever:
    """Searches brains with the configured embedder and reranker."""

    query_prefix: str = ""
    reranker: Reranker | None = None

    def retrieve(self, brain: Brain, request: RetrievalRequest) -> RetrievalResult:
        """The best chunks, in the requested mode or the one that it falls back to.

        Call it from a worker thread.

        Raises:
            UpstreamError: if the embedder or the reranker fails.
            Problem: `not_found` if the brain was deleted.
        """
        started = time.perf_counter()
        plan, chunks = self._search(brain, request)
        reranker = self.reranker if plan.mode == "hybrid-rerank" else None
        chunks = self._reranked(request.query, chunks, plan)
        search_ms = (time.perf_counter() - started) * 1e3
        trace = Trace(
            requested_mode=request.mode,
            effective_mode=plan.mode,
            embedder_used=plan.compares,
            reranked=plan.mode == "hybrid-rerank",
            rerank_provider=None if reranker is None else reranker.name,
            fell_back_to_bm25=plan.mode == "bm25" and request.mode not in ("bm25", "auto"),
            candidate_k=plan.pool,
            search_ms=round(search_ms, 3),
            tuning=applied_tuning(request, plan) if request.tuning is not None else None,
        )
        return RetrievalResult(chunks, trace)

    def _plan(self, mode: Mode, request: RetrievalRequest, embedder: Embedder | None) -> Plan:
        served = self._effective(mode, embedder)
        compared_as = _auto(embedder) if served == "conversation" else served
        return Plan.of(served, request, compares=compared_as != "bm25")

    def _effective(self, mode: Mode, embedder: Embedder | None) -> ServedMode:
        if mode == "auto":
            return _auto(embedder)
        if mode == "conversation":
            return mode
        if mode == "bm25" or embedder is None:
            return "bm25"
        if mode == "hybrid-rerank" and self.reranker is not None:
            return mode
        return "semantic" if mode == "semantic" else "hybrid"

    def _search(self, brain: Brain, request: RetrievalRequest) -> tuple[Plan, list[Chunk]]:
        """What is found before any reranking, and how."""
        query, has_terms = request.query, bool(query_terms(request.query))
        plan = self._plan(request.mode, request, brain.embedder)
        vector = None
        # Embed before the index is locked: a slow service must not delay other requests.
        if has_terms and plan.compares and brain.embedder is not None:
            [vector] = brain.embedder.embed([self.query_prefix + query])

        def search(index: Index) -> tuple[Plan, list[Chunk]]:
            served = plan
            if plan.mode == "conversation" and not index.has_turns:
                served = self._plan("auto", request, brain.embedder)
            hits = _rank(index, request, vector, served) if has_terms else []
            return served, [index.chunk(*hit) for hit in hits]

        plan, chunks = brain.query_index(search)
        return plan, chunks

    def _reranked(self, query: str, chunks: list[Chunk], plan: Plan) -> list[Chunk]:
        if plan.mode == "hybrid-rerank" and self.reranker is not None and chunks:
            chunks = _rerank(self.reranker, query, chunks, plan.rerank_top_n)
        return chunks[: plan.top_k]


def _rerank(reranker: Reranker, query: str, chunks: list[Chunk], top_n: int) -> list[Chunk]:
    head, tail = chunks[:top_n], chunks[top_n:]
    scores = [round_score(s) for s in call_service(reranker.scores, query, notes_of(head))]
    scored = [replace(chunk, score=s) for chunk, s in zip(head, scores, strict=True)]
    below = min(scores) - 2
    return sorted(scored, key=order) + [
        replace(chunk, score=round_score(below + chunk.score)) for chunk in tail
    ]


def _auto(embedder: Embedder | None) -> ServedMode:
    return "bm25" if embedder is None or embedder.model == FEATURE_HASH else "hybrid"


def _rank(index: Index, request: RetrievalRequest, vector: Vector | None, plan: Plan) -> list[Hit]:
    query, filters = request.query, request.filters
    if plan.mode == "conversation":
        return index.conversation(query, vector, filters, plan.top_k)
    if vector is None:
        return index.keyword(query, filters, plan.top_k)
    if plan.mode == "semantic":
        return index.semantic(vector, filters, plan.top_k, plan.kernel)
    keyword = index.keyword(query, filters, plan.pool)
    semantic = index.semantic(vector, filters, plan.pool, plan.kernel)
    fused = (
        fuse_reciprocal(keyword, semantic, plan.rrf_k)
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
