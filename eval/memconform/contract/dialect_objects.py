"""The JSON objects of the contract that a dialect may describe, and models that may lack parts."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, create_model
from pydantic.alias_generators import to_snake
from pydantic.fields import FieldInfo

from memconform.contract.ask import (
    AnswerDelta,
    AskRequest,
    Citation,
    Done,
    Retrieve,
    StreamError,
    Usage,
)
from memconform.contract.core import (
    Brain,
    BrainItem,
    Brains,
    Chunk,
    CreateBrain,
    Filters,
    Health,
    IngestBatch,
    Ingested,
    IngestedBatch,
    IngestFile,
    SearchRequest,
    SearchResponse,
    Trace,
    Tuning,
    Version,
)
from memconform.contract.documents import BatchOps, Committed, Listing, Op, Rename, Stat
from memconform.contract.events import Change
from memconform.contract.wire import is_unknowable

M = TypeVar("M", bound=BaseModel)

REQUESTS = (
    *(AskRequest, BatchOps, CreateBrain, Filters, IngestBatch, IngestFile, Op, Rename),
    *(SearchRequest, Tuning),
)
_RESPONSES = (
    *(AnswerDelta, Brain, BrainItem, Brains, Change, Chunk, Citation, Committed, Done, Health),
    *(
        Ingested,
        IngestedBatch,
        Listing,
        Retrieve,
        SearchResponse,
        Stat,
        StreamError,
        Trace,
        Usage,
        Version,
    ),
)
OBJECTS: dict[str, type[BaseModel]] = {
    to_snake(model.__name__): model for model in (*REQUESTS, *_RESPONSES)
}
"""The JSON objects of the contract whose keys a dialect may rename, by name."""

PATHS = {
    *(
        (Chunk, "path"),
        (Ingested, "path"),
        (Citation, "path"),
        (IngestFile, "path"),
        (Stat, "path"),
    ),
    *((Filters, "paths"), (Filters, "path_prefix"), (Op, "path"), (Op, "to"), (Rename, "from_")),
    *((Rename, "to"), (Change, "path"), (Change, "old_path")),
}
"""The fields that hold paths of documents."""

FREE_FORM = {(Chunk, "metadata"), (IngestFile, "metadata"), (Trace, "tuning")}
"""Fields whose keys belong to a document or an implementation."""


def fields_by_key(model: type[BaseModel]) -> dict[str, tuple[str, FieldInfo]]:
    """Names and fields of a model by their keys on the wire."""
    return {field.alias or name: (name, field) for name, field in model.model_fields.items()}


def can_be_unknown(field: FieldInfo) -> bool:
    """Whether a measurement can do without a field."""
    return is_unknowable(field) or not field.is_required() or model_of(field.annotation) is Trace


def model_of(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any annotation
    """The wire model within an annotation such as `list[Chunk]`; None if there is none."""
    return next(_models_of(annotation), None)


def _models_of(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_of(part)


@cache
def loosened(model: type[M]) -> type[M]:
    """Return a subclass in which every unknowable field may be missing, and is then None."""
    fields: Mapping[str, Any] = {
        name: (_loosened_annotation(field.annotation), _loosened_field(field))
        for name, field in model.model_fields.items()
        if is_unknowable(field) or model_of(field.annotation) is not None
    }
    return create_model(model.__name__, __base__=model, **fields)


def _loosened_field(field: FieldInfo) -> FieldInfo:
    loose = FieldInfo.merge_field_infos(field)
    if is_unknowable(field):
        loose.default = None
    return loose


def _loosened_annotation(annotation: Any) -> Any:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return loosened(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if model_of(annotation) is None:
        return annotation
    loose = tuple(_loosened_annotation(part) for part in arguments)
    return Union[loose] if origin in (Union, UnionType) else origin[loose]  # noqa: UP007 - dynamic
