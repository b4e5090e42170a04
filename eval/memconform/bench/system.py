"""What is measured: a daemon, or a plain algorithm to stand beside it."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from memconform.bench.records import Filled, SystemRecord
from memconform.bench.strategy import Strategy
from memconform.bench.tasks import Task
from memconform.datasets.haystacks import Haystack

BASELINES = ("flat-bm25", "flat-dense", "null", "oracle", "random")
"""Names of the plain algorithms."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    ranking: tuple[str, ...]
    """Ids of items, best first, each once; of the query's own haystack only."""
    latency_ms: float
    """From sending the request to the end of the answer."""
    search_ms: float | None = None
    """What the system itself says that its search took."""


class Index(Protocol):
    """One haystack, or several side by side, that can be searched."""

    @property
    def filled(self) -> Filled: ...

    async def search(self, task: Task, strategy: Strategy) -> Found:
        """At least as many items as the task wants, where so many are found.

        Raises:
            CallError: where this query was not measured.
            DaemonError: where no other will be.
        """
        ...

    async def prove(self) -> None:
        """Raise DaemonError where it is no longer what it was filled with."""
        ...


class Session(Protocol):
    """A system that runs."""

    def fill(self, haystacks: Iterable[Haystack]) -> AbstractAsyncContextManager[Index]:
        """Index the haystacks, prove that all of it is, and forget it at the end.

        Raises:
            DaemonError: where an item cannot be found.
            UsageError: where an item cannot be indexed by anyone.
        """
        ...

    def record(self) -> SystemRecord:
        """What is known of it by now."""
        ...


class System(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def strategies(self) -> tuple[Strategy, ...]: ...

    @property
    def identity(self) -> str:
        """A digest of what decides its rankings, besides the strategy."""
        ...

    def open(self) -> AbstractAsyncContextManager[Session]:
        """Start it; raises DaemonError where that fails."""
        ...
