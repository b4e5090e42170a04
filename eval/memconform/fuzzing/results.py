"""The machine-readable result of fuzzing."""

from typing import Any, Literal

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
    """JSON pointer to the difference, into status, media, headers and body of the last answer."""
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
