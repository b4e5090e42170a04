"""What all wire models share, and the contract's enumerations."""

import json
from collections import Counter
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
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


class DuplicateKeyError(ValueError):
    """An object of a JSON text has a key twice; which of the values counts is up to each reader."""


def refuse_duplicate_keys(text: str | bytes) -> None:
    """Raise DuplicateKeyError where an object of `text` has a key twice.

    What is no JSON passes: it is for the caller's parser to say what is wrong with it.
    """
    try:
        json.loads(text, object_pairs_hook=_unique)
    except DuplicateKeyError:
        raise
    except (ValueError, RecursionError):
        return


def _unique(pairs: list[tuple[str, Any]]) -> None:
    """Keeps nothing: only the keys matter."""
    if len(pairs) > 1 and len({key for key, _ in pairs}) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise DuplicateKeyError(f"key {counts.most_common(1)[0][0]!r} is given twice")


def describe_mismatch(error: ValidationError) -> str:
    """The first thing that a body gets wrong, as `chunks.0.score: …`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
