"""What `diff --json` writes of more than two results, or of a folder of them."""

from typing import Literal

from memconform.bench.records import BenchReport
from memconform.records import Record
from memconform.runs.results import RunSummary

TREND_SCHEMA: Literal["memconform/trend-report@1"] = "memconform/trend-report@1"


class TrendReport(Record):
    """Results over dates and versions, in the order in which they are shown."""

    schema_version: Literal["memconform/trend-report@1"] = TREND_SCHEMA
    exit_code: int = 0
    runs: list[RunSummary]
    """Results of scored answers, without their questions."""
    benches: list[BenchReport]
    """A report of one row each."""
