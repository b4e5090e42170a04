"""The scenario protocol: sends one question to a daemon and returns its response."""

from dataclasses import dataclass
from typing import Protocol

from memconform.client.client import ContractClient
from memconform.client.timings import Timings
from memconform.contract.ask import Citation
from memconform.contract.core import Chunk, Filters, Trace
from memconform.contract.wire import Mode
from memconform.datasets.question import Question, TextKind


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """Retrieval settings that every scenario sends; 0 leaves a number to the daemon."""

    brain: str
    mode: Mode
    top_k: int
    candidate_k: int = 0
    rerank_top_n: int = 0
    allow_fallback: bool = False
    auto_modes: tuple[Mode, ...] | None = None
    """Modes in which `auto` may be served; None accepts any."""
    filters: Filters | None = None
    """Restricts the search; None searches the whole brain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResponse:
    """A daemon's answer to a question; failures are raised as CallError instead."""

    text: str
    """The reader's answer, or the retrieved text."""
    kind: TextKind
    chunks: tuple[Chunk, ...] = ()
    """Best first."""
    trace: Trace
    timings: Timings
    citations: tuple[Citation, ...] = ()
    null_chunks: bool = False
    """Whether the daemon sent null for the empty list of chunks."""


class Scenario(Protocol):
    """Sends questions to a daemon in one particular way."""

    name: str
    text_kind: TextKind
    """Whether the scored text is an answer or a retrieval."""
    dated: bool
    """Whether the question's date is sent."""

    async def put(
        self, client: ContractClient, question: Question, settings: RetrievalSettings
    ) -> ScenarioResponse:
        """Send one question.

        Raises:
            CallError: if no usable answer came, or another mode was served than requested.
        """
        ...
