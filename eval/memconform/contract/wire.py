"""Base classes of the wire models."""

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from memconform.contract.names import CONTRACT_VERSION, Mode, Profile

__all__ = [
    "CONTRACT_VERSION",
    "Closed",
    "JsonValue",
    "Mode",
    "Profile",
    "Request",
    "Response",
    "unchanged_alias",
]

JsonValue = Any
"""Any value that JSON can represent."""


class Request(BaseModel):
    """A body that the harness sends."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    def to_body(self) -> dict[str, Any]:
        """Return the JSON object to send, without the keys that are None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def unchanged_alias(name: str) -> str:
    """Use a field's own name on the wire; the alias generator of models with snake_case keys."""
    return name


class Closed(Request):
    """An object inside a request body, in which unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid")


class Response(BaseModel):
    """A body that a daemon sends; types are strict, unknown keys are ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        strict=True,
        extra="ignore",
        allow_inf_nan=False,
    )
