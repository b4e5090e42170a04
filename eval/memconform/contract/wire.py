"""Base classes of the wire models."""

from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from memconform.contract.names import CONTRACT_VERSION, Mode, Profile, RankBy

__all__ = [
    "CONTRACT_VERSION",
    "OWN",
    "UNCONFIRMED",
    "Closed",
    "JsonValue",
    "Mode",
    "Profile",
    "RankBy",
    "Request",
    "Response",
    "Unknowable",
    "is_unknowable",
    "mode_name",
    "unchanged_alias",
]

JsonValue = Any
"""Any value that JSON can represent."""


class Request(BaseModel):
    """A body that the harness sends."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, defer_build=True
    )

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
        defer_build=True,
    )


class _MayBeUnknown:
    """Marks a field; on the wire it is as strict as if it could not be None."""

    def __get_pydantic_core_schema__(
        self,
        source: Any,  # noqa: ANN401 - any annotation
        handler: GetCoreSchemaHandler,
    ) -> CoreSchema:
        known = next(part for part in get_args(source) if part is not type(None))
        return handler.generate_schema(known)


UNCONFIRMED = "unconfirmed"
"""What reports and results say of a mode that no trace confirms."""


OWN = "own"
"""What they say of the one way in which a memory system searches."""


def mode_name(mode: Mode | None) -> str:
    """The name of an effective mode, `unconfirmed` if it is unknown."""
    return UNCONFIRMED if mode is None else mode.value


T = TypeVar("T")

Unknowable = Annotated[T | None, _MayBeUnknown()]
"""A required value that is None only if a dialect declares that the daemon does not have it; `null`
on the wire is as invalid as for any other required value."""


def is_unknowable(field: FieldInfo) -> bool:
    """Whether a field of a model is `Unknowable`."""
    return any(isinstance(mark, _MayBeUnknown) for mark in field.metadata)
