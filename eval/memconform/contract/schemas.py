"""`openapi.yaml` and `events.schema.json`, made from the models. No I/O."""

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from memconform.contract.ask import EVENTS, AskRequest
from memconform.contract.core import (
    BRAIN_ID_PATTERN,
    Brain,
    Brains,
    CreateBrain,
    Filters,
    Health,
    IngestBatch,
    Ingested,
    IngestedBatch,
    IngestFile,
    SearchRequest,
    SearchResponse,
    Tuning,
    Version,
)
from memconform.contract.documents import BatchOps, Committed, Listing, Rename, Stat
from memconform.contract.events import PLAIN_EVENTS, Change
from memconform.contract.problem import MEDIA_TYPE, Problem
from memconform.contract.wire import CONTRACT_VERSION, Profile

JsonObject = dict[str, Any]

EVENTS_SCHEMA = f"memconform/events@{CONTRACT_VERSION}"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ANY_STATUS = "default"
BYTES = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One of the query."""

    name: str
    required: bool = False
    flag: bool = False
    """Whether it is true or false, and not a text."""


@dataclass(frozen=True, slots=True)
class Route:
    method: Literal["get", "head", "post", "put", "delete"]
    path: str
    name: str
    summary: str
    status: int
    profile: Profile = Profile.CORE
    request: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    """None: no body, or (see `stream`) events."""
    stream: tuple[str, ...] = ()
    """Names of the events that it answers with."""
    sends: Literal["json", "bytes"] = "json"
    """What a body of the request is, where there is one and `request` does not say."""
    answers: Literal["json", "bytes"] = "json"
    parameters: tuple[Parameter, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    """Request headers that it wants, with their one value."""


_BRAIN = "/v1/brains/{brainId}"
_DOCUMENTS = f"{_BRAIN}/documents"
_PATH = (Parameter("path", required=True),)
_LISTING = (
    Parameter("dir"),
    Parameter("recursive", flag=True),
    Parameter("include_generated", flag=True),
    Parameter("glob"),
)

ROUTES = (
    Route("get", "/healthz", "health", "Whether requests are served", 200, answer=Health),
    Route("get", "/version", "version", "What is served", 200, answer=Version),
    Route("get", "/v1/brains", "listBrains", "All brains", 200, answer=Brains),
    Route(
        "post", "/v1/brains", "createBrain", "A new, empty brain", 201,
        request=CreateBrain, answer=Brain,
    ),
    Route("get", _BRAIN, "brain", "A brain's counts", 200, answer=Brain),
    Route(
        "delete", _BRAIN, "deleteBrain", "Delete a brain and all it holds", 204,
        headers={"X-Confirm-Delete": "yes"},
    ),
    Route(
        "post", f"{_BRAIN}/ingest/file", "ingestFile", "Store and index a document", 200,
        request=IngestFile, answer=Ingested,
    ),
    Route(
        "post", f"{_BRAIN}/ingest/batch", "ingestBatch", "Store and index documents, all or none",
        200, request=IngestBatch, answer=IngestedBatch,
    ),
    Route(
        "post", f"{_BRAIN}/search", "search", "The best chunks for a query", 200,
        request=SearchRequest, answer=SearchResponse,
    ),
    Route(
        "post", f"{_BRAIN}/ask", "ask", "An answer as a stream of events", 200, Profile.ASK,
        request=AskRequest, stream=tuple(EVENTS),
    ),
    Route(
        "get", f"{_DOCUMENTS}/read", "readDocument", "A document's bytes", 200, Profile.DOCUMENTS,
        answers="bytes", parameters=_PATH,
    ),
    Route(
        "head", _DOCUMENTS, "hasDocument", "Whether there is a document", 200, Profile.DOCUMENTS,
        parameters=_PATH,
    ),
    Route(
        "get", f"{_DOCUMENTS}/stat", "statDocument", "What there is at a path", 200,
        Profile.DOCUMENTS, answer=Stat, parameters=_PATH,
    ),
    Route(
        "get", _DOCUMENTS, "listDocuments", "What lies in a folder", 200, Profile.DOCUMENTS,
        answer=Listing, parameters=_LISTING,
    ),
    Route(
        "put", _DOCUMENTS, "writeDocument", "Store a document's bytes", 204, Profile.DOCUMENTS,
        sends="bytes", parameters=_PATH,
    ),
    Route(
        "post", f"{_DOCUMENTS}/append", "appendDocument", "Put bytes behind a document's", 204,
        Profile.DOCUMENTS, sends="bytes", parameters=_PATH,
    ),
    Route(
        "delete", _DOCUMENTS, "deleteDocument", "Delete a document", 204, Profile.DOCUMENTS,
        parameters=_PATH,
    ),
    Route(
        "post", f"{_DOCUMENTS}/rename", "renameDocument", "Move a document", 204,
        Profile.DOCUMENTS, request=Rename,
    ),
    Route(
        "post", f"{_DOCUMENTS}/batch-ops", "batchOps", "Several changes, all or none", 200,
        Profile.DOCUMENTS, request=BatchOps, answer=Committed,
    ),
    Route(
        "get", f"{_BRAIN}/events", "events", "What changes, as it changes", 200, Profile.EVENTS,
        stream=("ready", "change", "ping"),
    ),
)  # fmt: skip


def openapi() -> JsonObject:
    """The OpenAPI 3.1 document of all routes."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Problem, "validation")]
    for route in ROUTES:
        wanted += [(m, "validation") for m in (route.request, route.answer) if m is not None]
    wanted += [(model, "validation") for model in (*EVENTS.values(), Change)]
    _, definitions = models_json_schema(wanted, ref_template="#/components/schemas/{model}")
    for model in _requests():
        _let_be_null(definitions["$defs"][model.__name__])
    paths: JsonObject = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": _DIALECT,
        "info": {
            "title": "Memory daemon",
            "version": CONTRACT_VERSION,
            "description": "CONTRACT.md beside this file has the rules; here are the shapes.",
        },
        "servers": [{"url": "http://127.0.0.1:18850"}],
        "paths": paths,
        "components": {"schemas": definitions["$defs"]},
    }


def _requests() -> list[type[BaseModel]]:
    """The request bodies, and what is part of them."""
    return [*(r.request for r in ROUTES if r.request is not None), Filters, Tuning]


def _let_be_null(schema: JsonObject) -> None:
    """A key that may be left out may be null, which means the same (wire.types)."""
    required = schema.get("required", [])
    for name, value in schema["properties"].items():
        if name not in required and {"type": "null"} not in value.get("anyOf", ()):
            kept = {key: value.pop(key) for key in ("default", "title") if key in value}
            schema["properties"][name] = {"anyOf": [value, {"type": "null"}], **kept}


def _operation(route: Route) -> JsonObject:
    operation: JsonObject = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.profile.value],
    }
    parameters = [
        {"name": name, "in": "header", "required": True, "schema": {"const": value}}
        for name, value in route.headers.items()
    ]
    if "{brainId}" in route.path:
        pattern = {"type": "string", "pattern": BRAIN_ID_PATTERN}
        parameters.insert(0, {"name": "brainId", "in": "path", "required": True, "schema": pattern})
    parameters += [
        {
            "name": parameter.name,
            "in": "query",
            "required": parameter.required,
            "schema": {"type": "boolean"} if parameter.flag else {"type": "string"},
        }
        for parameter in route.parameters
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.request is not None:
        content = {"application/json": {"schema": _reference(route.request)}}
        operation["requestBody"] = {"required": True, "content": content}
    elif route.sends == "bytes":
        content = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": content}
    success: JsonObject = {"description": route.summary}
    if route.stream:
        described = f"Events by events.schema.json: {', '.join(route.stream)}"
        success["content"] = {
            "text/event-stream": {"schema": {"type": "string", "description": described}}
        }
    elif route.answers == "bytes":
        success["content"] = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
    elif route.answer is not None:
        success["content"] = {"application/json": {"schema": _reference(route.answer)}}
    problem = {"description": "A problem", "content": {MEDIA_TYPE: {"schema": _reference(Problem)}}}
    operation["responses"] = {str(route.status): success, _ANY_STATUS: problem}
    return operation


def _reference(model: type[BaseModel]) -> JsonObject:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def events_schema() -> JsonObject:
    """The JSON Schema of one event of a stream, as `{"event": name, "data": …}`."""
    models: dict[str, type[BaseModel]] = {**EVENTS, "change": Change}
    found, definitions = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template="#/$defs/{model}"
    )
    shapes: JsonObject = {name: found[model, "validation"] for name, model in models.items()}
    shapes |= {name: {"const": "ok"} for name in PLAIN_EVENTS}
    return {
        "$schema": _DIALECT,
        "$id": EVENTS_SCHEMA,
        "title": "An event of an ask or events stream",
        "oneOf": [
            {
                "type": "object",
                "required": ["event", "data"],
                "properties": {
                    "event": {"const": name},
                    "data": shape,
                },
            }
            for name, shape in shapes.items()
        ],
        "$defs": definitions["$defs"],
    }
