"""How a daemon's wire differs from the contract's: a pure translation of names. No I/O.

A dialect renames and moves; it never invents. A part that the daemon does not have is declared
(`false`, or a trailing `?`), and its value is then unknown, which is None in the models. A key that
is missing without such a declaration, a `null`, or a value of another type remains a violation.
"""

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, get_origin

from pydantic import BaseModel, Field, model_validator
from pydantic.alias_generators import to_snake
from pydantic.fields import FieldInfo

from memconform.contract.ask import StreamError
from memconform.contract.core import RERANK_SKIPS, Filters, Trace
from memconform.contract.dialect_keys import (
    MISSING,
    DialectError,
    KeyReader,
    plain_key,
    styled,
)
from memconform.contract.dialect_objects import (
    FREE_FORM,
    OBJECTS,
    PATHS,
    REQUESTS,
    can_be_unknown,
    fields_by_key,
    model_of,
)
from memconform.contract.dialect_tables import (
    PLACE,
    Auth,
    Choice,
    Names,
    PathMapping,
    Table,
    require_places,
)
from memconform.contract.documents import Stat
from memconform.contract.reported_failure import FAILURES, reported_failure
from memconform.contract.strict_json import require_unique_keys
from memconform.contract.wire import RankBy, Request, is_unknowable
from memconform.validation_faults import require_placeholders

Operation = Literal[
    "health", "version", "list_brains", "create_brain", "brain", "delete_brain", "ingest_file",
    "ingest_batch", "search", "ask", "read_document", "has_document", "stat_document",
    "list_documents", "write_document", "append_document", "delete_document", "rename_document",
    "batch_ops", "events",
]  # fmt: skip
"""The routes of the contract, by the names that `[dialect.routes]` uses."""


EVENT_NAMES = ("retrieve", "answer_delta", "citation", "error", "done")


class Dialect(Table):
    """A dialect of the contract, from `[dialect]` of an sdk.toml or a shipped file."""

    name: str = "custom"
    keys: Literal["camel", "snake", "pascal", "any"] = "camel"
    """The style of keys in responses; `any` ignores case and underscores."""
    request_keys: Literal["camel", "snake", "pascal"] = "camel"
    """The style of keys in requests."""
    seed_via: Literal["http", "batch", "documents"] = "http"
    """How documents get in, unless `[seed] via` says it."""
    counts: Literal["brain", "listing"] = "brain"
    """Where documents are counted: in the brain, or by listing the stored documents."""
    rank_by: RankBy = "score"
    """`position` for a daemon that reorders its rankings without rescoring them."""
    routes: dict[Operation, str | Literal[False]] = Field(default_factory=dict)
    """`METHOD /path` by operation, with `{brain}` for the brain's id; False if there is none."""
    statuses: dict[Operation, int] = Field(default_factory=dict)
    """Status of a success, by operation, where it differs from the contract's."""
    objects: dict[str, dict[str, Names]] = Field(default_factory=dict)
    """By object and by the contract's key: the daemon's key."""
    settings: dict[str, str | Literal[False]] = Field(default_factory=dict)
    """By `NAME=value`, as cases set a variable of the contract: the daemon's `NAME=value`; empty to
    set nothing. By `NAME` or `NAME=value`: False if the daemon has no such variable or value."""
    events: dict[Literal["retrieve", "answer_delta", "citation", "error", "done"], str] = Field(
        default_factory=dict
    )
    """The daemon's event name by the contract's."""
    ignored_events: list[str] = Field(default_factory=list)
    """Events of an answer that mean nothing to it; any other that no key names is a violation."""
    failures: list[str] = Field(default_factory=lambda: list(FAILURES))
    """What reports a failure in a success or an event: `key`, if it holds a value, or `key=value`,
    in any object outside arrays; or a place from the top, its keys joined by `.`."""
    rerank_skips: list[str] = Field(default_factory=lambda: list(RERANK_SKIPS))
    """Values of `rerankSkipReason` with which a search in mode hybrid-rerank is measured, because
    the daemon chose not to rerank. With any other it is not, because that may be a failure."""
    # Without their validators, which nothing else needs: those of the dialect include them.
    paths: PathMapping = PathMapping.model_construct()
    auth: Auth = Auth.model_construct()
    choices: list[Choice] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_events(self) -> "Dialect":
        names = [self.events.get(name, name) for name in EVENT_NAMES]  # type: ignore[call-overload]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"events: {twice!r} would be two events of the contract")
        return self

    @model_validator(mode="after")
    def _check_routes(self) -> "Dialect":
        for operation, route in self.routes.items():
            method, _, path = str(route or "GET /").partition(" ")
            if method not in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") or path[:1] != "/":
                raise ValueError(f'routes.{operation}: write "METHOD /path", not {route!r}')
            try:
                require_placeholders(path, ("brain",))
            except ValueError as error:
                raise ValueError(f"routes.{operation}: {error}") from error
            if route is False and operation not in _OPTIONAL_ROUTES:
                raise ValueError(
                    f"routes.{operation}: a daemon needs this route; only"
                    f" {', '.join(_OPTIONAL_ROUTES)} may be false"
                )
        return self

    @model_validator(mode="after")
    def _check_settings(self) -> "Dialect":
        for key, own in self.settings.items():
            if own is not False and "=" not in key:
                raise ValueError(f'settings: write "{key}=value" = "NAME=value", or {key} = false')
        return self

    @model_validator(mode="after")
    def _check_objects(self) -> "Dialect":
        for name, keys in self.objects.items():
            model = OBJECTS.get(name)
            if model is None:
                raise ValueError(f"objects.{name}: unknown object; known are {', '.join(OBJECTS)}")
            fields = fields_by_key(model)
            for key, names in keys.items():
                field = fields.get(key)
                if field is None:
                    raise ValueError(
                        f"objects.{name}.{key}: unknown key; known are {', '.join(fields)}"
                    )
                if names is not False and not all(re.fullmatch(PLACE, name) for name in names):
                    raise ValueError(
                        f"objects.{name}.{key}: write keys joined by '.', with '?' at the end if"
                        " it may be missing"
                    )
                is_missing = names is False or any(part.endswith("?") for part in names)
                if is_missing and model not in REQUESTS and not can_be_unknown(field[1]):
                    raise ValueError(
                        f"objects.{name}.{key} cannot be unknown: without it nothing is measured"
                    )
            if model in REQUESTS:
                require_places(
                    name,
                    {
                        key: names[0].rstrip("?") if names else styled(key, self.request_keys)
                        for key in fields
                        if (names := keys.get(key, [])) is not False
                    },
                )
        return self

    def setting(self, name: str, value: str) -> tuple[str, str] | None:
        """The daemon's variable for one of the contract; None if it is not set."""
        if self.lacks(name, value):
            return None
        own = self.settings.get(f"{name}={value}")
        if not isinstance(own, str):
            return name, value
        name, equals, value = own.partition("=")
        return (name, value) if equals else None

    def lacks(self, name: str, value: str) -> bool:
        """Whether the daemon has no such variable of the contract, or not with this value.

        Any daemon has one that is empty: that is, one that is not set.
        """
        keys = (name, f"{name}={value}")
        return bool(value) and any(self.settings.get(key) is False for key in keys)

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
        fields = fields_by_key(model)
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
            target = (names[0] if names else styled(key, self.request_keys)).rstrip("?")
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
        if (model, name) in PATHS and isinstance(value, str) and value:
            if (model, name) == (Filters, "path_prefix"):
                return self.paths.prefix_to_daemon(value)
            return self.paths.to_daemon(value)
        if (model, name) in FREE_FORM:
            return value
        inner = model_of(field.annotation)
        return value if inner is None else self.request_json(value, inner, where=where)

    def as_contract(self, content: str | bytes, model: type[BaseModel]) -> Any:  # noqa: ANN401 - JSON
        """Translate a response body or an event's data that reports no failure.

        Raises:
            DialectError: `bad_body` if a key is missing or ambiguous, `reported_error` if the
                message reports a failure.
            RepeatedKeyError: if an object has a key twice.
        """
        require_unique_keys(content)
        parsed = _parse(content)
        if model is not StreamError:
            own_keys = [
                plain_key(name.rstrip("?"))
                for key in fields_by_key(model)
                for name in self._names(model, key) or ()
            ]
            if (failure := reported_failure(parsed, self.failures, own_keys)) is not None:
                raise DialectError("reported_error", f"the answer reports a failure: {failure}")
        return self.translate(parsed, model)

    def _names(self, model: type[BaseModel], key: str) -> list[str] | Literal[False]:
        """Where the daemon has the value of a contract's key; False if nowhere."""
        names = self.objects.get(to_snake(model.__name__), {}).get(key)
        return [styled(key, self.keys)] if names is None else names

    def failure_in(self, content: str | bytes) -> str | None:
        """What an event that means nothing says of a failure; None if nothing, or if not JSON."""
        try:
            return reported_failure(json.loads(content), self.failures)
        except ValueError:
            return None

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
        reader = KeyReader(value, where, self.keys)
        result: dict[str, Any] = {}
        for name, field in model.model_fields.items():
            key = field.alias or name
            names = table.get(key)
            place = f"{where}.{key}".lstrip(".")
            if names is False:
                if model_of(field.annotation) is Trace:
                    result[key] = {}
                continue
            found = reader.find(names or [styled(key, self.keys)])
            if found is MISSING:
                optional = names is not None and any(part.endswith("?") for part in names)
                if optional and model_of(field.annotation) is Trace:
                    result[key] = {}
                elif is_unknowable(field) and not optional and not lenient:
                    raise DialectError("bad_body", f"{place}: the key is missing", place)
                continue
            result[key] = self._response_value(found, model, name, field, place, lenient=lenient)
        if model is Stat and result.get("is_dir") is True:
            path = self.look_up(value, "path", Stat)
            if isinstance(path, str):
                result["path"] = self.paths.folder_from_daemon(path)
        return result

    def unknown_places(self, model: type[BaseModel], where: str = "") -> list[str]:
        """The places in a message of type `model` that may be missing, such as `trace.searchMs`."""
        table = self.objects.get(to_snake(model.__name__), {})
        places = []
        for key, (_, field) in fields_by_key(model).items():
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
        found = KeyReader(value, "", self.keys).find(names or [styled(key, self.keys)])
        return None if found is MISSING else found

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
        if (model, name) in FREE_FORM:
            return value
        if (model, name) in PATHS and isinstance(value, str):
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


def ranked_by(dialect: Dialect | None, requested: RankBy | None = None) -> RankBy:
    """What decides a daemon's rankings: what was requested, or else what its dialect declares."""
    if requested is not None:
        return requested
    return "score" if dialect is None else dialect.rank_by


def rerank_skips(dialect: Dialect | None) -> Sequence[str]:
    """The reasons for which a search in mode hybrid-rerank need not have been reranked."""
    return RERANK_SKIPS if dialect is None else dialect.rerank_skips


_OPTIONAL_ROUTES: tuple[Operation, ...] = (
    *("version", "list_brains", "ingest_file", "ingest_batch", "ask", "events"),
    *("read_document", "has_document", "stat_document", "list_documents", "write_document"),
    *("append_document", "delete_document", "rename_document", "batch_ops"),
)


def _parse(content: str | bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(content)
    except ValueError as error:
        raise DialectError("bad_body", f"not JSON: {error}") from error
