"""Comparisons of stored bench results as written to JSON; the schemas are versioned."""

from typing import Literal

from pydantic import Field

from memconform.records import Record
from memconform.scoring.accuracy import Estimate
from memconform.stats.latency_ratio import LatencyRatio
from memconform.stats.paired_comparison import PairedComparison, ParityVerdict

BENCH_PARITY_SCHEMA: Literal["memconform/bench-parity-report@1"] = (
    "memconform/bench-parity-report@1"
)
BENCH_DIFF_SCHEMA: Literal["memconform/bench-diff-report@1"] = "memconform/bench-diff-report@1"


class ComparedRow(Record):
    """The identity of a row in a comparison, with its rate."""

    name: str
    """The name by which pairs refer to it."""
    address: str
    """`RUN-ID#SYSTEM/STRATEGY`"""
    started_at: str
    version: str | None
    build_hash: str | None
    index: str
    queries: int
    not_measured: int
    rate: Estimate | None
    """The metric in percent; null unless every query was measured."""


class ItemRankings(Record):
    """Similarity of two rows' rankings, over the queries that both measured."""

    compared: int
    equal: int
    """Queries with the same items in the same order."""
    overlap: float | None
    """Mean overlap of the first k items, k being that of the metric; null without queries."""
    rbo: float | None
    """Mean rank-biased overlap, p = 0.9; null without queries."""
    gold_earlier: int
    """Queries whose first gold item the second row ranks earlier, or is alone to rank."""
    gold_later: int
    """Queries whose first gold item the second row ranks later, or does not rank."""


class RowPair(Record):
    """The comparison of two rows."""

    first: str
    second: str
    contrast: PairedComparison
    """A query passes if the metric is 1; queries without gold in the view do not count."""
    not_measured_first: int
    """Queries that the first row did not measure, whether or not the second did."""
    not_measured_second: int
    rankings: ItemRankings


class BenchParityReport(Record):
    """The document that `parity --json` writes for results of `bench`."""

    schema_version: Literal["memconform/bench-parity-report@1"] = BENCH_PARITY_SCHEMA
    verdict: ParityVerdict
    """The worst of the pairs' verdicts."""
    exit_code: int
    reasons: list[str]
    """What was not measured, and settings other than the strategy in which rows differ."""
    suite: str
    queries: int
    """Selected queries, with and without gold."""
    view: str
    metric: str
    margin: float
    alpha: float
    rows: list[ComparedRow]
    pairs: list[RowPair]


class QueryDifference(Record):
    """A query that one of two rows passes."""

    query: str
    haystack: str
    category: str
    gold: list[str]
    first_rank: int | None
    """The rank of the first gold item in the first row; null if it is not ranked."""
    second_rank: int | None


class RowDiff(RowPair):
    """What changed from a row to another."""

    regressions: list[QueryDifference]
    """Queries that only the first row passes."""
    fixes: list[QueryDifference]
    """Queries that only the second row passes."""
    not_measured: list[str]
    """Queries that at least one row did not measure: neither regression nor fix."""
    latency: LatencyRatio | None
    """Null unless both rows have the latency of at least ten queries."""


class BenchDiffReport(Record):
    """The document that `diff --json` writes for results of `bench`."""

    schema_version: Literal["memconform/bench-diff-report@1"] = BENCH_DIFF_SCHEMA
    exit_code: int
    reasons: list[str]
    view: str
    metric: str
    rows: list[ComparedRow]
    pairs: list[RowDiff]
    unpaired: list[str] = Field(default_factory=list)
    """Rows of one result that the other does not have."""
