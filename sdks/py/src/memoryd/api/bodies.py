"""Models of the contract's request bodies."""

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from memoryd.moment import require_moment
from memoryd.prompt.prompt import ReaderMode
from memoryd.rank.rank import Fusion, Kernel
from memoryd.retrieve.plan import Mode

_ANNOTATION_BYTES = 4_096

_BLANK = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*")
"""Unicode's White_Space; `str.strip` also strips U+001C to U+001F."""


def _not_blank(value: str) -> str:
    if _BLANK.fullmatch(value):
        raise ValueError("must not be blank")
    return value


def _within_limit(value: str) -> str:
    if len(value.encode()) > _ANNOTATION_BYTES:
        raise ValueError(f"has more than {_ANNOTATION_BYTES} bytes")
    return value


def _integral(value: object) -> object:
    """Accept a float without a fraction as an integer: JSON has one number type."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integer = Annotated[int, BeforeValidator(_integral)]

DateOrDateTime = Annotated[str, AfterValidator(require_moment)]

Annotation = Annotated[str, AfterValidator(_within_limit)]

Text = Annotated[str, AfterValidator(_not_blank)]

T = TypeVar("T", bound=BaseModel)


class Body(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, values: object) -> object:
        """Drop known keys that are null, which means the same as missing."""
        if not isinstance(values, dict):
            return values
        aliases = {field.alias for field in cls.model_fields.values()}
        return {k: v for k, v in values.items() if v is not None or k not in aliases}


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
    """A body of the documents profile, whose keys are snake_case."""

    model_config = ConfigDict(alias_generator=str)


class Rename(StoreBody):
    from_: str = Field(alias="from")
    to: str


class Op(StoreBody):
    type: Literal["write", "append", "delete", "rename"]
    path: str
    # Validated only for the types that need them; otherwise they may be anything.
    to: Any = None
    content_base64: Any = None


class BatchOps(StoreBody):
    ops: list[dict[str, Any]] = Field(min_length=1)
    reason: Annotation | None = None
    message: Annotation | None = None
    author: Annotation | None = None
    email: Annotation | None = None


class FilterBody(Body):
    model_config = ConfigDict(extra="forbid")

    path_prefix: str | None = None
    paths: list[str] | None = None
    tags: list[str] | None = None
    session_ids: list[str] | None = None
    scope: Literal["global", "project", "raw"] | None = None
    project: str | None = None


class RecencyBody(Body):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    now: DateOrDateTime
    relevance: float = Field(ge=0, le=1)
    weight: float = Field(ge=0, le=1)
    decay_days: float = Field(ge=1, le=36_500)

    @model_validator(mode="after")
    def _weights(self) -> "RecencyBody":
        if self.relevance + self.weight > 1:
            raise ValueError("relevance and weight must not exceed 1 together")
        return self


class TemporalBody(Body):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    at: DateOrDateTime
    tolerance_days: float = Field(ge=1, le=36_500)
    boost: float = Field(ge=0, le=1)


class TuningBody(Body):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    fusion: Fusion | None = None
    alpha: float | None = Field(default=None, ge=0, le=1)
    rrf_k: Integer | None = Field(default=None, ge=1, le=10_000)
    pool_factor: Integer | None = Field(default=None, ge=1, le=1_000)
    pool_floor: Integer | None = Field(default=None, ge=1, le=10_000)
    kernel: Kernel | None = None
    recency: RecencyBody | None = None
    temporal: TemporalBody | None = None


class RetrievalBody(Body):
    """The parameters that `search` and `ask` share."""

    mode: Mode = "auto"
    question_date: DateOrDateTime | None = None
    candidate_k: Integer = Field(default=0, ge=0, le=10_000)
    rerank_top_n: Integer = Field(default=0, ge=0, le=1_000)
    filters: FilterBody | None = None
    tuning: TuningBody | None = None


class Search(RetrievalBody):
    query: Text
    top_k: Integer = Field(default=10, ge=1, le=1_000)


class Ask(RetrievalBody):
    question: Text
    top_k: Integer = Field(default=5, ge=1, le=1_000)
    reader_mode: ReaderMode = "basic"
    model: str | None = None
