"""What a run is asked to do."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from memconform.client.timing import Timeouts
from memconform.contract.wire import CONTRACT_VERSION, Mode
from memconform.daemons.kinds import UpstreamKind
from memconform.datasets.selection import SelectedQuestions
from memconform.errors import UsageError
from memconform.ingest.documents import Corpus
from memconform.scenarios.scenario import RetrievalSettings
from memconform.scoring.scorer import Scorer


@dataclass(frozen=True, slots=True)
class Floor:
    """The least pass rate of all questions, or of those with a tag."""

    rate: float
    tag: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Floor":
        """Read `0.9` or `tag:temporal=0.8`.

        Raises:
            UsageError: for anything else.
        """
        name, equals, value = text.rpartition("=")
        tag = name.removeprefix("tag:")
        try:
            rate = float(value)
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= 1 or (equals and (not name.startswith("tag:") or not tag)):
            raise UsageError(
                f"--floor {text} is not a floor",
                code="bad_floor",
                hint="write --floor 0.9, or --floor tag:NAME=0.8",
            )
        return cls(rate, tag if equals else None)


DEFAULT_FLOOR = Floor(0.90)


class Settings(BaseModel):
    """What decides the answers; two runs with the same settings ask the same of a daemon."""

    model_config = ConfigDict(frozen=True)

    dataset: str
    dataset_sha256: str
    questions: int
    rows: list[int] | None = None
    """Row numbers that were selected; None for all."""
    scenario: str
    mode: Mode
    scorer: str = "exact"
    brain: str | None = None
    """None is one of the run's own, which is made for it."""
    top_k: int = 5
    candidate_k: int = 0
    rerank_top_n: int = 0
    allow_fallback: bool = False
    repeat: int = 1
    seeding: str | None = None
    """Where the brain's documents come from: `reference`, a corpus's digest, or what was there."""
    upstream: UpstreamKind = "own"
    variables: dict[str, str] = Field(default_factory=dict)
    """What the user's shell and `--env` gave the daemon, secrets masked: they may choose models."""
    build_hash: str | None = None
    contract: str = CONTRACT_VERSION

    def retrieval(self, brain: str) -> RetrievalSettings:
        """The part of the settings that a scenario passes on, for the brain that is asked."""
        return RetrievalSettings(
            brain=brain,
            mode=self.mode,
            top_k=self.top_k,
            candidate_k=self.candidate_k,
            rerank_top_n=self.rerank_top_n,
            allow_fallback=self.allow_fallback,
        )

    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Plan:
    """A run in full: its settings, and how it is carried out."""

    settings: Settings
    selected: SelectedQuestions
    output: Path
    floors: tuple[Floor, ...]
    scorer: Scorer
    corpus: Corpus | None = None
    """What the brain is filled with; None asks one that is there."""
    port: int = 0
    concurrency: int = 1
    timeouts: Timeouts = field(default_factory=Timeouts)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request."""
    command: tuple[str, ...] = ()
    rescored: str | None = None
    """The run whose answers are scored anew."""
    reproof: bool = True
    """Whether the index is proven again while it is asked, and at the end."""
    resumed: Path | None = None
    """The journal of an earlier run with these settings; what it holds is not asked again."""


def own_brain(run_id: str) -> str:
    """The brain of a run that was given none: nobody else fills it, or empties it."""
    return f"mc-{run_id}"
