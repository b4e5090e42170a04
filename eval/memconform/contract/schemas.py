"""Generates `openapi.yaml` and `events.schema.json` from the models. No I/O."""

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
    """A query parameter of a route."""

    name: str
    required: bool = False
    flag: bool = False
    """Whether its value is a boolean instead of a string."""


@dataclass(frozen=True, slots=True)
class Route:
    """An endpoint of the contract: what it takes and what it answers on success."""

    method: Literal["get", "head", "post", "put", "delete"]
    path: str
    name: str
    summary: str
    status: int
    profile: Profile = Profile.CORE
    request: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    """Model of the response body; None if there is no body, or a stream of events (`stream`)."""
    stream: tuple[str, ...] = ()
    """Names of the events in the response; empty if the response is not a stream."""
    sends: Literal["json", "bytes"] = "json"
    """Kind of request body; meaningful only if `request` is None."""
    answers: Literal["json", "bytes"] = "json"
    """Kind of response body."""
    parameters: tuple[Parameter, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    """Required request headers, each with its only valid value."""


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
    Route("get", "/healthz", "health", "Whether the daemon accepts requests", 200, answer=Health),
    Route("get", "/version", "version", "Name and version of the daemon", 200, answer=Version),
    Route("get", "/v1/brains", "listBrains", "List all brains", 200, answer=Brains),
    Route(
        "post", "/v1/brains", "createBrain", "Create an empty brain", 201,
        request=CreateBrain, answer=Brain,
    ),
    Route("get", _BRAIN, "brain", "Get a brain and its counts", 200, answer=Brain),
    Route(
        "delete", _BRAIN, "deleteBrain", "Delete a brain and its contents", 204,
        headers={"X-Confirm-Delete": "yes"},
    ),
    Route(
        "post", f"{_BRAIN}/ingest/file", "ingestFile", "Store and index a document", 200,
        request=IngestFile, answer=Ingested,
    ),
    Route(
        "post", f"{_BRAIN}/ingest/batch", "ingestBatch", "Store and index documents atomically",
        200, request=IngestBatch, answer=IngestedBatch,
    ),
    Route(
        "post", f"{_BRAIN}/search", "search", "Retrieve the best chunks for a query", 200,
        request=SearchRequest, answer=SearchResponse,
    ),
    Route(
        "post", f"{_BRAIN}/ask", "ask", "Answer a question as a stream of events", 200, Profile.ASK,
        request=AskRequest, stream=tuple(EVENTS),
    ),
    Route(
        "get", f"{_DOCUMENTS}/read", "readDocument", "Read a document", 200, Profile.DOCUMENTS,
        answers="bytes", parameters=_PATH,
    ),
    Route(
        "head", _DOCUMENTS, "hasDocument", "Check whether a document exists", 200,
        Profile.DOCUMENTS, parameters=_PATH,
    ),
    Route(
        "get", f"{_DOCUMENTS}/stat", "statDocument", "Describe a document or folder", 200,
        Profile.DOCUMENTS, answer=Stat, parameters=_PATH,
    ),
    Route(
        "get", _DOCUMENTS, "listDocuments", "List a folder", 200, Profile.DOCUMENTS,
        answer=Listing, parameters=_LISTING,
    ),
    Route(
        "put", _DOCUMENTS, "writeDocument", "Write a document", 204, Profile.DOCUMENTS,
        sends="bytes", parameters=_PATH,
    ),
    Route(
        "post", f"{_DOCUMENTS}/append", "appendDocument", "Append to a document", 204,
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
        "post", f"{_DOCUMENTS}/batch-ops", "batchOps", "Apply several changes atomically", 200,
        Profile.DOCUMENTS, request=BatchOps, answer=Committed,
    ),
    Route(
        "get", f"{_BRAIN}/events", "events", "Stream changes as they happen", 200, Profile.EVENTS,
        stream=("ready", "change", "ping"),
    ),
)  # fmt: skip


def openapi() -> JsonObject:
    """Build the OpenAPI 3.1 document of all routes."""
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Problem, "validation")]
    for route in ROUTES:
        models += [(m, "validation") for m in (route.request, route.answer) if m is not None]
    models += [(model, "validation") for model in (*EVENTS.values(), Change)]
    _, definitions = models_json_schema(models, ref_template="#/components/schemas/{model}")
    for model in _request_models():
        _make_nullable(definitions["$defs"][model.__name__])
    paths: JsonObject = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": _DIALECT,
        "info": {
            "title": "Memory daemon",
            "version": CONTRACT_VERSION,
            "description": "This file defines the shapes; the rules are in CONTRACT.md beside it.",
        },
        "servers": [{"url": "http://127.0.0.1:18850"}],
        "paths": paths,
        "components": {"schemas": definitions["$defs"]},
    }


def _request_models() -> list[type[BaseModel]]:
    """Models of request bodies and of the objects inside them."""
    return [*(r.request for r in ROUTES if r.request is not None), Filters, Tuning]


def _make_nullable(schema: JsonObject) -> None:
    """Allow null for each optional key, where it means the same as a missing key (wire.types)."""
    required = schema.get("required", [])
    for name, value in schema["properties"].items():
        if name not in required and {"type": "null"} not in value.get("anyOf", ()):
            annotations = {key: value.pop(key) for key in ("default", "title") if key in value}
            schema["properties"][name] = {"anyOf": [value, {"type": "null"}], **annotations}


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
        description = f"Events as in events.schema.json: {', '.join(route.stream)}"
        success["content"] = {
            "text/event-stream": {"schema": {"type": "string", "description": description}}
        }
    elif route.answers == "bytes":
        success["content"] = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
    elif route.answer is not None:
        success["content"] = {"application/json": {"schema": _reference(route.answer)}}
    problem = {"description": "An error", "content": {MEDIA_TYPE: {"schema": _reference(Problem)}}}
    operation["responses"] = {str(route.status): success, _ANY_STATUS: problem}
    return operation


def _reference(model: type[BaseModel]) -> JsonObject:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def events_schema() -> JsonObject:
    """Build the JSON Schema of one stream event, written as `{"event": name, "data": …}`."""
    models: dict[str, type[BaseModel]] = {**EVENTS, "change": Change}
    schemas, definitions = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template="#/$defs/{model}"
    )
    shapes: JsonObject = {name: schemas[model, "validation"] for name, model in models.items()}
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
