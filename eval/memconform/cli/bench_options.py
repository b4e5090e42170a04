"""The command line of `bench`, typed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memconform.contract.names import RankBy
from memconform.daemons.kinds import UpstreamKind
from memconform.datasets.expansion import Join
from memconform.datasets.sampling import Holdout

SUITES: Mapping[str, str | None] = {
    "sample": None,
    "locomo": "locomo",
    "longmemeval": "longmemeval",
    "wmb": "wmb",
    "file": None,
}
"""Suites, and the format that each is read in; None means that the format is detected."""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """Flags of `bench`, under their own names."""

    suite: str
    data: str | None
    sdk: tuple[str, ...]
    no_skip: bool
    system: tuple[str, ...]
    log: tuple[str, ...]
    modes: str
    ks: str
    index: Literal["isolated", "shared", "category"]
    level: str | None
    session_doc: str | None
    part: str | None
    errata: str | None
    keys: Path | None
    join: Join | None
    events: Path | None
    ranges: Path | None
    limit: int | None
    sample: int | None
    ids: tuple[str, ...]
    category: tuple[str, ...]
    holdout: Holdout
    seed: int
    fusion: str | None
    alpha: str | None
    rrf_k: str | None
    pool_factor: str | None
    pool_floor: str | None
    kernel: str | None
    recency: str | None
    temporal: str | None
    upstream: UpstreamKind
    embed_base_url: str | None
    embed_model: str | None
    embed_dims: int | None
    query_prefix: str | None
    rerank: str | None
    env: tuple[str, ...]
    concurrency: int
    rank_by: RankBy
    shuffle: int | None
    answers: bool
    timeout: float
    require_agreement: bool
    resume: str | None
    header: tuple[str, ...]
    output: Path
    export: tuple[str, ...]
    json_file: str | None
    markdown: str | None
    verbose: bool
    quiet: bool
    log_level: str
