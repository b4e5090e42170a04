"""Plain in-process algorithms to compare daemons with: they show how hard a benchmark is."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from rank_bm25 import BM25Okapi

from memconform.bench.records import IndexRecord, SystemRecord
from memconform.bench.strategy import COSINE, Strategy
from memconform.bench.system import Index, RunningSystem, SearchResult
from memconform.bench.tasks import Task
from memconform.contract.wire import Mode
from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.question import Question
from memconform.measuring.observation import Observation
from memconform.upstream.embedders import Embedder

_Entry = tuple[str, Item]
"""A haystack's id, and one of its items."""


class _Ranker(Protocol):
    vectors: int

    def order(self, haystack: str, query: Question) -> Iterable[int]:
        """Indices of entries, best first; those of other haystacks are skipped by the caller."""
        ...


class _Bm25:
    """BM25 as in LongMemEval's released code: `split(" ")`, ties by the reversed argsort."""

    vectors = 0

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self._index = BM25Okapi([item.text.split(" ") for _, item in entries])

    def order(self, _: str, query: Question) -> Iterable[int]:
        scores = self._index.get_scores(query.question.split(" "))
        return (int(index) for index in np.argsort(scores)[::-1])


class _Dense:
    """Cosine similarity of unit vectors; ties keep the order of the items."""

    def __init__(self, entries: Sequence[_Entry], embedder: Embedder, prefix: str) -> None:
        self._embedder, self._prefix = embedder, prefix
        self._matrix = np.array(embedder.embed([item.text for _, item in entries]))
        self.vectors = len(entries)

    def order(self, _: str, query: Question) -> Iterable[int]:
        scores = self._matrix @ np.array(self._embedder.embed([self._prefix + query.question])[0])
        return (int(index) for index in np.argsort(-scores, kind="stable"))


class _Null:
    """Finds nothing: the lowest possible score."""

    vectors = 0

    def __init__(self, _: Sequence[_Entry]) -> None:
        pass

    def order(self, _: str, __: Question) -> Iterable[int]:
        return ()


class _Oracle:
    """Ranks the gold first: the highest possible score."""

    vectors = 0

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self._indices = {(haystack, item.id): n for n, (haystack, item) in enumerate(entries)}

    def order(self, haystack: str, query: Question) -> Iterable[int]:
        keys = ((haystack, gold) for gold in query.gold)
        return (self._indices[key] for key in keys if key in self._indices)


class _Random:
    """A random order, determined by the query's id and a seed."""

    vectors = 0

    def __init__(self, entries: Sequence[_Entry], seed: int) -> None:
        self._size, self._seed = len(entries), seed

    def order(self, _: str, query: Question) -> Iterable[int]:
        generator = random.Random(f"{self._seed}/{query.id}")  # noqa: S311 - nothing secret
        return generator.sample(range(self._size), self._size)


@dataclass(frozen=True, slots=True)
class BaselineSystem:
    """An algorithm that runs in process; implements both `System` and `RunningSystem`."""

    name: str
    index: Callable[[Sequence[_Entry]], _Ranker]
    embedder: str | None = None
    seed: int = 0
    prefix: str = ""
    """Text prepended to a query before it is embedded."""
    official_items: bool = False
    """Whether to index the items as the benchmark's released code does, where there is one."""
    strategies: tuple[Strategy, ...] = (Strategy(None),)
    ties: str | None = None

    def kernel(self, _: Strategy) -> str | None:
        return COSINE if self.embedder else None

    @property
    def identity(self) -> str:
        identity = f"{self.embedder} {self.seed} {self.prefix}"
        return f"{identity} official" if self.official_items else identity

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunningSystem]:
        yield self

    def record(self) -> SystemRecord:
        return SystemRecord(
            name=self.name, embedder=self.embedder, official_items=self.official_items
        )

    @asynccontextmanager
    async def build_index(self, haystacks: Iterable[Haystack]) -> AsyncIterator[Index]:
        entries = [
            (haystack.id, item)
            for haystack in haystacks
            for item in (self.official_items and haystack.official_items) or haystack.items
        ]
        started = time.perf_counter()
        ranker = await asyncio.to_thread(self.index, entries)
        ingest_ms = (time.perf_counter() - started) * 1e3
        record = IndexRecord(
            system=self.name,
            haystack="",
            documents=len(entries),
            chunks=len(entries),
            vectors=ranker.vectors,
            ingest_ms=ingest_ms,
        )
        yield _BaselineIndex(entries, ranker, record, self.official_items)


@dataclass(frozen=True, slots=True)
class _BaselineIndex:
    entries: Sequence[_Entry]
    ranker: _Ranker
    record: IndexRecord
    official_items: bool

    async def verify(self, _: Mode | None) -> None:
        """Do nothing: an index in process cannot change."""

    async def search(self, task: Task, _: Strategy) -> SearchResult:
        started = time.perf_counter()
        ranking: dict[str, None] = {}
        entries: list[str] = []
        for index in self.ranker.order(task.haystack, task.query):
            owner, item = self.entries[index]
            if owner == task.haystack and (task.candidates is None or item.id in task.candidates):
                entries.append(item.source or item.id)
                ranking[entries[-1]] = None
            if len(ranking) == task.depth:
                break
        latency_ms = (time.perf_counter() - started) * 1e3
        # Separate keys repeat an item's id as well, but are no entries of their own.
        repeated = tuple(entries) if self.official_items else ()
        return SearchResult(tuple(ranking), Observation(latency_ms=latency_ms), entries=repeated)


def baseline_system(
    name: str,
    seed: int,
    embedder: Callable[[], Embedder],
    prefix: str = "",
    *,
    official_items: bool = False,
) -> BaselineSystem:
    """The baseline called `name`, one of `BASELINES`; only `flat-dense` calls `embedder`.

    `official_items` concerns `flat-bm25`, which is LongMemEval's own baseline.
    """
    if name == "flat-dense":
        model = embedder()
        return BaselineSystem(
            name,
            lambda entries: _Dense(entries, model, prefix),
            model.name,
            prefix=prefix,
            ties="by the order of the items",
        )
    if name == "random":
        return BaselineSystem(name, lambda entries: _Random(entries, seed), seed=seed)
    rankers: dict[str, Callable[[Sequence[_Entry]], _Ranker]] = {
        "flat-bm25": _Bm25,
        "null": _Null,
        "oracle": _Oracle,
    }
    ties = "by the reversed argsort" if name == "flat-bm25" else None
    official_items = official_items and name == "flat-bm25"
    return BaselineSystem(name, rankers[name], ties=ties, official_items=official_items)
