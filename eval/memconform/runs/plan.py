"""The plan of a run: its settings and how to execute it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from memconform.client.timings import Timeouts
from memconform.contract.wire import CONTRACT_VERSION, Mode, RankBy
from memconform.daemons.kinds import UpstreamKind
from memconform.datasets.selection import SelectedQuestions
from memconform.datasets.sharding import ShardRecord
from memconform.errors import UsageError
from memconform.ingest.documents import Corpus
from memconform.measuring.scenario import RetrievalSettings
from memconform.scoring.judge.records import JudgeSettings
from memconform.scoring.scorer import Scorer

if TYPE_CHECKING:
    from memconform.scoring.judge.calibration import Calibration


@dataclass(frozen=True, slots=True)
class Floor:
    """The minimum pass rate of all questions, or of those with a tag."""

    rate: float
    tag: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Floor":
        """Read `0.9` or `tag:temporal=0.8`.

        Raises:
            UsageError: `bad_floor` for anything else.
        """
        name, equals, value = text.rpartition("=")
        tag = name.removeprefix("tag:")
        try:
            rate = float(value)
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= 1 or (equals and (not name.startswith("tag:") or not tag)):
            raise UsageError(
                f"invalid --floor {text}",
                code="bad_floor",
                hint="write --floor 0.9, or --floor tag:NAME=0.8",
            )
        return cls(rate, tag if equals else None)

    def __str__(self) -> str:
        """The floor as `parse` reads it."""
        return f"tag:{self.tag}={self.rate}" if self.tag else str(self.rate)


DEFAULT_FLOOR = Floor(0.90)


def read_floors(values: Sequence[str]) -> tuple[Floor, ...]:
    """Parse the floors of `--floor`; the default floor applies if all of them have a tag.

    Raises:
        UsageError: if a floor is malformed.
    """
    floors = [Floor.parse(text) for text in values]
    if all(floor.tag is not None for floor in floors):
        floors.insert(0, DEFAULT_FLOOR)
    return tuple(floors)


class Settings(BaseModel):
    """Everything that determines the answers; runs with equal settings are comparable."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    dataset: str
    dataset_sha256: str
    questions: int
    rows: list[int] | None = None
    """Selected row numbers; None for all. A shard has some of them."""
    shard: ShardRecord | None = None
    """Which part of the selected questions was asked; None for all."""
    scenario: str
    mode: Mode
    scorer: str = "exact"
    brain: str | None = None
    """None creates a brain for this run."""
    top_k: int = 5
    candidate_k: int = 0
    rerank_top_n: int = 0
    allow_fallback: bool = False
    rank_by: RankBy = "score"
    repeat: int = 1
    seeding: str | None = None
    """`reference` or a corpus digest; None for a brain that was not seeded by this run."""
    upstream: UpstreamKind = "own"
    variables: dict[str, str] = Field(default_factory=dict)
    """Variables from the user's shell and `--env`, secrets masked; they may select models."""
    build_hash: str | None = None
    contract: str = CONTRACT_VERSION
    judge: JudgeSettings | None = None
    """The judges, if they score."""
    strip_reasoning: bool = False
    """Whether answers were scored without their blocks of reasoning; by `score` alone."""

    def retrieval(
        self, brain: str, auto_modes: tuple[Mode, ...] | None = None
    ) -> RetrievalSettings:
        """The retrieval settings for `brain`; `auto` may be served in `auto_modes`."""
        return RetrievalSettings(
            brain=brain,
            mode=self.mode,
            top_k=self.top_k,
            candidate_k=self.candidate_k,
            rerank_top_n=self.rerank_top_n,
            allow_fallback=self.allow_fallback,
            auto_modes=auto_modes,
        )

    def digest(self) -> str:
        """The SHA-256 of the settings."""
        # Journals of earlier versions have none of these in what their digest is of.
        unused = {"judge"} if self.judge is None else set()
        unused |= {"shard"} if self.shard is None else set()
        unused |= {"rank_by"} if self.rank_by == "score" else set()
        unused |= set() if self.strip_reasoning else {"strip_reasoning"}
        return hashlib.sha256(self.model_dump_json(exclude=unused).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Plan:
    """A complete run: its settings and how to execute it."""

    settings: Settings
    selected: SelectedQuestions
    output: Path
    floors: tuple[Floor, ...]
    scorer: Scorer
    calibrations: Mapping[str, "Calibration | None"] = field(default_factory=dict)
    """What is known of each judge, by its name."""
    corpus: Corpus | None = None
    """The corpus to seed the brain from; None uses an existing brain."""
    port: int = 0
    concurrency: int = 1
    timeouts: Timeouts = field(default_factory=Timeouts)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request."""
    command: tuple[str, ...] = ()
    reference: str | None = None
    """The value of `--sdk` that names this run's SDK."""
    rescored: str | None = None
    """The run whose answers are rescored."""
    reverify: bool = True
    """Whether to prove the index again between questions and at the end."""
    resumed: Path | None = None
    """The journal of an earlier run with the same settings, whose measurements are reused."""


def own_brain(run_id: str) -> str:
    """The brain id of a run without `--brain`; no other client fills or empties it."""
    return f"mc-{run_id}"
