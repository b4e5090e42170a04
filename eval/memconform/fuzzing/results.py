"""The machine-readable result of fuzzing."""

from typing import Any, Literal

from pydantic import Field

from memconform.records import Record
from memconform.storage.provenance import Origin, ReportHeader

FUZZ_SCHEMA: Literal["memconform/fuzz-report@1"] = "memconform/fuzz-report@1"


class FoundDisagreement(Record):
    """A disagreement between SDKs, or with the oracle, shrunk to a minimal case."""

    file: str
    """Path of the case file that was written."""
    case: str
    """Id of the case."""
    pointer: str
    """JSON pointer to the difference, into failure, status, media, headers, body and fault of the
    last answer. `/fault` is a violation that values do not show. At `/failure`, the values say how
    a daemon failed to answer: `connection reset`, `process ended: exit status 3`, `timeout`, …;
    empty if it answered."""
    values: dict[str, Any]
    """The value of each SDK at the pointer; an SDK without a value is missing."""
    rule: str = ""
    """The rule that is most likely broken; empty if the SDKs were compared with each other."""
    requests: int
    """Number of requests of the minimal program."""
    found_after: int = 0
    """Number of programs that had been run when it first occurred; 0 in reports that lack it."""
    compared: list[str] = Field(default_factory=list)
    """What was compared: the SDKs, or the oracle and an SDK. The first one is expected."""
    curl: list[str] = Field(default_factory=list)
    """Commands that repeat the program in a new brain; their port is an example."""
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
    against: Literal["oracle"] | None = None
    """What the SDKs were compared with; None: with each other."""
    ignored: list[str] = Field(default_factory=list)
    """Pointers that were not compared."""
    disagreement: FoundDisagreement | None
    """The first one: with the oracle, that of the most basic rule."""
    disagreements: list[FoundDisagreement] = Field(default_factory=list)
    """All of them, of different kinds."""
    corpus_added: int = 0
    """Number of programs that were added to the corpus."""
    connection_resets: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By SDK: how often it reset the connection of a request that creates or deletes a brain, while
    its process lived. Resets of other requests are disagreements at `/failure`."""
