"""The request bodies of the contract."""

import base64
import re
from datetime import date
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from memoryd.problems import invalid
from memoryd.ranking import Fusion

Mode = Literal["auto", "bm25", "semantic", "hybrid", "hybrid-rerank"]
ReaderMode = Literal["basic", "augmented"]

_REMARK_BYTES = 4_096

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
_INSTANT = re.compile(_DAY.pattern + rf"[Tt]{_CLOCK}:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]{_CLOCK})")
_BLANK = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*")
"""White_Space of Unicode; `str.strip` takes U+001C to U+001F too."""


def _rfc3339(given: str) -> str:
    # RFC 3339 has a year 0, which Python has not; it is a leap year too.
    value = re.sub("^0000", "2000", given)
    if _DAY.fullmatch(value):
        date.fromisoformat(value)
    elif _INSTANT.fullmatch(value):
        date.fromisoformat(value[:10])
    else:
        raise ValueError("neither YYYY-MM-DD nor an RFC 3339 date-time")
    return given


def _not_blank(value: str) -> str:
    if _BLANK.fullmatch(value):
        raise ValueError("must not be empty")
    return value


def _short(value: str) -> str:
    if len(value.encode()) > _REMARK_BYTES:
        raise ValueError(f"more than {_REMARK_BYTES} bytes")
    return value


def _whole(value: object) -> object:
    """A number without fraction is an integer, however JSON spells it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integer = Annotated[int, BeforeValidator(_whole)]
Moment = Annotated[str, AfterValidator(_rfc3339)]
Remark = Annotated[str, AfterValidator(_short)]
Text = Annotated[str, AfterValidator(_not_blank)]


T = TypeVar("T", bound=BaseModel)


class Body(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: object) -> object:
        """An optional key that is null is one that is left out; an unknown one stays unknown."""
        if not isinstance(given, dict):
            return given
        known = {field.alias for field in cls.model_fields.values()}
        return {k: v for k, v in given.items() if v is not None or k not in known}


class CreateBrain(Body):
    brain_id: str
    description: str | None = None


class IngestFile(Body):
    path: str
    content_type: str
    content_base64: str
    title: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class IngestBatch(Body):
    documents: list[dict[str, Any]] = Field(min_length=1, max_length=1024)


class StoreBody(Body):
    """Of the documents profile, whose keys are snake_case."""

    model_config = ConfigDict(alias_generator=str)


class Rename(StoreBody):
    from_: str = Field(alias="from")
    to: str


class Op(StoreBody):
    type: Literal["write", "append", "delete", "rename"]
    path: str
    # Read only by the types that want them; elsewhere they may be anything.
    to: Any = None
    content_base64: Any = None


class BatchOps(StoreBody):
    ops: list[dict[str, Any]] = Field(min_length=1)
    reason: Remark | None = None
    message: Remark | None = None
    author: Remark | None = None
    email: Remark | None = None


class FilterBody(Body):
    model_config = ConfigDict(extra="forbid")

    path_prefix: str | None = None
    paths: list[str] | None = None
    tags: list[str] | None = None
    session_ids: list[str] | None = None
    scope: Literal["global", "project", "raw"] | None = None
    project: str | None = None


class Tuning(Body):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    fusion: Fusion | None = None
    alpha: float | None = Field(default=None, ge=0, le=1)
    rrf_k: Integer | None = Field(default=None, ge=1, le=10_000)
    pool_factor: Integer | None = Field(default=None, ge=1, le=1_000)
    pool_floor: Integer | None = Field(default=None, ge=1, le=10_000)
    recency: Any = None
    temporal: Any = None


class Retrieval(Body):
    """What `search` and `ask` have in common."""

    mode: Mode = "auto"
    question_date: Moment | None = None
    candidate_k: Integer = Field(default=0, ge=0, le=10_000)
    rerank_top_n: Integer = Field(default=0, ge=0, le=1_000)
    filters: FilterBody | None = None
    tuning: Tuning | None = None


class Search(Retrieval):
    query: Text
    top_k: Integer = Field(default=10, ge=1, le=1_000)


class Ask(Retrieval):
    question: Text
    top_k: Integer = Field(default=5, ge=1, le=1_000)
    reader_mode: ReaderMode = "basic"
    model: str | None = None


def parse(model: type[T], raw: bytes) -> T:
    """Read a request body; what is wrong with it is a `validation_error` naming the first fault."""
    try:
        # Read first: of a key that is ignored the validator would skip what is no JSON.
        return model.model_validate(from_json(raw, allow_inf_nan=False))
    except ValidationError as error:
        raise invalid(_describe(error)) from None
    except ValueError as error:
        raise invalid(f"no JSON: {error}") from None


def validated(model: type[T], raw: dict[str, Any]) -> T:
    """As `parse`, of what has been read already."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise invalid(_describe(error)) from None


def decoded(content: str, key: str) -> bytes:
    """The bytes of base64; a validation_error on `key` where it is none."""
    try:
        return base64.b64decode(content, validate=True)
    except ValueError:
        raise invalid(f"{key}: not base64") from None


def _describe(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"])
    return f"{where.removeprefix('.')}: {first['msg']}" if where else first["msg"]
