"""The plan of a bench: benchmark, settings, queries and systems."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memconform.bench.records import BenchJournalHeader, BenchSettings, DataSource
from memconform.bench.system import System
from memconform.bench.tasks import QueryPlanner
from memconform.contract.wire import JsonValue
from memconform.datasets.benchmarks import Benchmark
from memconform.datasets.errata import Errata
from memconform.datasets.haystacks import DroppedEntry, Haystack
from memconform.datasets.sources import pinned_as, pinned_folder
from memconform.datasets.time_phrases import to_date_time
from memconform.errors import UsageError
from memconform.printing.plurals import plural


@dataclass(frozen=True, slots=True)
class BenchmarkScan:
    """Counts, ids and digests of a benchmark, from reading it once."""

    sha256: str
    """Digest of its decompressed file; empty for a folder."""
    content_sha256: str
    """Digest of its haystacks, independent of the file format."""
    haystacks: int
    items: int
    queries: Mapping[str, str]
    """The category of each query by id, in the order of the file."""
    homes: Mapping[str, str]
    """The haystack of each query by id."""
    with_gold: frozenset[str]
    """Ids of the queries that have gold."""
    dropped: tuple[DroppedEntry, ...]
    items_without_text: int
    pinned: str | None = None
    """The public source that has exactly these bytes."""
    clusters: int | None = None
    """How many clusters, or else haystacks, the queries with gold come in."""
    unknown_gold: tuple[str, ...] = ()
    """Corrected gold that the benchmark does not have, with its question."""
    changed_gold: frozenset[str] = frozenset()
    """Ids of the queries whose corrected gold differs from the benchmark's."""
    items_in_sessions: int = 0
    undated: Mapping[str, str | None] = field(default_factory=dict)
    """By id of a query without a valid date, what it has instead."""

    def require_sessions(self) -> None:
        """Check that there are turns, before anything is ingested.

        Raises:
            UsageError: if no item is of a session (`no_sessions`).
        """
        if not self.items_in_sessions:
            raise UsageError(
                "no item is of a session, which --mode conversation needs",
                code="no_sessions",
                hint="give items a group, or measure other modes",
            )

    def require_question_dates(self, chosen: Collection[str]) -> None:
        """Check that each chosen query has a date, before anything is ingested.

        Raises:
            UsageError: if one has none (`no_question_date`).
        """
        undated = [query for query in self.undated if query in chosen]
        if undated:
            raise UsageError(
                f"{plural(len(undated), 'question')} without a valid date, which --recency and"
                f" --temporal need; the first is {undated[0]}: {self.undated[undated[0]]!r}",
                code="no_question_date",
                hint="drop these flags, or choose other questions with --ids or --category",
            )


class ContentDigest:
    """SHA-256 of haystacks, over everything that affects queries and scores."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()

    def add(self, haystack: Haystack) -> None:
        self._add(haystack.id)
        for item in (*haystack.items, *haystack.official_items):
            self._add(item.id, item.text, item.group, item.date, dict(item.metadata), item.source)
        for query in haystack.queries:
            self._add(query.id, query.question, query.category, query.gold)
            self._add(query.question_date, query.abstain)
            if query.cluster not in (None, query.id):
                self._add(query.cluster)

    def _add(self, *values: JsonValue) -> None:
        self._sha256.update(json.dumps(values).encode() + b"\n")

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


def scan(
    benchmark: Benchmark, corrected_gold: Mapping[str, tuple[str, ...]] | None = None
) -> BenchmarkScan:
    """Read a benchmark to its end; `corrected_gold` is checked against its items.

    Raises:
        UsageError: if the benchmark is invalid, as reading it does.
    """
    digest = ContentDigest()
    counts: Counter[str] = Counter()
    queries: dict[str, str] = {}
    homes: dict[str, str] = {}
    with_gold: list[str] = []
    clusters: set[str] = set()
    dropped: list[DroppedEntry] = []
    unknown_gold: list[str] = []
    changed_gold: set[str] = set()
    undated: dict[str, str | None] = {}
    for haystack in benchmark:
        digest.add(haystack)
        if corrected_gold:
            unknown_gold += _unknown_gold(haystack, corrected_gold)
            changed_gold |= _changed_gold(haystack, corrected_gold)
        without_text = sum(not item.text for item in haystack.items)
        in_sessions = sum(bool(item.group) for item in haystack.items)
        counts.update(haystacks=1, items=len(haystack.items), in_sessions=in_sessions)
        counts.update(without_text=without_text)
        queries |= {query.id: query.category for query in haystack.queries}
        homes |= {query.id: haystack.id for query in haystack.queries}
        scored = [query for query in haystack.queries if query.gold]
        with_gold += [query.id for query in scored]
        clusters |= {haystack.id if q.cluster is None else q.cluster for q in scored}
        dropped += haystack.dropped
        undated |= {
            query.id: query.question_date
            for query in haystack.queries
            if to_date_time(query.question_date) is None
        }
    return BenchmarkScan(
        sha256=benchmark.sha256,
        content_sha256=digest.hexdigest(),
        haystacks=counts["haystacks"],
        items=counts["items"],
        queries=queries,
        homes=homes,
        with_gold=frozenset(with_gold),
        dropped=tuple(dropped),
        items_without_text=counts["without_text"],
        pinned=(
            pinned_folder(benchmark.path)
            if benchmark.format.is_folder
            else pinned_as(benchmark.sha256)
        ),
        clusters=len(clusters),
        items_in_sessions=counts["in_sessions"],
        unknown_gold=tuple(unknown_gold),
        changed_gold=frozenset(changed_gold),
        undated=undated,
    )


def positions_of(survey: BenchmarkScan, chosen: Collection[str]) -> dict[str, int]:
    """The places of the chosen queries among each other, in the order of the benchmark."""
    return {query: place for place, query in enumerate(filter(chosen.__contains__, survey.queries))}


def _changed_gold(haystack: Haystack, corrected_gold: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {
        query.id
        for query in haystack.queries
        if set(corrected_gold.get(query.id, query.gold)) != set(query.gold)
    }


def _unknown_gold(
    haystack: Haystack, corrected_gold: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    items: set[str] = set()
    for query in haystack.queries:
        if query.id in corrected_gold:
            items = items or {item.id for item in haystack.items}
            for gold in corrected_gold[query.id]:
                if gold not in items:
                    yield f"{query.id}: {haystack.id} has no item {gold!r}"


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """Everything that a bench needs to run."""

    suite: str
    benchmark: Benchmark
    scan: BenchmarkScan
    settings: BenchSettings
    positions: Mapping[str, int]
    """The place of each query among the selected ones, in a shard among those of all shards."""
    planner: QueryPlanner
    systems: tuple[System, ...]
    seed: int
    concurrency: int = 1
    shuffle: int | None = None
    """Seed for shuffling the queries, which must not change any ranking."""
    answers: bool = False
    """Whether daemons also answer each question."""
    command: tuple[str, ...] = ()
    transformations: tuple[str, ...] = ()
    """How the benchmark was transformed and its queries selected, in words."""
    errata: Errata | None = None
    """The errata of the benchmark's questions."""
    resumed: Path | None = None
    """The journal of the bench that this one resumes."""

    def read(self) -> Iterator[Haystack]:
        """Read the haystacks again.

        Raises:
            UsageError: if they have changed since the scan (`dataset_changed`).
        """
        digest = ContentDigest()

        def digested(haystack: Haystack) -> Haystack:
            digest.add(haystack)
            return haystack

        # By `map`, which does not keep what it yielded.
        yield from map(digested, self.benchmark)
        if digest.hexdigest() != self.scan.content_sha256:
            raise UsageError(
                f"{self.benchmark.path} changed while it was being used",
                code="dataset_changed",
                hint="run again; the measurements are in the journal of the run's folder",
            )

    def journal_header(self, run_id: str) -> BenchJournalHeader:
        return BenchJournalHeader(
            run_id=run_id,
            settings=self.settings,
            systems={system.name: system.identity for system in self.systems},
        )

    def source(self) -> DataSource:
        benchmark, scan, query_ids = self.benchmark, self.scan, self.planner.query_ids
        return DataSource(
            path=str(benchmark.path.resolve()),
            format=benchmark.format.name,
            options=dict(benchmark.options),
            made=list(self.transformations),
            sha256=scan.sha256,
            pinned=scan.pinned,
            haystacks=scan.haystacks,
            items=scan.items,
            queries=len(query_ids),
            with_gold=len(query_ids & scan.with_gold),
            dropped=len(scan.dropped),
            silent=scan.items_without_text,
            all_with_gold=len(scan.with_gold),
            all_clusters=scan.clusters,
        )
