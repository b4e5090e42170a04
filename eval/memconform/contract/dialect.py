"""How a daemon's wire differs from the contract's: a pure translation of names. No I/O.

A dialect renames and moves; it never invents. A part that the daemon does not have is declared
(`false`, or a trailing `?`), and its value is then unknown, which is None in the models. A key that
is missing without such a declaration, a `null`, or a value of another type remains a violation.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator
from pydantic.alias_generators import to_pascal, to_snake
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
from memconform.contract.strict_json import require_unique_keys
from memconform.contract.wire import Request, is_unknowable

Operation = Literal[
    "health", "version", "list_brains", "create_brain", "brain", "delete_brain", "ingest_file",
    "ingest_batch", "search", "ask", "read_document", "has_document", "stat_document",
    "list_documents", "write_document", "append_document", "delete_document", "rename_document",
    "batch_ops", "events",
]  # fmt: skip
"""The routes of the contract, by the names that `[dialect.routes]` uses."""

_REQUESTS = (
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
    to_snake(model.__name__): model for model in (*_REQUESTS, *_RESPONSES)
}
"""The JSON objects of the contract whose keys a dialect may rename, by name."""

_PATHS = {
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

_FREE_FORM = {(Chunk, "metadata"), (IngestFile, "metadata"), (Trace, "tuning")}
"""Fields whose keys belong to a document or an implementation."""

EVENT_NAMES = ("retrieve", "answer_delta", "citation", "error", "done")

M = TypeVar("M", bound=BaseModel)


class DialectError(ValueError):
    """A message cannot be translated: `code` is `bad_body`, or `not_in_dialect` for a request.

    `place` is the missing or ambiguous key, with `*` for an index.
    """

    def __init__(self, code: str, message: str, place: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = re.sub(r"\[\d+\]", ".*", place)


def _as_list(names: object) -> object:
    return [names] if isinstance(names, str) else names


Names = Annotated[list[str] | Literal[False], BeforeValidator(_as_list)]
"""Where a value is found: keys joined by `.`, the first of several that is present. A trailing `?`
says that all of them may be missing; False that the daemon has no such value."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PathMapping(_Table):
    """How the path of a document is written on the daemon's wire: prefix + path + suffix."""

    prefix: str = ""
    suffix: str = ""

    def to_daemon(self, path: str) -> str:
        """Return the daemon's path of a document."""
        return f"{self.prefix}{path}{self.suffix}"

    def from_daemon(self, path: str) -> str:
        """Return the document's path; a path that is not of this form is returned unchanged."""
        inner = path.removeprefix(self.prefix)
        if len(inner) + len(self.prefix) != len(path) or not inner.endswith(self.suffix):
            return path
        return inner.removesuffix(self.suffix)


class Auth(_Table):
    """How the bearer token of `MEMCONFORM_AUTH_TOKEN` is sent."""

    header: str = "Authorization"
    value: str = Field(default="Bearer {token}", pattern=r"\{token\}")


class Choice(_Table):
    """A cause of red checks that is a choice of the dialect, not a defect."""

    cause: str = Field(min_length=1)
    """The cause as `conform` prints it; `*` matches any part of it."""
    reason: str = Field(min_length=1)


class Dialect(_Table):
    """A dialect of the contract, from `[dialect]` of an sdk.toml or a shipped file."""

    name: str = "custom"
    keys: Literal["camel", "snake", "pascal", "any"] = "camel"
    """The style of keys in responses; `any` ignores case and underscores."""
    request_keys: Literal["camel", "snake", "pascal"] = "camel"
    """The style of keys in requests."""
    counts: Literal["brain", "listing", "none"] = "brain"
    """Where documents are counted: in the brain, by listing the stored documents, or nowhere."""
    routes: dict[Operation, str | Literal[False]] = Field(default_factory=dict)
    """`METHOD /path` by operation, with `{brain}` for the brain's id; False if there is none."""
    statuses: dict[Operation, int] = Field(default_factory=dict)
    """Status of a success, by operation, where it differs from the contract's."""
    objects: dict[str, dict[str, Names]] = Field(default_factory=dict)
    """By object and by the contract's key: the daemon's key."""
    settings: dict[str, str] = Field(default_factory=dict)
    """By `NAME=value`, as cases set a variable of the contract: the daemon's `NAME=value`; empty to
    set nothing."""
    events: dict[Literal["retrieve", "answer_delta", "citation", "error", "done"], str] = Field(
        default_factory=dict
    )
    """The daemon's event name by the contract's."""
    paths: PathMapping = PathMapping()
    auth: Auth = Auth()
    choices: list[Choice] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_routes(self) -> "Dialect":
        for operation, route in self.routes.items():
            method, _, path = str(route or "GET /").partition(" ")
            if method not in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") or path[:1] != "/":
                raise ValueError(f'routes.{operation}: write "METHOD /path", not {route!r}')
            if route is False and operation not in _OPTIONAL_ROUTES:
                raise ValueError(
                    f"routes.{operation}: a daemon needs this route; only"
                    f" {', '.join(_OPTIONAL_ROUTES)} may be false"
                )
        return self

    @model_validator(mode="after")
    def _check_objects(self) -> "Dialect":
        for name, keys in self.objects.items():
            model = OBJECTS.get(name)
            if model is None:
                raise ValueError(f"objects.{name}: unknown object; known are {', '.join(OBJECTS)}")
            fields = _fields_by_key(model)
            for key, names in keys.items():
                field = fields.get(key)
                if field is None:
                    raise ValueError(
                        f"objects.{name}.{key}: unknown key; known are {', '.join(fields)}"
                    )
                is_missing = names is False or any(part.endswith("?") for part in names)
                if is_missing and model not in _REQUESTS and not can_be_unknown(field[1]):
                    raise ValueError(
                        f"objects.{name}.{key} cannot be unknown: without it nothing is measured"
                    )
        return self

    def setting(self, name: str, value: str) -> tuple[str, str] | None:
        """The daemon's variable for one of the contract; None if it is not set."""
        own = self.settings.get(f"{name}={value}")
        if own is None:
            return name, value
        name, equals, value = own.partition("=")
        return (name, value) if equals else None

    @cached_property
    def event_names(self) -> dict[str, str]:
        """The contract's event name by the daemon's."""
        return {self.events.get(name, name): name for name in EVENT_NAMES}  # type: ignore[call-overload]

    def has(self, operation: Operation) -> bool:
        """Whether the daemon has this route."""
        return self.routes.get(operation) is not False

    def request(self, body: Request) -> dict[str, Any]:
        """Translate a request body.

        Raises:
            DialectError: `not_in_dialect` if it has a value for which the daemon has no key.
        """
        result: dict[str, Any] = self.request_json(body.to_body(), type(body))
        return result

    def request_json(self, value: Any, model: type[BaseModel], *, where: str = "") -> Any:  # noqa: ANN401 - JSON
        """Translate the keys of a request of type `model`; keys and values unknown to it pass.

        Raises:
            DialectError: `not_in_dialect` if it has a value for which the daemon has no key.
        """
        if not isinstance(value, dict):
            return value
        fields = _fields_by_key(model)
        table = self.objects.get(to_snake(model.__name__), {})
        result: dict[str, Any] = {}
        for key, inner in value.items():
            if key not in fields:
                result[key] = inner
                continue
            name, field = fields[key]
            names = table.get(key)
            place = f"{where}.{key}".lstrip(".")
            if names is False:
                raise DialectError(
                    "not_in_dialect",
                    f"the dialect {self.name!r} has no key for {to_snake(model.__name__)}.{key},"
                    f" which is set to {inner!r}",
                )
            target = (names[0] if names else _styled(key, self.request_keys)).rstrip("?")
            *parents, last = target.split(".")
            holder = result
            for parent in parents:
                holder = holder.setdefault(parent, {})
            holder[last] = self._request_value(inner, model, name, field, place)
        return result

    def _request_value(
        self,
        value: Any,  # noqa: ANN401 - JSON
        model: type[BaseModel],
        name: str,
        field: FieldInfo,
        where: str,
    ) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, list):
            return [self._request_value(item, model, name, field, where) for item in value]
        if (model, name) in _PATHS and isinstance(value, str) and value:
            if (model, name) == (Filters, "path_prefix"):
                return f"{self.paths.prefix}{value}"
            return self.paths.to_daemon(value)
        if (model, name) in _FREE_FORM:
            return value
        inner = model_of(field.annotation)
        return value if inner is None else self.request_json(value, inner, where=where)

    def response(self, content: str | bytes, model: type[M]) -> M:
        """Translate a response body or an event's data and validate it.

        Raises:
            DialectError: `bad_body` if a key is missing or ambiguous.
            RepeatedKeyError: if an object has a key twice.
            pydantic.ValidationError: if the translation does not fit the model.
        """
        require_unique_keys(content)
        translated = self.translate(_parse(content), model)
        value: M = loosened(model).model_validate_json(json.dumps(translated))
        return value

    def translate(
        self,
        value: Any,  # noqa: ANN401 - JSON
        model: type[BaseModel],
        *,
        where: str = "",
        lenient: bool = False,
    ) -> Any:  # noqa: ANN401 - JSON
        """Translate the keys of a JSON value of type `model` to the contract's.

        `lenient` leaves out a key that is missing without a declaration.

        Raises:
            DialectError: `bad_body` if a key is missing or ambiguous.
        """
        if not isinstance(value, dict):
            return value
        table = self.objects.get(to_snake(model.__name__), {})
        reader = _Reader(value, where, self.keys)
        result: dict[str, Any] = {}
        for name, field in model.model_fields.items():
            key = field.alias or name
            names = table.get(key)
            place = f"{where}.{key}".lstrip(".")
            if names is False:
                if model_of(field.annotation) is Trace:
                    result[key] = {}
                continue
            found = reader.find(names or [_styled(key, self.keys)])
            if found is _MISSING:
                optional = names is not None and any(part.endswith("?") for part in names)
                if optional and model_of(field.annotation) is Trace:
                    result[key] = {}
                elif is_unknowable(field) and not optional and not lenient:
                    raise DialectError("bad_body", f"{place}: the key is missing", place)
                continue
            result[key] = self._response_value(found, model, name, field, place, lenient=lenient)
        return result

    def unknown_places(self, model: type[BaseModel], where: str = "") -> list[str]:
        """The places in a message of type `model` that may be missing, such as `trace.searchMs`."""
        table = self.objects.get(to_snake(model.__name__), {})
        places = []
        for key, (_, field) in _fields_by_key(model).items():
            names, inner = table.get(key), model_of(field.annotation)
            if names is False or any(part.endswith("?") for part in names or ()):
                places.append(f"{where}{key}")
            elif inner is not None:
                is_list = get_origin(field.annotation) is list
                places += self.unknown_places(inner, f"{where}{key}.{'*.' if is_list else ''}")
        return places

    def look_up(self, value: dict[str, Any], key: str, model: type[BaseModel]) -> Any:  # noqa: ANN401 - JSON
        """The value of a contract's key in a daemon's object of type `model`; None if missing.

        Raises:
            DialectError: `bad_body` if the key is ambiguous.
        """
        names = self.objects.get(to_snake(model.__name__), {}).get(key)
        found = _Reader(value, "", self.keys).find(names or [_styled(key, self.keys)])
        return None if found is _MISSING else found

    def _response_value(
        self,
        value: Any,  # noqa: ANN401 - JSON
        model: type[BaseModel],
        name: str,
        field: FieldInfo,
        where: str,
        *,
        lenient: bool,
    ) -> Any:  # noqa: ANN401 - JSON
        if (model, name) in _FREE_FORM:
            return value
        if (model, name) in _PATHS and isinstance(value, str):
            return self.paths.from_daemon(value)
        inner = model_of(field.annotation)
        if inner is None:
            return value
        if isinstance(value, list):
            return [
                self.translate(item, inner, where=f"{where}[{index}]", lenient=lenient)
                for index, item in enumerate(value)
            ]
        return self.translate(value, inner, where=where, lenient=lenient)


_OPTIONAL_ROUTES: tuple[Operation, ...] = (
    *("version", "list_brains", "ingest_file", "ingest_batch", "ask", "events"),
    *("read_document", "has_document", "stat_document", "list_documents", "write_document"),
    *("append_document", "delete_document", "rename_document", "batch_ops"),
)

_MISSING = object()


class _Reader:
    """Finds values of one JSON object by the daemon's keys."""

    def __init__(self, value: dict[str, Any], where: str, style: str) -> None:
        self._value = value
        self._where = where
        self._style = style

    def find(self, names: list[str]) -> Any:  # noqa: ANN401 - JSON
        for name in names:
            value: Any = self._value
            for key in name.rstrip("?").split("."):
                value = self._get(value, key) if isinstance(value, dict) else _MISSING
                if value is _MISSING:
                    break
            else:
                return value
        return _MISSING

    def _get(self, value: dict[str, Any], key: str) -> Any:  # noqa: ANN401 - JSON
        if key in value or self._style != "any":
            return value.get(key, _MISSING)
        matches = [other for other in value if plain_key(other) == plain_key(key)]
        if len(matches) > 1:
            raise DialectError(
                "bad_body",
                f"{self._where or 'the body'}: {' and '.join(matches)} both spell {key}",
            )
        return value[matches[0]] if matches else _MISSING


def plain_key(key: str) -> str:
    """A key without case and underscores, by which style `any` compares."""
    return key.replace("_", "").replace("-", "").lower()


def _styled(key: str, style: str) -> str:
    if style == "snake":
        return to_snake(key)
    return to_pascal(to_snake(key)) if style == "pascal" else key


def _parse(content: str | bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(content)
    except ValueError as error:
        raise DialectError("bad_body", f"not JSON: {error}") from error


def _fields_by_key(model: type[BaseModel]) -> dict[str, tuple[str, FieldInfo]]:
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


def merged_tables(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables of a dialect: a table into a table, any other value in place of the old one."""
    merged = dict(base)
    for key, value in changes.items():
        inner = merged.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            merged[key] = merged_tables(inner, value)
        else:
            merged[key] = value
    return merged


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
