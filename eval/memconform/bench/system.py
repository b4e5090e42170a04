"""Protocols of the systems under measurement: daemons and in-process baselines."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from memconform.bench.records import IndexRecord, SystemRecord
from memconform.bench.strategy import Strategy
from memconform.bench.tasks import Task
from memconform.contract.wire import Mode
from memconform.datasets.haystacks import Haystack
from memconform.errors import DaemonError
from memconform.measuring.observation import Observation

BASELINES = ("flat-bm25", "flat-dense", "null", "oracle", "random")
"""Names of the in-process baselines."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What one search found."""

    ranking: tuple[str, ...]
    """Ids of items of the query's haystack, best first, each once."""
    observed: Observation = field(default_factory=Observation)
    entries: tuple[str, ...] = ()
    """The ranking with repeated ids, if the index contains an item several times."""
    memories: tuple[str, ...] = ()
    """The texts that were returned, best first, if the task asks for memories."""


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """What a system's own reader answered."""

    text: str
    ranking: tuple[str, ...]
    """Ids of the items that it retrieved, best first, each once."""


class Index(Protocol):
    """A searchable index of one or several haystacks."""

    @property
    def record(self) -> IndexRecord: ...

    async def search(self, task: Task, strategy: Strategy) -> SearchResult:
        """Rank at least `task.depth` items, if that many exist.

        Raises:
            CallError: if this query could not be measured.
            DaemonError: if no further query can be measured.
        """
        ...

    async def verify(self, mode: Mode | None, /) -> None:
        """Check that the index still contains what was ingested, as searches in `mode` find it.

        Raises:
            DaemonError: if it has changed.
        """
        ...


@runtime_checkable
class AnsweringIndex(Index, Protocol):
    """An index with a reader of its own."""

    async def answer(self, task: Task, strategy: Strategy, found: SearchResult) -> OwnAnswer:
        """Answer the task's question from what the strategy retrieves.

        Args:
            task: the query.
            strategy: how the system retrieves.
            found: what its search has found for the task.

        Raises:
            CallError: if this question was not answered.
            DaemonError: if nothing can be measured any more.
        """
        ...


class RunningSystem(Protocol):
    """A started system: it builds one index after another and counts the resources used."""

    def build_index(self, haystacks: Iterable[Haystack]) -> AbstractAsyncContextManager[Index]:
        """Index the haystacks, verify that the index is complete, and delete it on exit.

        Raises:
            DaemonError: if an item cannot be found, in a system with modes in none of them.
            UsageError: if no system could index an item.
        """
        ...

    def record(self) -> SystemRecord:
        """The system and the resources that it has used so far."""
        ...


@runtime_checkable
class ModalSystem(RunningSystem, Protocol):
    """A system of which one mode may fail, while others can still be measured."""

    @property
    def lost(self) -> Mapping[Mode, DaemonError]:
        """Modes in which nothing more can be measured, and why; the others are not affected."""
        ...


class System(Protocol):
    """A system that can be started and measured."""

    @property
    def name(self) -> str: ...

    @property
    def strategies(self) -> tuple[Strategy, ...]: ...

    @property
    def ties(self) -> str | None:
        """How it orders equal scores; None if nobody knows."""
        ...

    def kernel(self, strategy: Strategy) -> str | None:
        """What makes a score of two vectors; None if it compares none, or nobody knows."""
        ...

    @property
    def identity(self) -> str:
        """A digest of everything that affects its rankings besides the strategy."""
        ...

    def open(self) -> AbstractAsyncContextManager[RunningSystem]:
        """Start the system, and stop it on exit.

        Raises:
            DaemonError: if it does not start.
        """
        ...
