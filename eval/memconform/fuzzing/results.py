"""The machine-readable result of fuzzing."""

from typing import Any, Literal

from pydantic import Field

from memconform.records import Record
from memconform.storage.provenance import Origin, ReportHeader

FUZZ_SCHEMA: Literal["memconform/fuzz-report@1"] = "memconform/fuzz-report@1"


class FoundDisagreement(Record):
    """A disagreement between SDKs, shrunk to a minimal case."""

    file: str
    """Path of the case file that was written."""
    case: str
    """Id of the case."""
    pointer: str
    """JSON pointer to the difference, into failure, status, media, headers and body of the last
    answer. At `/failure`, the values say how a daemon failed to answer: `connection reset`,
    `process ended: exit status 3`, `timeout`, …; empty if it answered."""
    values: dict[str, Any]
    """The value of each SDK at the pointer; an SDK without a value is missing."""
    requests: int
    """Number of requests of the minimal program."""
    steady: bool
    """Whether it occurs each time the program is run."""


class FuzzReport(Origin, ReportHeader):
    """The report that `fuzz --json` writes."""

    schema_version: Literal["memconform/fuzz-report@1"] = FUZZ_SCHEMA
    sdks: list[str]
    contract: str
    seed: int
    examples: int
    """Number of programs that were run on all SDKs."""
    requests: int
    """Number of requests sent to each daemon."""
    took_s: float
    disagreement: FoundDisagreement | None
    connection_resets: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By SDK: how often it reset the connection of a request that creates or deletes a brain, while
    its process lived. Resets of other requests are disagreements at `/failure`."""
