"""What a bench leaves on disk; the schemas are versioned."""

from typing import Literal

from pydantic import Field

from memconform.contract.wire import CONTRACT_VERSION
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.parity.records import PairedComparison
from memconform.records import Failure, Incident, Record
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.provenance import HostOrigin, ReportHeader

BENCH_SCHEMA: Literal["memconform/bench-report@1"] = "memconform/bench-report@1"
JOURNAL_SCHEMA: Literal["memconform/bench-journal@1"] = "memconform/bench-journal@1"


class BenchSettings(Record):
    """What decides the rankings; two benches with the same settings ask the same of a system."""

    format: str
    options: dict[str, str]
    content_sha256: str
    """Of the haystacks as they were read, whatever file they came in."""
    chosen_sha256: str
    """Of the ids of the queries that are put."""
    disputed_sha256: str | None
    """Of the ids in the errata file."""
    pruned_sha256: str | None
    """Of the events and ranges by which it was pruned what each query is searched among."""
    index: Literal["isolated", "shared"]
    ks: list[int]
    contract: str = CONTRACT_VERSION


class Filled(Record):
    """An index, once it was proven to be whole."""

    stage: Literal["filled"] = "filled"
    system: str
    haystack: str
    """Empty where it holds them all."""
    documents: int
    chunks: int
    vectors: int
    ingest_ms: float
    disk_bytes: int | None = None
    """Of the daemon's state behind it."""


class Relevance(Record):
    """A ranking, and what is relevant in it."""

    gold: list[str]
    ranking: list[str] | None = None
    """Where it is another than the query's own."""


class QueryRecord(Record):
    """One query, put once to one system in one way."""

    stage: Literal["query"] = "query"
    system: str
    strategy: str
    haystack: str
    query: str
    category: str
    views: dict[str, Relevance]
    """By what counts as relevant: `all`, and what the benchmark has besides. Those without gold
    are left out, for there is nothing to find."""
    ranking: list[str]
    latency_ms: float | None
    search_ms: float | None
    error: Failure | None = None
    """Why it was not measured."""


Measured = Filled | IndexVerified | QueryRecord | IndexInvalidated
"""What a journal holds between its header and its footer."""


class Estimate(Record):
    """A mean in percent, with its interval of 95 %."""

    value: float
    low: float
    high: float


class Scores(Record):
    queries: int
    metrics: dict[str, Estimate]
    """By names as `recall_any@5`; empty without queries."""


class View(Scores):
    """Scores by one meaning of what is relevant."""

    by_category: dict[str, Scores]


class RowLatency(Record):
    """Milliseconds."""

    answer: QuantileSummary
    """From sending the request to the end of the answer."""
    search: QuantileSummary | None
    """What the daemon says that its search took."""
    tiers: dict[str, float]
    """The share of queries in each of WMB-100K's tiers of speed."""


class Row(Record):
    """One system, asked in one way. Nothing is averaged unless every query was measured."""

    system: str
    strategy: str
    measured: bool
    why: list[str] = Field(default_factory=list)
    """What kept it from being measured."""
    queries: int
    not_measured: int
    views: dict[str, View] = Field(default_factory=dict)
    latency: RowLatency | None = None
    rerank_adds_ms: QuantileSummary | None = None
    """What each query took longer than without the reranker."""


class SystemRecord(Record):
    """A system, and what it took to fill it."""

    name: str
    version: str | None = None
    build_hash: str | None = None
    upstream: str | None = None
    variables: dict[str, str] = Field(default_factory=dict)
    embedder: str | None = None
    ready_ms: float | None = None
    rss_peak_bytes: int | None = None
    cpu_seconds: float | None = None


class FilledSystem(SystemRecord):
    documents: int
    chunks: int
    vectors: int
    ingest_s: float
    documents_per_s: float | None
    disk_bytes: int | None
    """The most that its state came to."""
    incident: Incident | None


class Alike(Record):
    """How many rankings of several systems are equal, query by query."""

    strategy: str
    systems: list[str]
    compared: int
    """Queries that all of them were measured on."""
    equal: int
    differs: list[str]
    """The first few queries that are not, and how."""


class BenchPair(Record):
    """Whether two systems find as much as each other."""

    strategy: str
    first: str
    second: str
    metric: str
    """What a query passes by."""
    contrast: PairedComparison


class DataSource(Record):
    """Where the queries come from."""

    path: str
    format: str
    options: dict[str, str]
    made: list[str]
    """What was made of it, and chosen from it."""
    sha256: str
    """Of a file's bytes, unpacked; empty of a folder."""
    pinned: str | None
    """The public source whose digest that is."""
    haystacks: int
    items: int
    queries: int
    """Those that were put."""
    with_gold: int
    dropped: int
    silent: int
    """Items without a text, which nobody can find."""


class BenchReport(HostOrigin, ReportHeader):
    """What `bench --json` writes."""

    schema_version: Literal["memconform/bench-report@1"] = BENCH_SCHEMA
    run_id: str
    suite: str
    took_s: float
    seed: int
    settings: BenchSettings
    source: DataSource
    concurrency: int
    resumed_from: str | None
    overhead_ms: QuantileSummary | None
    """What a query takes against a server that answers at once: it is in every latency."""
    systems: list[FilledSystem]
    rows: list[Row]
    alike: list[Alike]
    parity: list[BenchPair] = Field(default_factory=list)


class JournalHeader(Record):
    stage: Literal["header"] = "header"
    schema_version: Literal["memconform/bench-journal@1"] = JOURNAL_SCHEMA
    run_id: str
    settings: BenchSettings
    systems: dict[str, str]
    """What decides each system's rankings, as a digest, by its name."""
