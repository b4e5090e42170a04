"""A retrieval log as a system: rankings that another program made."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memconform.bench.records import IndexRecord, SystemRecord
from memconform.bench.retrieval_log import RetrievalLog, item_of
from memconform.bench.strategy import Strategy
from memconform.bench.system import Index, RunningSystem, SearchResult
from memconform.bench.tasks import Task
from memconform.client.failures import CallError
from memconform.contract.wire import Mode
from memconform.datasets.haystacks import Haystack
from memconform.errors import UsageError


@dataclass(frozen=True, slots=True)
class LogSystem:
    """The rankings of a log; implements both `System` and `RunningSystem`. It has no latencies."""

    name: str
    log: RetrievalLog
    strategies: tuple[Strategy, ...] = (Strategy(None),)
    ties: str | None = None
    """A log does not say; nor does it name a kernel."""

    def kernel(self, _: Strategy) -> str | None:
        return None

    @property
    def identity(self) -> str:
        return f"log {self.log.sha256}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunningSystem]:
        yield self

    def record(self) -> SystemRecord:
        return SystemRecord(name=self.name, build_hash=self.log.sha256)

    def require_known_questions(self, queries: Collection[str]) -> None:
        """Check that every question of the log is a query of the benchmark.

        Raises:
            UsageError: naming the first that is not (`log_mismatch`).
        """
        unknown = [question for question in self.log.rankings if question not in queries]
        if unknown:
            raise UsageError(
                f"{self.log.path}: {len(unknown)} of {len(self.log.rankings)} questions are not in"
                f" the benchmark, the first {unknown[0]!r}",
                code="log_mismatch",
                hint="give the log of this benchmark, made from the same file",
            )

    @asynccontextmanager
    async def build_index(self, haystacks: Iterable[Haystack]) -> AsyncIterator[Index]:
        items = {
            haystack.id: frozenset(item.source or item.id for item in haystack.items)
            for haystack in haystacks
        }
        # Nothing is indexed here: what the other program indexed is unknown.
        record = IndexRecord(
            system=self.name, haystack="", documents=0, chunks=None, vectors=None, ingest_ms=0.0
        )
        yield _LogIndex(self.log, items, record)


@dataclass(frozen=True, slots=True)
class _LogIndex:
    log: RetrievalLog
    items: Mapping[str, frozenset[str]]
    """Ids of the items by haystack."""
    record: IndexRecord

    async def verify(self, _: Mode | None) -> None:
        """Do nothing: the rankings are in memory."""

    async def search(self, task: Task, _: Strategy) -> SearchResult:
        """The ranking of the log.

        Raises:
            CallError: if the log has no ranking of the query or another question under its id,
                names an item that the haystack does not have, or ends before the depth that the
                metrics need.
        """
        logged = self.log.rankings.get(task.query.id)
        if logged is None:
            raise CallError("not_in_log", f"{self.log.path.name} has no ranking of this query")
        if logged.question is not None and logged.question.split() != task.query.question.split():
            raise CallError("other_question", f"the log has the question {logged.question!r}")
        items = self.items[task.haystack]
        entries: list[str] = []
        for corpus_id in logged.ids:
            item = item_of(corpus_id, items)
            if item is None:
                raise CallError(
                    "unknown_item",
                    f"this haystack has no item {corpus_id!r}; another --level may have it",
                )
            entries.append(item)
        ranking = tuple(dict.fromkeys(entries))
        needed = min(task.depth, len(items))
        if len(ranking) < needed and (logged.requested or 0) < needed:
            raise CallError(
                "ranking_cut",
                f"the log ranks {len(ranking)} items, and the metrics need {needed}",
            )
        if task.candidates is not None and not task.candidates.issuperset(ranking):
            raise CallError("filter_ignored", "the log ranks items that the time range excludes")
        return SearchResult(ranking, entries=tuple(entries))
