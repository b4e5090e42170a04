"""Search: modes, filters, pools, fusion, trace (core.search.*, core.mode.*, core.filter.*)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memconform.contract.wire import JsonValue
from memconform.oracle.bm25 import bm25, query_terms
from memconform.oracle.dates import seconds
from memconform.oracle.fusion import dated, inverse_l2, minmax, rounded, rrf
from memconform.oracle.predictions import ANYTHING, Exactly, Omittable
from memconform.oracle.store import Chunk, document_id
from memconform.oracle.vectors import cosine, embed

_SCOPES = {"global": "memory/global/", "project": "memory/project/", "raw": "raw/"}
_LEG_KEYS = {
    "bm25": (),
    "semantic": ("kernel",),
    "hybrid": ("kernel", "fusion", "recency", "temporal"),
}


@dataclass(frozen=True, slots=True)
class Providers:
    """The services that the daemon is configured with, and the optional rules that it follows."""

    embedder: bool = True
    """Whether it has the embedder `fh256-1`."""
    reader: bool = True
    """Whether it has the reader `fake`."""
    kernel: bool = True
    recency: bool = True
    temporal: bool = True

    def mode(self, requested: str) -> str:
        """The mode that is served; there is no reranker (core.mode.served)."""
        if requested in ("auto", "bm25") or not self.embedder:
            return "bm25"
        return "semantic" if requested == "semantic" else "hybrid"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A chunk and its rounded score."""

    chunk: Chunk
    score: float

    def body(self) -> dict[str, JsonValue]:
        """The chunk as responses have it."""
        indexed = self.chunk.document
        identifier = document_id(self.chunk.path)
        body: dict[str, JsonValue] = {
            "chunkId": f"{identifier}#{self.chunk.ordinal}",
            "documentId": identifier,
            "path": self.chunk.path,
            "score": self.score,
            "text": self.chunk.text,
            "metadata": Exactly(indexed.metadata) if indexed.metadata else Omittable({}),
        }
        if indexed.title is not None:
            body["title"] = indexed.title
        return body

    @property
    def title(self) -> str:
        """The title of a citation (the path if the chunk has none)."""
        return self.chunk.document.title or self.chunk.path


def search(
    chunks: Sequence[Chunk], request: Mapping[str, Any], query: str, top_k: int, has: Providers
) -> list[Ranked]:
    """Rank the chunks for a valid request."""
    if not query_terms(query):
        return []
    mode = has.mode(request.get("mode") or "auto")
    tuning = request.get("tuning") or {}
    allowed = [n for n, c in enumerate(chunks) if _matches(c, request.get("filters") or {})]
    if mode == "bm25":
        return _best(chunks, _keyword(chunks, query, allowed), top_k)
    if mode == "semantic":
        return _best(chunks, _semantic(chunks, query, allowed, tuning), top_k)
    pool = pool_size(request, top_k)
    keyword = _best(chunks, _keyword(chunks, query, allowed), pool)
    semantic = _best(chunks, _semantic(chunks, query, allowed, tuning), pool)
    number = {chunk.key: n for n, chunk in enumerate(chunks)}
    legs = [[number[hit.chunk.key] for hit in leg] for leg in (keyword, semantic)]
    if tuning.get("fusion") == "rrf":
        k = tuning.get("rrfK")
        fused = rrf(legs[0], legs[1], 5 if k is None else int(k))
    else:
        alpha = tuning.get("alpha")
        scores = [
            dict(zip(leg, [hit.score for hit in hits], strict=True))
            for leg, hits in zip(legs, (keyword, semantic), strict=True)
        ]
        fused = minmax(scores[0], scores[1], 0.5 if alpha is None else alpha)
    recency, temporal = tuning.get("recency"), tuning.get("temporal")
    if recency is not None or temporal is not None:
        dates = {n: _date(chunks[n]) for n in fused}
        fused = dated(fused, dates, recency, temporal)
    return _best(chunks, fused, top_k)


def pool_size(request: Mapping[str, Any], top_k: int) -> int:
    """How many chunks each leg contributes (core.rank.hybrid)."""
    tuning = request.get("tuning") or {}
    factor, floor = tuning.get("poolFactor"), tuning.get("poolFloor")
    size = max((5 if factor is None else factor) * top_k, 50 if floor is None else floor)
    return int(request.get("candidateK") or size)


def _best(chunks: Sequence[Chunk], scores: Mapping[int, float], limit: int) -> list[Ranked]:
    ranked = [Ranked(chunks[number], rounded(score)) for number, score in scores.items()]
    ranked.sort(key=lambda hit: (-hit.score, *hit.chunk.key))
    return ranked[:limit]


def _keyword(chunks: Sequence[Chunk], query: str, allowed: Sequence[int]) -> dict[int, float]:
    scores = bm25(query, [chunk.text for chunk in chunks])
    return {number: scores[number] for number in allowed if number in scores}


def _semantic(
    chunks: Sequence[Chunk], query: str, allowed: Sequence[int], tuning: Mapping[str, Any]
) -> dict[int, float]:
    vector = embed(query)
    scores = {n: cosine(vector, embed(chunks[n].text)) for n in allowed}
    if tuning.get("kernel") == "inverse-l2":
        return {n: inverse_l2(rounded(score)) for n, score in scores.items()}
    return scores


def _matches(chunk: Chunk, filters: Mapping[str, Any]) -> bool:
    """Whether all filters hold; a key that is null is missing."""
    document, path = chunk.document, chunk.path
    scope, project = filters.get("scope"), filters.get("project")
    prefixes = [
        filters.get("pathPrefix"),
        None if scope is None else _SCOPES[scope],
        None if project is None else f"memory/project/{project}/",
    ]
    paths, tags, sessions = (filters.get(key) for key in ("paths", "tags", "sessionIds"))
    session = document.metadata.get("session_id")
    return (
        all(prefix is None or path.startswith(prefix) for prefix in prefixes)
        and (paths is None or path in paths)
        and (tags is None or not set(tags).isdisjoint(document.tags))
        and (sessions is None or (isinstance(session, str) and session in sessions))
    )


def _date(chunk: Chunk) -> int | None:
    date = chunk.document.metadata.get("date")
    return seconds(date) if isinstance(date, str) else None


def trace(request: Mapping[str, Any], top_k: int, has: Providers) -> dict[str, JsonValue]:
    """The trace of a search (core.mode.trace, core.tuning)."""
    requested = request.get("mode") or "auto"
    mode = has.mode(requested)
    used = used_tuning(request, mode)
    return {
        "requestedMode": requested,
        "effectiveMode": mode,
        "embedderUsed": mode != "bm25",
        "reranked": False,
        "fellBackToBm25": mode == "bm25" and requested not in ("auto", "bm25"),
        # A leg's pool is defined for hybrid only.
        "candidateK": pool_size(request, top_k) if mode == "hybrid" else ANYTHING,
        "tuning": Exactly(used) if used else Omittable({}),
    }


def used_tuning(request: Mapping[str, Any], mode: str) -> dict[str, JsonValue]:
    """The given values that a search in this mode uses."""
    tuning = {k: v for k, v in (request.get("tuning") or {}).items() if v is not None}
    used = set(_LEG_KEYS[mode])
    if mode == "hybrid":
        used.add("rrfK" if tuning.get("fusion") == "rrf" else "alpha")
        if not request.get("candidateK"):
            used |= {"poolFactor", "poolFloor"}
    return {key: value for key, value in tuning.items() if key in used}
