"""The command line of `bench`, typed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memconform.contract.names import RankBy
from memconform.daemons.kinds import UpstreamKind
from memconform.datasets.sampling import Holdout
from memconform.longmemeval.names import Join

SUITES: Mapping[str, str | None] = {
    "sample": None,
    "locomo": "locomo",
    "longmemeval": "longmemeval",
    "wmb": "wmb",
    "file": None,
}
"""Suites, and the format that each is read in; None means that the format is detected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """Flags of `bench`, under their own names, with the defaults that they have there."""

    suite: str
    data: str | None = None
    sdk: tuple[str, ...]
    no_skip: bool = False
    system: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    modes: str = "bm25"
    ks: str = "5,10"
    index: Literal["isolated", "shared", "category"] = "isolated"
    level: str | None = None
    session_doc: str | None = None
    part: str | None = None
    errata: str | None = None
    keys: Path | None = None
    join: Join | None = None
    events: Path | None = None
    ranges: Path | None = None
    limit: int | None = None
    sample: int | None = None
    ids: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    holdout: Holdout = "all"
    shard: str | None = None
    executor: str | None = None
    shards: int | None = None
    seed: int = 0
    fusion: str | None = None
    alpha: str | None = None
    rrf_k: str | None = None
    pool_factor: str | None = None
    pool_floor: str | None = None
    kernel: str | None = None
    recency: str | None = None
    temporal: str | None = None
    upstream: UpstreamKind
    embed_base_url: str | None = None
    embed_model: str | None = None
    embed_dims: int | None = None
    query_prefix: str | None = None
    rerank: str | None = None
    env: tuple[str, ...] = ()
    concurrency: int = 1
    rank_by: RankBy | None = None
    shuffle: int | None = None
    answers: bool = False
    timeout: float = 120.0
    require_agreement: bool = False
    resume: str | None = None
    header: tuple[str, ...] = ()
    output: Path
    export: tuple[str, ...] = ()
    json_file: str | None = None
    html: bool = False
    markdown: str | None = None
    verbose: bool = False
    quiet: bool = False
    log_level: str
