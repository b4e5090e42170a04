"""Retrieval: which mode is served, which chunks come back, and the trace that says so."""

import time
from dataclasses import dataclass
from typing import Any

from memoryd.brains import Brain
from memoryd.chunking import document_id
from memoryd.embedding import Embedder
from memoryd.index import Filters, Index
from memoryd.models import FilterBody, Retrieval, Tuning
from memoryd.ranking import Hit, fuse_minmax, fuse_rrf
from memoryd.text import query_terms

_SCOPES = {"global": "memory/global/", "project": "memory/project/", "raw": "raw/"}


@dataclass(frozen=True, slots=True)
class Found:
    chunks: list[dict[str, Any]]
    trace: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to search: the mode that is served, and the contract's defaults filled in."""

    mode: str
    top_k: int
    fusion: str
    alpha: float
    rrf_k: int
    pool: int

    @classmethod
    def of(cls, mode: str, request: Retrieval, top_k: int) -> "_Plan":
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
        )


def retrieve(brain: Brain, query: str, top_k: int, request: Retrieval) -> Found:
    """The best `top_k` chunks in the mode that can be served, and the trace of how."""
    started = time.perf_counter()
    has_embedder = brain.embedder is not None
    effective = _effective(request.mode, has_embedder=has_embedder)
    plan = _Plan.of(effective, request, top_k)
    filters = _filters(request.filters)

    def search(index: Index) -> tuple[list[dict[str, Any]], float]:
        hits = _ranked(index, brain.embedder, query, filters, plan)
        search_ms = (time.perf_counter() - started) * 1e3
        return [_chunk(index, hit) for hit in hits], search_ms

    chunks, search_ms = brain.use(search)
    trace = {
        "requestedMode": request.mode,
        "effectiveMode": effective,
        "embedderUsed": effective != "bm25",
        "reranked": False,
        "fellBackToBm25": effective == "bm25" and request.mode not in ("bm25", "auto"),
        "candidateK": plan.pool,
        "searchMs": round(search_ms, 3),
    }
    if request.tuning is not None:
        trace["tuning"] = _honoured(request, plan)
    return Found(chunks, trace)


def _effective(mode: str, *, has_embedder: bool) -> str:
    """No reranker is configured here, so hybrid-rerank is served as hybrid, and says so."""
    if mode == "bm25" or not has_embedder:
        return "bm25"
    return "semantic" if mode == "semantic" else "hybrid"


def _honoured(request: Retrieval, plan: _Plan) -> dict[str, Any]:
    """The given values that this search went by; recency and temporal are not offered."""
    if request.tuning is None or plan.mode != "hybrid":
        return {}
    used = {"fusion", "rrf_k" if plan.fusion == "rrf" else "alpha"}
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


def _ranked(
    index: Index, embedder: Embedder | None, query: str, filters: Filters, plan: _Plan
) -> list[Hit]:
    if not query_terms(query):
        return []
    if plan.mode == "bm25" or embedder is None:
        return index.keyword(query, filters, plan.top_k)
    [vector] = embedder.embed([query])
    if plan.mode == "semantic":
        return index.semantic(vector, filters, plan.top_k)
    keyword = index.keyword(query, filters, plan.pool)
    semantic = index.semantic(vector, filters, plan.pool)
    fused = (
        fuse_rrf(keyword, semantic, plan.rrf_k)
        if plan.fusion == "rrf"
        else fuse_minmax(keyword, semantic, plan.alpha)
    )
    return sorted(fused, key=index.order)[: plan.top_k]


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
