"""What a bench is asked to do."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memconform.bench.records import BenchSettings, JournalHeader, Source
from memconform.bench.system import System
from memconform.bench.tasks import Tasking
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


def survey(benchmark: Benchmark) -> Survey:
    """Read it to its end; raises UsageError where it is not as it should be."""
    digest = hashlib.sha256()
    counts: Counter[str] = Counter()
    queries: list[str] = []
    with_gold: list[str] = []
    dropped: list[Dropped] = []
    for haystack in benchmark:
        for item in haystack.items:
            digest.update(f"{item.id}\0{item.source}\0{item.text}\0".encode())
        for query in haystack.queries:
            told = (haystack.id, query.id, query.question, query.category, *query.gold)
            digest.update(json.dumps(told).encode())
        counts.update(haystacks=1, items=len(haystack.items))
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
    )


@dataclass(frozen=True, slots=True)
class BenchPlan:
    suite: str
    benchmark: Benchmark
    survey: Survey
    settings: BenchSettings
    tasking: Tasking
    systems: tuple[System, ...]
    seed: int
    concurrency: int = 1
    shuffle: int | None = None
    """Seed of another order of the queries, which must change nothing."""
    command: tuple[str, ...] = ()
    resumed: Path | None = None

    def read(self) -> Iterator[Haystack]:
        """The haystacks; raises UsageError where the file is no longer what it was."""
        yield from self.benchmark
        if self.benchmark.sha256 != self.survey.sha256:
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

    def source(self) -> Source:
        benchmark, found, chosen = self.benchmark, self.survey, self.tasking.chosen
        return Source(
            path=str(benchmark.path.resolve()),
            format=benchmark.format.name,
            options=dict(benchmark.options),
            sha256=found.sha256,
            pinned=pinned_as(found.sha256),
            haystacks=found.haystacks,
            items=found.items,
            queries=len(chosen),
            with_gold=len(chosen & found.with_gold),
            dropped=len(found.dropped),
        )
