"""What all wire models share, and the contract's enumerations."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

CONTRACT_VERSION = "1"

JsonValue = Any
"""Whatever JSON can hold."""


class Mode(StrEnum):
    """How chunks are retrieved."""

    AUTO = "auto"
    HYBRID = "hybrid"
    HYBRID_RERANK = "hybrid-rerank"
    BM25 = "bm25"
    SEMANTIC = "semantic"


class Profile(StrEnum):
    """A part of the contract that a daemon claims."""

    CORE = "core"
    ASK = "ask"
    DOCUMENTS = "documents"
    EVENTS = "events"
    AUTH = "auth"


class Request(BaseModel):
    """A body that the harness sends; optional keys are left out when they are None."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    def to_body(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def nothing_renamed(name: str) -> str:
    """The alias of a key that is on the wire what it is here."""
    return name


class Closed(Request):
    """A part of a body in which unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


class Response(BaseModel):
    """A body that a daemon sends: types are strict, unknown keys are ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        strict=True,
        extra="ignore",
        allow_inf_nan=False,
    )
