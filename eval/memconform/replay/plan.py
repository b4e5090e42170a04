"""What is replayed: the questions, the brain, and the parts whose retrieval is compared."""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memconform.client.timings import Timeouts
from memconform.contract.wire import RankBy
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.sdk_runner import SdkRunner
from memconform.datasets.question import Question
from memconform.measuring.daemon_session import daemon_identity
from memconform.replay.agent import Agent
from memconform.replay.documents import SharedBrain
from memconform.replay.placement import Placement
from memconform.replay.records import ReplayJournalHeader, ReplaySettings
from memconform.replay.shared_brain import BrainFile
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.reader.reader import Reader

ReplayControl = Literal["oracle", "full-context"]
"""What the reader is shown without a daemon: the sessions with the answer, or all of them."""


@dataclass(frozen=True, slots=True)
class Part:
    """One SDK, or a control without one."""

    name: str
    """Names its files: `result-<name>.json`."""
    runner: SdkRunner | None = None
    control: ReplayControl | None = None
    port: int = 0
    """0 picks a free one."""
    upstream: UpstreamKind = "own"
    rank_by: RankBy = "score"
    """What decides its rankings: the flag, or else what its dialect declares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """Everything that is decided before the first daemon starts."""

    questions: tuple[Question, ...]
    parts: tuple[Part, ...]
    sessions: SharedBrain
    brain: BrainFile
    project: str
    settings: ReplaySettings
    reader: Reader | None
    """None if the daemons' own readers answer, or nobody: what was retrieved is then judged."""
    agent: Agent | None
    """Answers by searching; None if every question is one search."""
    judge: JudgeScorer | None
    """None if answers are compared with the references exactly."""
    brain_name: str
    """Id of the brain in each daemon."""
    is_filled: bool
    """Whether somebody else has filled it."""
    concurrency: int
    """Questions that are read and judged at once."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    headers: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...]
    folder: Path
    session_filter_rule: str
    """Why questions are asked of their own sessions alone, or not."""
    mode_rule: str = ""
    """Why every daemon is searched in this mode; empty without a daemon."""

    @property
    def placement(self) -> Placement:
        return Placement(self.sessions.sessions, self.project)

    @property
    def again(self) -> str:
        """What continues this replay."""
        return f"the same command with --output {shlex.quote(str(self.folder))}"

    def settings_of(self, part: Part) -> ReplaySettings:
        """The settings of a part: a control is always read by our reader, in one call."""
        if part.control is not None:
            own = {"endpoint_style": "retrieve-only", "agentic": False}
            own["reader_prompt"] = self.reader.wording.digest() if self.reader else ""
            return self.settings.model_copy(update={"benchmark_mode": part.control, **own})
        ranked = self.settings.retrieval.model_copy(update={"rank_by": part.rank_by})
        changed: dict[str, object] = {"retrieval": ranked}
        if self.settings.endpoint_style == "full":
            changed |= {"reader": None, "reader_prompt": "", "evidence_tokens": 0}
        return self.settings.model_copy(update=changed)

    def journal_header(self, part: Part) -> ReplayJournalHeader:
        """The first line of a part's journal."""
        assert part.runner is not None  # noqa: S101 - for mypy; controls have no journal
        deciding = self.settings.model_dump(
            mode="json",
            include={"brain", "retrieval", "endpoint_style", "contract"},
            # It differs between parts, and is in their identity.
            exclude={"retrieval": {"rank_by"}},
        )
        if self.agent is not None:
            # Its searches depend on what its model says.
            deciding |= {"agent": self.agent.digest(), "model": repr(self.settings.reader)}
        return ReplayJournalHeader(
            sdk=part.name,
            identity=daemon_identity(
                part.runner, part.upstream, *([part.rank_by] if part.rank_by != "score" else [])
            ),
            settings=hashlib.sha256(repr(sorted(deciding.items())).encode()).hexdigest(),
        )
