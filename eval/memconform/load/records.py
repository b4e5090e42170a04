"""The machine-readable result of a load measurement."""

from typing import Literal

from pydantic import Field

from memconform.contract.wire import Mode
from memconform.daemons.kinds import UpstreamKind
from memconform.ingest.records import SeedRecord
from memconform.records import Failure, Incident, Record, SkipRecord
from memconform.storage.provenance import HostOrigin, ReportHeader

Operation = Literal["search", "ask", "ingest"]

LOAD_SCHEMA: Literal["memconform/load-report@1"] = "memconform/load-report@1"


class LatencyRecord(Record):
    """Quantiles in milliseconds of requests of one kind.

    A request that failed, or was not sent, counts as slower than any that was answered. A quantile
    is null if more requests failed than lie above it, or if fewer than one lies above it.
    """

    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    max_ms: float | None
    """The longest of those that were answered; null if none was."""
    histogram: str
    """An HdrHistogram of the answered ones in microseconds, compressed and in base64 (V2), which
    can be added to those of other machines."""


class OperationRecord(Record):
    """What became of the requests of one operation."""

    operation: Operation
    offered: int
    """Requests that the schedule had."""
    sent: int
    answered: int
    """With an answer that honours the contract, in the mode that was requested."""
    errors: dict[str, int]
    """Number of failed requests by code (docs/TROUBLESHOOTING.md); `not_sent` counts those that
    were not sent because too many were open."""
    latency: LatencyRecord | None
    """From the instant at which it was to be sent; null in a closed loop, which has none, and if
    the step was not measured."""
    service: LatencyRecord | None
    """From the instant at which it was sent; null if the step was not measured."""


class SlowReaderRecord(Record):
    """Answers that were read slowly beside the load; no latency counts them."""

    readers: int
    bytes_per_s: int
    opened: int
    """Streams that began."""
    completed: int
    """Streams that were read to their end."""
    interrupted: int
    """Streams that were still being read when the step ended, and were closed."""
    bytes_read: int
    errors: dict[str, int]


class LatenessRecord(Record):
    """How late the harness itself was, in milliseconds, and what it used."""

    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    limit_ms: float
    """Above this 99th percentile the step is not measured."""
    cpu_cores: float
    """Processors that the harness kept busy; it has one event loop, which uses no more than one."""


class ResourceRecord(Record):
    """What the daemon used during a step."""

    rss_peak_bytes: int
    """The largest sampled sum over its processes."""
    cpu_seconds: float
    cpu_cores: float
    """Processors that it kept busy."""


class StepRecord(Record):
    """One load on one SDK."""

    rate: float | None
    """Arrivals per second that were asked for; null in a closed loop."""
    workers: int | None
    """Workers of a closed loop; null in an open one."""
    duration_s: float
    took_s: float
    """Until the last answer."""
    status: Literal["measured", "not_measured"]
    saturated: bool | None
    """Whether the daemon could not keep up; null in a closed loop, and if it was not measured."""
    reasons: list[str]
    """Why it was not measured, or how the daemon was saturated."""
    failure: Failure | None
    """Why it was not measured."""
    offered: int
    sent: int
    answered: int
    offered_per_s: float | None
    """By the schedule, which is random; null in a closed loop."""
    achieved_per_s: float | None
    """Answers per second, null if the step was not measured. In an open loop, the time counts by
    which the answers took longer to come than the requests took to arrive."""
    in_flight_max: int
    in_flight_quarters: list[float]
    """Mean number of open requests that an arrival found, in each quarter of the step; empty in a
    closed loop, and for a quarter without arrivals 0."""
    operations: list[OperationRecord]
    slow_readers: SlowReaderRecord | None
    lateness: LatenessRecord
    daemon: ResourceRecord | None
    """Null if the harness did not start it."""
    machine_cores: int
    machine_cores_busy: float
    """By all programs, the harness and the daemon included."""


class SaturationRecord(Record):
    """Between which rates a daemon stopped keeping up."""

    sustained: float | None
    """The highest measured rate below `saturated_at` that it kept up with."""
    saturated_at: float | None
    """The lowest measured rate that it did not keep up with."""
    statement: str


class SdkLoad(Record):
    """The steps of one SDK."""

    sdk: str
    version: str | None
    build_hash: str | None
    variables: dict[str, str]
    ready_ms: float | None
    seed: SeedRecord | None
    """The brain that was searched; null if it could not be seeded."""
    steady_questions: int
    """Questions that two searches before the load answered with one ranking, to which searches
    under load are held."""
    steps: list[StepRecord]
    saturation: SaturationRecord | None
    """Null without steps of a rate."""
    incident: Incident | None
    """Why later steps are missing."""


class LoadReport(HostOrigin, ReportHeader):
    """The report that `load --json` writes."""

    schema_version: Literal["memconform/load-report@1"] = LOAD_SCHEMA
    run_id: str
    took_s: float
    dataset: str
    dataset_sha256: str
    questions: int
    mode: Mode
    top_k: int
    upstream: UpstreamKind
    seed: int
    duration_s: float
    mix: dict[Operation, float]
    timeout_s: float
    in_flight_limit: int
    most_p99_ms: float | None
    """The 99th percentile of --max-p99."""
    missed: list[str] = Field(default_factory=list)
    """Measured steps that missed it."""
    sdks: list[SdkLoad]
    skipped: list[SkipRecord] = Field(default_factory=list)
