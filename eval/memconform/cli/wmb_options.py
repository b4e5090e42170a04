"""The command lines of `wmb`, typed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memconform.cli.judge_options import PanelFlags
from memconform.daemons.kinds import UpstreamKind
from memconform.datasets.wmb_names import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class WmbRunOptions:
    """Flags of `wmb run`, under their own names."""

    data: str
    part: Part | None
    sdk: str | None
    adapter: Path | None
    index: Literal["isolated", "category"] | None
    mode: str
    top_k: int
    limit: int | None
    sample: int | None
    ids: tuple[str, ...]
    category: tuple[str, ...]
    seed: int
    upstream: UpstreamKind
    env: tuple[str, ...]
    header: tuple[str, ...]
    timeout: float
    resume: str | None
    output: Path
    answers: str | None
    json_file: str | None
    quiet: bool
    log_level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WmbScoreOptions(PanelFlags):
    """Flags of `wmb score`, under their own names."""

    answers: Path
    data: str
    official: bool
    errata: str | None
    profile: Literal["readme", "script", "both"]
    prompts: Literal["own", "official"]
    script: Path | None
    resume: str | None
    output: Path
    json_file: str | None
    quiet: bool
