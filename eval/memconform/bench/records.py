"""The report and journal of a bench as written to disk; the schemas are versioned."""

import hashlib
from typing import Literal

from pydantic import Field

from memconform.bench.behaviour import SystemBehaviour
from memconform.contract.wire import CONTRACT_VERSION, RankBy
from memconform.datasets.sharding import ShardRecord
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.measuring.observation import Observation
from memconform.measuring.validity import Place
from memconform.records import Failure, Incident, Record
from memconform.scoring.accuracy import Estimate
from memconform.stats.paired_comparison import PairedComparison
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.journal import JournalHeader
from memconform.storage.provenance import HostOrigin, PartOrigin, ReportHeader

BENCH_SCHEMA: Literal["memconform/bench-report@1"] = "memconform/bench-report@1"
JOURNAL_SCHEMA: Literal["memconform/bench-journal@1"] = "memconform/bench-journal@1"


class BenchSettings(Record):
    """Settings that affect rankings; benches with equal settings ask a system the same."""

    format: str
    options: dict[str, str]
    content_sha256: str
    """Digest of the haystacks, independent of the file format."""
    chosen_sha256: str
    """Digest of the ids of the selected queries."""
    disputed_sha256: str | None
    """Digest of the errata: of disputed queries, and of corrected gold."""
    pruned_sha256: str | None
    """Digest of the events and ranges by which each query's candidates are pruned."""
    index: Literal["isolated", "shared", "category"]
    ks: list[int]
    shard: ShardRecord | None = None
    """Which part of the selected queries was asked; null for all."""
    unit: Literal["item", "memory"] = "item"
    """What a search is asked for: enough chunks to rank k items, or k chunks, whose texts are kept.
    """
    contract: str = CONTRACT_VERSION

    def asked(self) -> str:
        """SHA-256 of what is asked of what: rows with equal ones are of the same queries."""
        parts = [self.content_sha256, self.chosen_sha256, self.pruned_sha256]
        if self.unit != "item":
            parts.append(self.unit)
        if self.shard is not None:
            parts.append(self.shard.label())
        return hashlib.sha256(repr(tuple(parts)).encode()).hexdigest()


class IndexRecord(Record):
    """The size and cost of an index that was verified to be complete."""

    stage: Literal["filled"] = "filled"
    system: str
    haystack: str
    """Empty if the index contains all haystacks."""
    documents: int
    chunks: int | None
    """Null if the daemon does not count them; `vectors` likewise."""
    vectors: int | None
    ingest_ms: float
    disk_bytes: int | None = None
    """Size of the daemon's state afterwards; null for a daemon that the harness did not start."""


class OfficialScoring(Record):
    """Parameters of LongMemEval's released retrieval metrics for one query."""

    relevant: int
    """How many entries of the index are relevant."""
    by_session: bool
    """Whether ranks are those of sessions, and the ranking names the session of each turn."""


class SessionSizes(Record):
    """The numbers of searched turns of the sessions that a ranking of turns is scored by."""

    relevant: list[int]
    """Sizes of the relevant sessions that are searched."""
    other: list[int]


class Relevance(Record):
    """The relevant items of a query in one view."""

    gold: list[str]
    ranking: list[str] | None = None
    """The ranking to score, if it is not the query's own; ids may repeat with `official`."""
    searched_gold: int | None = None
    """How many of them are among the searched items; null in older results, and where sessions of
    turns are scored."""
    official: OfficialScoring | None = None
    """How the benchmark's released code scores the ranking; null for the standard metrics alone."""
    session_sizes: SessionSizes | None = None
    """Null in older results, and where items are scored."""


class QueryRecord(Observation):
    """The measurement of one query on one system with one strategy."""

    stage: Literal["query"] = "query"
    system: str
    strategy: str
    haystack: str
    query: str
    position: int = 0
    """Its place among the selected queries, in the order of the benchmark; 0 in older results."""
    cluster: str | None = None
    """What it shares with queries that are not independent of it; null if that is the haystack."""
    category: str
    views: dict[str, Relevance]
    """By the definition of relevance: `all`, and those that the benchmark adds. Views without gold
    are omitted, because there is nothing to find."""
    searched: int | None = None
    """How many items the ranking is made of; null in older results."""
    ranking: list[str]
    memories: list[str] | None = None
    """The texts that were returned, best first; null unless `settings.unit` is `memory`."""
    redacted: bool = False
    """Whether these texts contain secrets, which are masked here, so that nobody can judge them."""
    error: Failure | None = None
    """Why the query was not measured."""
    answer: str | None = None
    """What the daemon's own reader answered, with `--answers`."""
    answer_ranking: list[str] | None = None
    """The items that it retrieved for this; null without an answer, and in older results."""
    answer_error: Failure | None = None
    """Why there is no answer, if there should be one."""

    @property
    def cluster_name(self) -> str:
        return self.haystack if self.cluster is None else self.cluster

    @property
    def key(self) -> tuple[str, str, str]:
        """What it measures."""
        return self.system, self.strategy, self.query

    @property
    def place(self) -> Place:
        """In which index, and how it was searched."""
        return Place(self.system, self.haystack, self.strategy)


JournalRecord = IndexRecord | IndexVerified | QueryRecord | IndexInvalidated
"""The records of a journal between its header and its footer."""


class Scores(Record):
    """Mean metrics over a set of queries."""

    queries: int
    metrics: dict[str, Estimate]
    """By names such as `recall_any@5`; empty without queries."""


class View(Scores):
    """Scores by one definition of relevance."""

    by_category: dict[str, Scores]


class RowLatency(Record):
    """Latencies of a row in ms."""

    answer: QuantileSummary
    """From sending the request to the end of the answer."""
    search: QuantileSummary | None
    """The search time that the daemon reports."""
    tiers: dict[str, float]
    """The share of queries in each of WMB-100K's speed tiers."""


class Ceiling(Record):
    """What rankings of exactly the right evidence score by the benchmark's own gold, in percent."""

    scope: str
    """`all`, a category, or `corrected gold`: the queries whose gold the errata correct."""
    queries: int
    corrected: int | None = None
    """How many of them have corrected gold, on which the ceiling rests; null in older results."""
    metrics: dict[str, float]


class AboveCeiling(Record):
    """A raw score that exceeds a ceiling, both in percent: it rewards the wrong evidence."""

    scope: str
    metric: str
    score: float
    ceiling: float
    corrected: int | None = None
    """As of the ceiling."""


class ChanceLevel(Record):
    """What a random ranking scores, in percent."""

    every_item_relevant: bool
    """Whether all searched items of every query are relevant: any ranking is perfect."""
    metrics: dict[str, float]
    """The expected `recall_any` and `recall_all` at every k."""


class ErrataReport(Record):
    """The errata by which the view `undisputed` corrects the view `all`."""

    name: str
    """That of errata that ship with memconform, or the file's path."""
    shipped: bool
    disputed: int
    """Selected queries that the corrected view leaves out."""
    corrected: int
    """Selected queries with other gold in the corrected view."""
    noted: int
    """Selected queries with a defect that does not affect their gold."""
    ceilings: list[Ceiling]
    """Empty unless a row was measured; only scopes in which enough gold is corrected."""


class Row(Record):
    """One system with one strategy; nothing is averaged unless every query was measured."""

    system: str
    strategy: str
    kernel: str | None = None
    """The similarity of its vectors, such as `cosine`: what was requested and the trace confirmed,
    or the contract's default. Null if it compares none, or the system does not say."""
    ties: str | None = None
    """How equal scores are ordered; null if the system does not say, and in older results."""
    measured: bool
    why: list[str] = Field(default_factory=list)
    """Why the row was not measured."""
    queries: int
    not_measured: int
    views: dict[str, View] = Field(default_factory=dict)
    latency: RowLatency | None = None
    short_latencies: int = 0
    """Number of queries whose latency is below the time that the system says it took: the clocks
    disagree, and the latencies mean nothing."""
    rising_scores: int = 0
    """Number of rankings in which a score rises, which `--rank-by position` accepts."""
    short_rankings: int = 0
    """Number of rankings with fewer items than there are, which a dialect accepts."""
    skipped_stages: dict[str, int] = Field(default_factory=dict)
    """Number of queries in mode hybrid-rerank that were not reranked, by the daemon's reason."""
    null_lists: int = 0
    """Number of empty rankings for which null was sent, which violates core.search.shape."""
    empty_rankings: int = 0
    """Number of queries for which nothing was retrieved."""
    rerank_adds_ms: QuantileSummary | None = None
    """Additional latency per query in ms, compared with the same strategy without the reranker."""
    above_ceilings: list[AboveCeiling] = Field(default_factory=list)
    unanswered: int = 0
    """Measured queries that the system's own reader did not answer, with `--answers`."""


class SystemRecord(Record):
    """A system and the resources it used."""

    name: str
    version: str | None = None
    build_hash: str | None = None
    upstream: str | None = None
    variables: dict[str, str] = Field(default_factory=dict)
    embedder: str | None = None
    rank_by: RankBy = "score"
    """What ranks a daemon's results; `position`, by flag or dialect, permits rising scores."""
    official_items: bool = False
    """Whether it indexed what the benchmark's released code indexes, and not the items that the
    other systems have."""
    ready_ms: float | None = None
    rss_peak_bytes: int | None = None
    cpu_seconds: float | None = None
    behaviour: SystemBehaviour | None = None
    """Null for a system whose index is proven, and in older results."""


class SystemReport(SystemRecord):
    """A system with the totals of its indexes."""

    documents: int
    chunks: int | None
    """Null if the daemon does not count them; `vectors` likewise."""
    vectors: int | None
    ingest_s: float | None
    documents_per_s: float | None
    disk_bytes: int | None
    """The largest size of its state. Null in a resumed bench, as are the times, the memory and the
    CPU time: an earlier session used some of each."""
    incident: Incident | None


class RankingAgreement(Record):
    """The number of queries on which several systems return equal rankings."""

    strategy: str
    systems: list[str]
    compared: int
    """Queries that were measured on all of them."""
    equal: int
    differs: list[str]
    """The first few differences, one line each."""


class BenchPair(Record):
    """The comparison of two systems' pass rates."""

    strategy: str
    """That of the first."""
    first: str
    second: str
    second_strategy: str | None = None
    """Null in older results, where it is that of the first."""
    metric: str
    """The metric by which a query passes."""
    contrast: PairedComparison


class DataSource(Record):
    """The benchmark that the queries come from."""

    path: str
    format: str
    options: dict[str, str]
    made: list[str]
    """How it was transformed and its queries selected."""
    sha256: str
    """Digest of the decompressed file; empty for a folder."""
    pinned: str | None
    """The public source with that digest."""
    haystacks: int
    items: int
    queries: int
    """Selected queries."""
    with_gold: int
    dropped: int
    silent: int
    """Items without text, which no system can retrieve."""
    all_with_gold: int | None = None
    """Queries with gold, selected or not; null in older results, as `all_clusters`."""
    all_clusters: int | None = None
    """How many haystacks these are about, or clusters that the dataset names."""

    def size(self) -> dict[str, int | None]:
        """The fields of a `PairedComparison` that say how much there is to compare."""
        return {"dataset_questions": self.all_with_gold, "dataset_clusters": self.all_clusters}


class BenchReport(HostOrigin, ReportHeader):
    """The document that `bench --json` writes."""

    schema_version: Literal["memconform/bench-report@1"] = BENCH_SCHEMA
    run_id: str
    suite: str
    took_s: float
    seed: int
    settings: BenchSettings
    source: DataSource
    concurrency: int
    resumed_from: str | None
    """The bench whose measurements were taken over; null if none were. `took_s` is without it."""
    parts: list[PartOrigin] = Field(default_factory=list)
    """What a merged report was made of."""
    overhead_ms: QuantileSummary | None
    """Latency against a server that answers at once; it is part of every latency. Null without
    latencies."""
    systems: list[SystemReport]
    rows: list[Row]
    alike: list[RankingAgreement]
    parity: list[BenchPair] = Field(default_factory=list)
    with_bm25: list[BenchPair] = Field(default_factory=list)
    """Each other row beside that of BM25; empty unless a system behind an adapter was measured."""
    errata: ErrataReport | None = None
    chance: dict[str, ChanceLevel] = Field(default_factory=dict)
    """By view; empty unless a row was measured."""

    def view_names(self) -> list[str]:
        """The views that any row has, in their order."""
        return list(dict.fromkeys(name for row in self.rows for name in row.views))


class BenchJournalHeader(JournalHeader):
    """The first line of a bench's journal."""

    schema_version: Literal["memconform/bench-journal@1"] = JOURNAL_SCHEMA
    run_id: str
    settings: BenchSettings
    systems: dict[str, str]
    """By name, a digest of everything that affects a system's rankings besides the strategy."""
