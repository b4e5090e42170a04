"""What a scenario is: it puts one question to a daemon, and hands out what was answered."""

from dataclasses import dataclass
from typing import Protocol

from memconform.client.client import ContractClient
from memconform.client.failures import DaemonFailedError
from memconform.client.timing import Timings
from memconform.contract.ask import Citation
from memconform.contract.core import Chunk, Filters, Trace
from memconform.contract.wire import Mode
from memconform.datasets.model import Question
from memconform.scoring.scorer import DaemonResponse, TextKind


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """Settings that every scenario passes on; 0 leaves a number to the daemon."""

    brain: str
    mode: Mode
    top_k: int
    candidate_k: int = 0
    rerank_top_n: int = 0
    allow_fallback: bool = False
    filters: Filters | None = None
    """What is searched among; None: the whole brain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResponse(DaemonResponse):
    """A question that the daemon answered; failures are raised as CallErrors instead."""

    chunks: tuple[Chunk, ...] = ()
    """Best first."""
    trace: Trace
    timings: Timings
    citations: tuple[Citation, ...] = ()


class Scenario(Protocol):
    name: str
    text_kind: TextKind
    dated: bool
    """Whether the question's date goes to the daemon."""

    async def put(
        self, client: ContractClient, question: Question, settings: RetrievalSettings
    ) -> ScenarioResponse:
        """Put one question; raises CallError where no usable answer came."""
        ...


def require_requested_mode(settings: RetrievalSettings, trace: Trace) -> None:
    """Raises DaemonFailedError where another mode was served than the one asked for.

    The score of such an answer would be filed under a mode that never ran.
    """
    asked, served = settings.mode, trace.effective_mode
    if settings.allow_fallback or asked in (Mode.AUTO, served):
        return
    raise DaemonFailedError(
        "mode_not_served", f"asked for {asked.value}, the daemon served {served.value}"
    )
