"""Plain algorithms that stand beside the daemons: what is hard about a benchmark, and what not."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from rank_bm25 import BM25Okapi

from memconform.bench.records import Filled, SystemRecord
from memconform.bench.strategy import Strategy
from memconform.bench.system import Found, Index, Session
from memconform.bench.tasks import Task
from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.model import Question
from memconform.upstream.embedders import Embedder

_Entry = tuple[str, Item]
"""A haystack's id, and one of its items."""


class _Ranker(Protocol):
    vectors: int

    def order(self, haystack: str, query: Question) -> Iterable[int]:
        """Places of entries, best first; those of other haystacks are passed over."""
        ...


class _Bm25:
    """As LongMemEval's released code has it: `split(" ")`, ties by the reversed argsort."""

    vectors = 0

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self._index = BM25Okapi([item.text.split(" ") for _, item in entries])

    def order(self, _: str, query: Question) -> Iterable[int]:
        scores = self._index.get_scores(query.question.split(" "))
        return (int(place) for place in np.argsort(scores)[::-1])


class _Dense:
    """Cosines of unit vectors; ties in the order of the items."""

    def __init__(self, entries: Sequence[_Entry], embedder: Embedder, prefix: str) -> None:
        self._embedder, self._prefix = embedder, prefix
        self._matrix = np.array(embedder.embed([item.text for _, item in entries]))
        self.vectors = len(entries)

    def order(self, _: str, query: Question) -> Iterable[int]:
        scores = self._matrix @ np.array(self._embedder.embed([self._prefix + query.question])[0])
        return (int(place) for place in np.argsort(-scores, kind="stable"))


class _Null:
    """Finds nothing: the lowest score that there is."""

    vectors = 0

    def __init__(self, _: Sequence[_Entry]) -> None:
        pass

    def order(self, _: str, __: Question) -> Iterable[int]:
        return ()


class _Oracle:
    """Finds the gold first: the highest score that there is."""

    vectors = 0

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self._places = {(haystack, item.id): n for n, (haystack, item) in enumerate(entries)}

    def order(self, haystack: str, query: Question) -> Iterable[int]:
        wanted = ((haystack, gold) for gold in query.gold)
        return (self._places[each] for each in wanted if each in self._places)


class _Random:
    """Any order, by the query's id and a seed."""

    vectors = 0

    def __init__(self, entries: Sequence[_Entry], seed: int) -> None:
        self._size, self._seed = len(entries), seed

    def order(self, _: str, query: Question) -> Iterable[int]:
        drawn = random.Random(f"{self._seed}/{query.id}")  # noqa: S311 - nothing secret
        return drawn.sample(range(self._size), self._size)


@dataclass(frozen=True, slots=True)
class FlatSystem:
    name: str
    index: Callable[[Sequence[_Entry]], _Ranker]
    embedder: str | None = None
    seed: int = 0
    prefix: str = ""
    """Put before a query that is embedded."""
    strategies: tuple[Strategy, ...] = (Strategy(None),)

    @property
    def identity(self) -> str:
        return f"{self.embedder} {self.seed} {self.prefix}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Session]:
        yield self

    def record(self) -> SystemRecord:
        return SystemRecord(name=self.name, embedder=self.embedder)

    @asynccontextmanager
    async def fill(self, haystacks: Iterable[Haystack]) -> AsyncIterator[Index]:
        entries = [(haystack.id, item) for haystack in haystacks for item in haystack.items]
        started = time.perf_counter()
        ranker = await asyncio.to_thread(self.index, entries)
        took = (time.perf_counter() - started) * 1e3
        filled = Filled(
            system=self.name,
            haystack="",
            documents=len(entries),
            chunks=len(entries),
            vectors=ranker.vectors,
            ingest_ms=took,
        )
        yield _FlatIndex(entries, ranker, filled)


@dataclass(frozen=True, slots=True)
class _FlatIndex:
    entries: Sequence[_Entry]
    ranker: _Ranker
    filled: Filled

    async def prove(self) -> None:
        """It is ours, and changes for nobody."""

    async def search(self, task: Task, _: Strategy) -> Found:
        started = time.perf_counter()
        ranking: dict[str, None] = {}
        for place in self.ranker.order(task.haystack, task.query):
            owner, item = self.entries[place]
            if owner == task.haystack and (task.candidates is None or item.id in task.candidates):
                ranking[item.source or item.id] = None
            if len(ranking) == task.depth:
                break
        return Found(tuple(ranking), (time.perf_counter() - started) * 1e3)


def flat_system(
    name: str, seed: int, embedder: Callable[[], Embedder], prefix: str = ""
) -> FlatSystem:
    """The system of that name; `embedder` is called for the one that embeds."""
    if name == "flat-dense":
        chosen = embedder()
        return FlatSystem(
            name, lambda entries: _Dense(entries, chosen, prefix), chosen.name, prefix=prefix
        )
    if name == "random":
        return FlatSystem(name, lambda entries: _Random(entries, seed), seed=seed)
    plain: dict[str, Callable[[Sequence[_Entry]], _Ranker]] = {
        "flat-bm25": _Bm25,
        "null": _Null,
        "oracle": _Oracle,
    }
    return FlatSystem(name, plain[name])
