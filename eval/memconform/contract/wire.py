"""What all wire models share."""

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
    "nothing_renamed",
]

JsonValue = Any
"""Whatever JSON can hold."""


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
