"""The parameters of a search: the effective mode, and the contract's defaults."""

from dataclasses import dataclass
from typing import Any

from memoryd.api.bodies import Recency, RetrievalRequest, Temporal, Tuning
from memoryd.rank.rank import Kernel

_RERANK_TOP_N = 20


@dataclass(frozen=True, slots=True)
class Plan:
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
    def of(cls, mode: str, request: RetrievalRequest, top_k: int) -> "Plan":
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


def applied_tuning(request: RetrievalRequest, plan: Plan) -> dict[str, Any]:
    """The requested values that the search applied."""
    if request.tuning is None or plan.mode == "bm25":
        return {}
    used = {"kernel"}
    if plan.mode != "semantic":
        used |= {"recency", "temporal", "fusion", "rrf_k" if plan.fusion == "rrf" else "alpha"}
        used |= set() if request.candidate_k else {"pool_factor", "pool_floor"}
    return request.tuning.model_dump(by_alias=True, exclude_none=True, include=used)
