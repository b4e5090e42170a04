"""Which routes a daemon that speaks no contract answers, asked without changing anything."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic.alias_generators import to_snake

from memconform.contract.schemas import ROUTES
from memconform.daemons.manifest_draft import comment, toml_string
from memconform.errors import DaemonError, UsageError
from memconform.network import is_loopback, split_address
from memconform.tls import tls_context

_SECONDS = 10.0
"""Until an answer begins; its body is read only where it is a document of routes."""
_LARGEST = 4 << 20
_MOST_DOCUMENTED = 300
_NOWHERE = "/memconform-init-no-such-route"
HEALTH = ("/healthz", "/health", "/readyz", "/ready", "/livez", "/ping", "/status")
_OTHERS = ("/version", "/v1/brains", "/")
_DOCUMENTS = (
    *("/openapi.json", "/swagger.json", "/v3/api-docs", "/swagger/v1/swagger.json"),
    *("/api/openapi.json", "/docs/openapi.json"),
)
_METHODS = ("get", "head", "post", "put", "patch", "delete")
_MISSING = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class Observation:
    """What a daemon answered to GET, and what it documents."""

    address: str
    answers: Mapping[str, int]
    """Status by path."""
    document: str = ""
    """The path of its OpenAPI document; empty if none was found."""
    documented: tuple[tuple[str, str], ...] = field(default=())
    """Method and path of each documented operation."""
    answers_everything: bool = False
    """Whether a path that cannot exist succeeded too, so that a success shows nothing."""

    @property
    def health(self) -> str:
        """The only path of those usual for health that succeeded; empty if not exactly one did."""
        paths = [path for path in HEALTH if self.answers[path] == httpx.codes.OK]
        return paths[0] if len(paths) == 1 and not self.answers_everything else ""


def observe(address: str) -> Observation:
    """Ask a daemon on this machine for well-known paths, by GET alone.

    Raises:
        UsageError: `bad_url` if it is no address, or not one of this machine.
        DaemonError: `daemon_unreachable` if nothing answers there.
    """
    base = _loopback(address)
    try:
        with httpx.Client(
            base_url=base, trust_env=False, timeout=_SECONDS, verify=tls_context(base)
        ) as http:
            everything = httpx.codes.is_success(_status(http, _NOWHERE))
            answers = {path: _status(http, path) for path in (*HEALTH, *_OTHERS)}
            document, operations = _documented(http)
    except httpx.HTTPError as error:
        raise DaemonError(
            f"{base}: {type(error).__name__}: {error}",
            code="daemon_unreachable",
            hint="start the daemon, and check that the address is correct",
        ) from error
    return Observation(base, answers, document, operations, everything)


def _loopback(address: str) -> str:
    try:
        scheme, host, _ = split_address(address)
        usable = scheme in ("http", "https") and not urlsplit(address).query
    except ValueError:
        usable = False
    if not usable or not is_loopback(host):
        raise UsageError(
            f"--url {address} is not an address of this machine",
            code="bad_url",
            hint="write --url http://127.0.0.1:PORT; init asks for paths that a daemon may not"
            " expect, so it does that only here",
        )
    return address.rstrip("/")


def _status(http: httpx.Client, path: str) -> int:
    """The status of a GET, whose body may have no end and is not read."""
    with http.stream("GET", path) as answer:
        return answer.status_code


def _documented(http: httpx.Client) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The path of the first OpenAPI document, and its operations."""
    for path in _DOCUMENTS:
        with http.stream("GET", path) as answer:
            if answer.status_code != httpx.codes.OK:
                continue
            content = b""
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > _LARGEST:
                    break
        try:
            operations = tuple(_operations(json.loads(content)))
        except (ValueError, RecursionError):
            continue
        if operations:
            return path, operations[:_MOST_DOCUMENTED]
    return "", ()


def _operations(document: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON
    paths = document.get("paths") if isinstance(document, dict) else None
    for path, methods in paths.items() if isinstance(paths, dict) else ():
        for method in methods if isinstance(methods, dict) else ():
            if method in _METHODS:
                yield method.upper(), path


def draft_dialect(observation: Observation) -> str:
    """The text of a dialect that states what was observed, and has a line for what was not."""
    everything = observation.answers_everything
    lines = [
        f"# Written by memconform init from what {comment(observation.address)} answered.",
        "# docs/DIALECTS.md of memconform explains every key. Only GET requests were sent: what a",
        "# POST, PUT or DELETE does was not tried.",
        'name = "observed"',
        *("", "# Answers to GET:"),
        *(f"#   {status} {path}" for path, status in observation.answers.items()),
    ]
    if everything:
        lines.append(f"# {_NOWHERE} succeeded too, so that no success shows that a route exists.")
    if observation.document:
        lines += ["", f"# Documented by {observation.document}:"]
        lines += [f"#   {method} {comment(path)}" for method, path in observation.documented]
    else:
        lines += ["", "# No OpenAPI document was found."]
    lines += ["", "[routes]", *_route_lines(observation)]
    return "\n".join(lines) + "\n"


def _route_lines(observation: Observation) -> Iterable[str]:
    for route in ROUTES:
        operation, method = to_snake(route.name), route.method.upper()
        path = route.path.replace("{brainId}", "{brain}")
        status = observation.answers.get(route.path) if method == "GET" else None
        own = f'"{method} {"/{brain}" if "{brain}" in path else ""}/PATH"'
        if operation == "health" and observation.health not in ("", "/healthz"):
            route_found = toml_string(f"GET {observation.health}")
            yield f"health = {route_found}     # answered 200; /healthz answered {status}"
        elif operation == "version" and status in _MISSING:
            yield f"version = false     # GET {path} answered {status}"
        elif status is not None and httpx.codes.is_success(status):
            yield f"# {operation}: GET {path} answered {status}, as in the contract"
        elif (method, path) in _contract_form(observation.documented):
            yield f"# {operation}: {method} {path} is documented, as in the contract"
        else:
            tried = f"answered {status}" if status is not None else "was not tried"
            yield f"# {operation} = {own}     # {method} {path} {tried}"


def _contract_form(documented: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Operations with the first parameter of a path named as the dialect names it."""
    return {
        (method, f"{before}{{brain}}{after.partition('}')[2]}" if brace else before)
        for method, path in documented
        for before, brace, after in [path.partition("{")]
    }
