"""What a bench is asked to do."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memconform.bench.records import BenchSettings, DataSource, JournalHeader
from memconform.bench.system import System
from memconform.bench.tasks import QueryPlanner
from memconform.contract.wire import JsonValue
from memconform.datasets.benchmarks import Benchmark
from memconform.datasets.haystacks import Dropped, Haystack
from memconform.datasets.sources import pinned_as
from memconform.errors import UsageError


@dataclass(frozen=True, slots=True)
class Survey:
    """What a benchmark holds, from reading it once."""

    sha256: str
    """Of its file, unpacked; empty of a folder."""
    content_sha256: str
    """Of its haystacks, whatever file they came in."""
    haystacks: int
    items: int
    queries: frozenset[str]
    """Their ids."""
    with_gold: frozenset[str]
    """Ids of those that have gold."""
    dropped: tuple[Dropped, ...]
    silent: int
    """Items without a text."""


class ContentDigest:
    """SHA-256 of haystacks as they were read, with all that decides what is asked and scored."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()

    def add(self, haystack: Haystack) -> None:
        self._add(haystack.id)
        for item in haystack.items:
            self._add(item.id, item.text, item.group, item.date, dict(item.metadata), item.source)
        for query in haystack.queries:
            self._add(query.id, query.question, query.category, query.gold)
            self._add(query.question_date, query.abstain)

    def _add(self, *told: JsonValue) -> None:
        self._sha256.update(json.dumps(told).encode() + b"\n")

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


def scan(benchmark: Benchmark) -> Survey:
    """Read it to its end; raises UsageError where it is not as it should be."""
    digest = ContentDigest()
    counts: Counter[str] = Counter()
    queries: list[str] = []
    with_gold: list[str] = []
    dropped: list[Dropped] = []
    for haystack in benchmark:
        digest.add(haystack)
        silent = sum(not item.text for item in haystack.items)
        counts.update(haystacks=1, items=len(haystack.items), silent=silent)
        queries += [query.id for query in haystack.queries]
        with_gold += [query.id for query in haystack.queries if query.gold]
        dropped += haystack.dropped
    return Survey(
        sha256=benchmark.sha256,
        content_sha256=digest.hexdigest(),
        haystacks=counts["haystacks"],
        items=counts["items"],
        queries=frozenset(queries),
        with_gold=frozenset(with_gold),
        dropped=tuple(dropped),
        silent=counts["silent"],
    )


@dataclass(frozen=True, slots=True)
class BenchPlan:
    suite: str
    benchmark: Benchmark
    scan: Survey
    settings: BenchSettings
    tasking: QueryPlanner
    systems: tuple[System, ...]
    seed: int
    concurrency: int = 1
    shuffle: int | None = None
    """Seed of another order of the queries, which must change nothing."""
    command: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    """What was made of the benchmark, and chosen from it, in words."""
    resumed: Path | None = None

    def read(self) -> Iterator[Haystack]:
        """The haystacks; raises UsageError where they are no longer what they were."""
        digest = ContentDigest()
        for haystack in self.benchmark:
            digest.add(haystack)
            yield haystack
        if digest.hexdigest() != self.scan.content_sha256:
            raise UsageError(
                f"{self.benchmark.path} changed while it was used",
                code="dataset_changed",
                hint="run again; what was measured is in the journal of the run's folder",
            )

    def journal_header(self, run_id: str) -> JournalHeader:
        return JournalHeader(
            run_id=run_id,
            settings=self.settings,
            systems={system.name: system.identity for system in self.systems},
        )

    def source(self) -> DataSource:
        benchmark, found, chosen = self.benchmark, self.scan, self.tasking.chosen
        return DataSource(
            path=str(benchmark.path.resolve()),
            format=benchmark.format.name,
            options=dict(benchmark.options),
            made=list(self.made),
            sha256=found.sha256,
            pinned=pinned_as(found.sha256),
            haystacks=found.haystacks,
            items=found.items,
            queries=len(chosen),
            with_gold=len(chosen & found.with_gold),
            dropped=len(found.dropped),
            silent=found.silent,
        )
