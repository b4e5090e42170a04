"""Planning a search: what is requested, the effective mode, and the contract's defaults."""

from dataclasses import dataclass, field
from typing import Literal

from memoryd.index.filter import Filters
from memoryd.rank.dates import Recency, Temporal
from memoryd.rank.rank import Fusion, Kernel

_RERANK_TOP_N = 20

ServedMode = Literal["bm25", "semantic", "hybrid", "hybrid-rerank", "conversation"]

Mode = Literal["auto", ServedMode]


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a request says about the ranking; None leaves it to the daemon."""

    fusion: Fusion | None = None
    alpha: float | None = None
    rrf_k: int | None = None
    pool_factor: int | None = None
    pool_floor: int | None = None
    kernel: Kernel | None = None
    recency: Recency | None = None
    temporal: Temporal | None = None


@dataclass(frozen=True, slots=True)
class RetrievalRequest:
    query: str
    top_k: int
    mode: Mode = "auto"
    candidate_k: int = 0
    """Size of the candidate pool; 0 leaves it to `tuning`."""
    rerank_top_n: int = 0
    """How many chunks are reranked; 0 leaves it to the daemon."""
    filters: Filters = field(default_factory=Filters)
    tuning: Tuning | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a search: the effective mode, and the contract's defaults."""

    mode: ServedMode
    compares: bool
    """Whether it compares vectors."""
    top_k: int
    fusion: Fusion
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
    def of(cls, mode: ServedMode, request: RetrievalRequest, *, compares: bool) -> "Plan":
        tuning, top_k = request.tuning or Tuning(), request.top_k
        factor = 5 if tuning.pool_factor is None else tuning.pool_factor
        floor = 50 if tuning.pool_floor is None else tuning.pool_floor
        return cls(
            mode=mode,
            compares=compares,
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


def applied_tuning(request: RetrievalRequest, plan: Plan) -> Tuning:
    """The requested values that the search applied."""
    if request.tuning is None or plan.mode in ("bm25", "conversation"):
        return Tuning()
    used = {"kernel"}
    if plan.mode != "semantic":
        used |= {"recency", "temporal", "fusion", "rrf_k" if plan.fusion == "rrf" else "alpha"}
        used |= set() if request.candidate_k else {"pool_factor", "pool_floor"}
    return Tuning(**{name: getattr(request.tuning, name) for name in used})
