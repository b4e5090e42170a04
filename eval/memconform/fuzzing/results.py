"""What fuzzing came to, as a record that a machine can read."""

from typing import Any, Literal

from memconform.records import Record
from memconform.storage.provenance import Origin, ReportHeader

FUZZ_SCHEMA: Literal["memconform/fuzz-report@1"] = "memconform/fuzz-report@1"


class FoundDisagreement(Record):
    file: str
    """The case that was written."""
    case: str
    pointer: str
    """Where in the last answer daemons part: into status, media, headers and body."""
    values: dict[str, Any]
    """What each has there, by SDK; a missing one has nothing."""
    requests: int
    """Of the smallest program."""
    steady: bool
    """Whether it comes each time."""


class FuzzReport(Origin, ReportHeader):
    """What `fuzz --json` writes."""

    schema_version: Literal["memconform/fuzz-report@1"] = FUZZ_SCHEMA
    sdks: list[str]
    contract: str
    seed: int
    examples: int
    """Programs that were put to all."""
    requests: int
    """To each daemon."""
    took_s: float
    disagreement: FoundDisagreement | None
