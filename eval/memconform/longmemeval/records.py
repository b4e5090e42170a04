"""The report of a generated expansion; its schema is versioned."""

from typing import Literal

from memconform.records import Record

EXPANSION_SCHEMA: Literal["memconform/expansion@1"] = "memconform/expansion@1"


class ExpansionFailure(Record):
    """An item or question for which no usable reply came: null in the file."""

    name: str
    code: str
    message: str


class ExpansionReport(Record):
    """What was generated, how, and at what cost; written beside the generated file."""

    schema_version: Literal["memconform/expansion@1"] = EXPANSION_SCHEMA
    kind: str
    path: str
    """Path of the benchmark."""
    format: str
    options: dict[str, str]
    sha256: str
    """Digest of the benchmark's decompressed file; empty for a folder."""
    model: str
    served_models: list[str]
    """The models that the service says it used, cached replies included."""
    prompt_version: str
    prompt_sha256: str
    """The first 12 hex digits."""
    names: int
    """Entries of the file."""
    empty: int
    """Entries without content by the model's own word: no facts, no events, no time."""
    cached: int
    """Replies that cost nothing."""
    failures: list[ExpansionFailure]
    input_tokens: int
    """As the service reports them, failed calls included; `output_tokens` likewise."""
    output_tokens: int
    cost_usd: float
