"""Lets cases speak the contract to a daemon that speaks a dialect. No I/O."""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic.alias_generators import to_snake

from memconform.conformance.case_paths import CasePaths
from memconform.conformance.expectations import ExpectationResult
from memconform.conformance.routes import brain_in, route_of, routes_at
from memconform.conformance.step_result import StepResult
from memconform.contract.ask import EVENTS
from memconform.contract.dialect import Dialect, Operation
from memconform.contract.dialect_keys import DialectError
from memconform.contract.events import Change
from memconform.contract.schemas import ROUTES, Route

_REQUEST_LINE = re.compile(rb"(?P<method>[A-Z]+) (?P<target>/[!-~]*) HTTP/1\.1\r\n")


_SCOPES = ("global", "project", "raw")
"""Values of the filter `scope`, each of which stands for a folder."""


@dataclass(frozen=True, slots=True)
class Translation:
    """Translates the requests of cases and the responses to them.

    Whatever is not of the contract, such as an invalid body, passes unchanged: a case may be about
    just that.
    """

    dialect: Dialect
    """The daemon's dialect; its `paths` are those of cases."""

    def __post_init__(self) -> None:
        paths = self.dialect.paths
        mapping = CasePaths(prefix=paths.prefix, suffix=paths.suffix)
        own = self.dialect.model_copy(update={"paths": mapping})
        object.__setattr__(self, "dialect", own)

    @property
    def paths(self) -> CasePaths:
        """How paths are written on the daemon's wire."""
        return cast("CasePaths", self.dialect.paths)

    def request(self, line: str, body: bytes | None) -> tuple[str, bytes | None]:
        """Translate `METHOD /target` and a body.

        Raises:
            DialectError: `not_in_dialect` if the daemon has no such route or key.
        """
        method, _, target = line.partition(" ")
        route = route_of(method, target)
        if route is None:
            return self._unknown_method(method, target), body
        operation = _operation(route)
        if not self.dialect.has(operation):
            raise DialectError(
                "not_in_dialect", f"the dialect {self.dialect.name!r} has no route {operation}"
            )
        query = target.partition("?")[2]
        method, _, path = self._own_line(route).partition(" ")
        path = path.replace("{brain}", brain_in(target) or "")
        query = self._query(query, operation)
        return f"{method} {path}{'?' if query else ''}{query}", self._body(route, body)

    def raw(self, message: bytes) -> bytes:
        """Translate the request line at the start of raw bytes; any other bytes pass unchanged.

        Raises:
            DialectError: `not_in_dialect` if the daemon has no such route, or if its bodies or its
                status of a success differ, which raw steps compare as they are.
        """
        start = _REQUEST_LINE.match(message)
        if start is None:
            return message
        line = f"{start['method'].decode()} {start['target'].decode()}"
        _, _, body = message.partition(b"\r\n\r\n")
        own, own_body = self.request(line, body)
        route = route_of(*_split(line))
        has_own_status = route is not None and _operation(route) in self.dialect.statuses
        if has_own_status or _json(own_body) != _json(body):
            raise DialectError(
                "not_in_dialect", f"the dialect {self.dialect.name!r} has no raw form of {line}"
            )
        return own.encode() + message[start.end("target") :]

    def _own_line(self, route: Route) -> str:
        """The daemon's `METHOD /path` of a route, with `{brain}` for the brain's id."""
        own = self.dialect.routes.get(_operation(route))
        return own or f"{route.method.upper()} {route.path.replace('{brainId}', '{brain}')}"

    def _unknown_method(self, method: str, target: str) -> str:
        """Send a method that the contract's path does not have to the daemon's own path.

        Raises:
            DialectError: `not_in_dialect` if the daemon has no path with the same methods, or has
                a route with this method there: the right answer is then unknown.
        """
        routes = [route for route in routes_at(target) if self.dialect.has(_operation(route))]
        if not routes:
            if not routes_at(target):
                return f"{method} {target}"
            raise DialectError(
                "not_in_dialect", f"the dialect {self.dialect.name!r} has no route at {target}"
            )
        own = {tuple(self._own_line(route).split(" ", 1)) for route in routes}
        paths = {path for _, path in own}
        same_methods = {own_method for own_method, _ in own} == {r.method.upper() for r in routes}
        path = min(paths)
        taken = {self._own_line(r) for r in ROUTES if self.dialect.has(_operation(r))}
        if len(paths) > 1 or not same_methods or f"{method} {path}" in taken:
            raise DialectError(
                "not_in_dialect",
                f"the dialect {self.dialect.name!r} has other methods or paths for {target}",
            )
        query = self._query(target.partition("?")[2], _operation(routes[0]))
        path = path.replace("{brain}", brain_in(target) or "")
        return f"{method} {path}{'?' if query else ''}{query}"

    def headers(self, headers: Mapping[str, Any]) -> dict[str, Any]:
        """Send a bearer token in the way of the dialect; other credentials pass unchanged."""
        auth, result = self.dialect.auth, dict(headers)
        for name, value in headers.items():
            scheme, _, token = str(value).partition(" ")
            # A scheme without a token is not the dialect's header without its token.
            if name.lower() == "authorization" and scheme == "Bearer" and token:
                del result[name]
                result[auth.header] = auth.value.replace("{token}", token)
        return result

    def _query(self, query: str, operation: Operation) -> str:
        """Map the values of `path`, `dir` and `glob`, which may hold anything but a `&`."""
        paths = self.paths
        parameters = query.split("&") if query else []
        is_listing = operation == "list_documents"
        if is_listing and not any(p.startswith("dir=") for p in parameters) and paths.prefix:
            parameters.append("dir=")
        write = {
            "path": paths.in_query,
            "dir": paths.folder_in_query,
            "glob": paths.glob_in_query if is_listing else str,
        }
        mapped = []
        for parameter in parameters:
            name, equals, value = parameter.partition("=")
            mapped.append(f"{name}{equals}{write.get(name, str)(value)}")
        return "&".join(mapped)

    def _body(self, route: Route, body: bytes | None) -> bytes | None:
        value = _json(body)
        if route.request is None or not isinstance(value, dict):
            return body
        self._require_plain_paths(value.get("filters"))
        translated = self.dialect.request_json(value, route.request)
        return json.dumps(translated, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def _require_plain_paths(self, filters: Any) -> None:  # noqa: ANN401 - JSON
        """Refuse filters that select by the folders of the contract.

        Raises:
            DialectError: `not_in_dialect` if the daemon has the documents in other folders.
        """
        if not isinstance(filters, dict) or not (self.paths.prefix or self.paths.suffix):
            return
        if filters.get("scope") in _SCOPES or filters.get("project"):
            raise DialectError(
                "not_in_dialect",
                f"the dialect {self.dialect.name!r} has documents in other folders than those"
                " that scope and project select",
            )

    def status(self, line: str, status: int) -> int:
        """Return the contract's status for the dialect's status of a success."""
        route = route_of(*_split(line))
        if route is None:
            return status
        return route.status if self.dialect.statuses.get(_operation(route)) == status else status

    def answer(self, line: str, body: bytes) -> bytes:
        """Translate the body of a success."""
        route = route_of(*_split(line))
        value = _json(body)
        if route is None or route.answer is None or not isinstance(value, dict):
            return body
        try:
            translated = self._with_ids(self.dialect.translate(value, route.answer, lenient=True))
        except DialectError:
            return body
        return json.dumps(translated, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def event(self, line: str, name: str, data: str) -> tuple[str, str]:
        """Translate the name and the data of an event."""
        route = route_of(*_split(line))
        if route is None or not route.stream:
            return name, data
        name = self.dialect.event_names.get(name, name)
        model = Change if name == "change" else EVENTS.get(name)
        value = _json(data)
        if model is None or not isinstance(value, dict):
            return name, data
        try:
            translated = self.dialect.translate(value, model, lenient=True)
        except DialectError:
            return name, data
        return name, json.dumps(self._with_ids(translated))

    def _with_ids(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Give documents and chunks the ids of the contract that the daemon computed from paths.

        An id that is no hash of the daemon's path (core.chunk.id) stays as it is.
        """
        if isinstance(value, list):
            return [self._with_ids(item) for item in value]
        if not isinstance(value, dict):
            return value
        result = {key: self._with_ids(item) for key, item in value.items()}
        path = result.get("path")
        if isinstance(path, str):
            with suppress(DialectError):
                own, ours = _document_id(self.paths.to_daemon(path)), _document_id(path)
                for key in ("documentId", "chunkId"):
                    if str(result.get(key, "")).startswith(own):
                        result[key] = f"{ours}{result[key].removeprefix(own)}"
        return result


def _document_id(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _operation(route: Route) -> Operation:
    return cast("Operation", to_snake(route.name))


def _split(line: str) -> tuple[str, str]:
    method, _, target = line.partition(" ")
    return method, target


def _json(text: bytes | str | None) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(text or b"null")
    except (ValueError, RecursionError):
        return None


def without_gaps(result: ExpectationResult, outcome: StepResult) -> tuple[ExpectationResult, str]:
    """Leave out what an expectation finds missing because the dialect does not have it.

    Returns:
        The rest, and the first place that was left out; empty if none was.
    """
    if outcome.dialect is None or not result.details:
        return result, ""
    gaps = {fault.cause: place for fault in result.details if (place := _gap(fault.cause, outcome))}
    rest = tuple(fault for fault in result.details if fault.cause not in gaps)
    return replace(result, details=rest), next(iter(gaps.values()), "")


def _gap(cause: str, outcome: StepResult) -> str:
    """The place of a value that a cause calls missing, if the dialect does not have it."""
    event, _, missing = cause.rpartition("missing key ")
    place = missing or ""
    is_success = outcome.status is not None and 200 <= outcome.status < 300
    if not place or not is_success or outcome.dialect is None:
        return ""
    route = route_of(*_split(outcome.label))
    model = None if route is None else route.answer
    if event.startswith("event "):
        model = EVENTS.get(event.removeprefix("event ").removesuffix(": "))
    if model is None:
        return ""
    unknown = outcome.dialect.unknown_places(model)
    return place if any(f"{place}.".startswith(f"{known}.") for known in unknown) else ""
