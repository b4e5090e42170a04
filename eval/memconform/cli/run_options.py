"""The command line of `run`, typed."""

from dataclasses import dataclass
from pathlib import Path

from memconform.cli.judge_options import JudgeFlags
from memconform.contract.names import RankBy
from memconform.daemons.kinds import UpstreamKind

SCENARIO_NAMES = ("ask-basic", "ask-augmented", "search-retrieve-only")
"""Names in `scenarios.SCENARIOS`, repeated because its import brings the whole client."""

EXISTING_BRAIN = "eval"
"""The brain to ask if none is named and none is seeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(JudgeFlags):
    """Flags of `run`, under their own names."""

    sdk: tuple[str, ...]
    no_skip: bool
    scenario: str
    mode: str
    dataset: str
    scorer: str | None
    limit: int | None
    ids: tuple[str, ...]
    tag: tuple[str, ...]
    output: Path
    port: int
    floor: tuple[str, ...]
    brain: str | None
    i_own_this_brain: bool
    top_k: int
    candidate_k: int
    rerank_top_n: int
    seed_reference_brain: bool
    upstream: UpstreamKind
    env: tuple[str, ...]
    require_agreement: bool
    corpus: Path | None
    concurrency: int
    timeout: float
    timeout_connect: float
    timeout_first: float
    timeout_gap: float
    allow_fallback: bool
    rank_by: RankBy | None
    reverify: bool
    repeat: int
    json_file: str | None
    html: bool
    quiet: bool
    resume: str | None
    header: tuple[str, ...]
    log_level: str
