"""Ingest of one document or a batch, with title, tags and metadata."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memoryd.api.bodies import IngestBatch, IngestFile
from memoryd.api.decode import parse, validate
from memoryd.api.requests import DECODED_LIMIT, body_of, brain_of, require_at_most, run_cancellable
from memoryd.api.respond import json_response
from memoryd.brain.brain import Brain
from memoryd.brain.ingest import NewDocument
from memoryd.chunk import document_id
from memoryd.files.path import canonical
from memoryd.problem import invalid, problem_prefix
from memoryd.wire import exact_json
from memoryd.wire.base64 import decode_base64


async def ingest_file(request: Request) -> Response:
    body = await body_of(request)
    brain = await brain_of(request)

    def ingest() -> list[dict[str, Any]]:
        document = _document(parse(IngestFile, body), exact_json.loads(body))
        require_at_most(DECODED_LIMIT, len(document.content))
        return _ingest(brain, [document])

    [item] = await run_cancellable(request, ingest)
    return json_response(item)


async def ingest_batch(request: Request) -> Response:
    started = time.perf_counter()
    body = await body_of(request)
    brain = await brain_of(request)

    def ingest() -> list[dict[str, Any]]:
        parsed = parse(IngestBatch, body).documents
        exact = exact_json.loads(body)["documents"]
        documents = [_batch_item(index, raw, exact[index]) for index, raw in enumerate(parsed)]
        require_at_most(DECODED_LIMIT, sum(len(document.content) for document in documents))
        return _ingest(brain, documents)

    items = await run_cancellable(request, ingest)
    took = (time.perf_counter() - started) * 1e3
    return json_response({"items": items, "tookMs": round(took, 3)})


def _batch_item(index: int, raw: dict[str, Any], exact: dict[str, Any]) -> NewDocument:
    with problem_prefix(f"documents[{index}]"):
        return _document(validate(IngestFile, raw), exact)


def _document(body: IngestFile, exact: dict[str, Any]) -> NewDocument:
    """The document of a request; `exact` is the same body with the numbers as they were written."""
    content = decode_base64(body.content_base64, "contentBase64")
    sidecar: dict[str, Any] = {"contentType": body.content_type}
    metadata = exact.get("metadata")
    optional = {"title": body.title, "tags": body.tags, "metadata": metadata}
    sidecar |= {key: value for key, value in optional.items() if value is not None}
    if not exact_json.are_finite(metadata):
        raise invalid("metadata: contains a number that is not a finite float64")
    return NewDocument(canonical(body.path), content, sidecar)


def _ingest(brain: Brain, documents: list[NewDocument]) -> list[dict[str, Any]]:
    started = time.perf_counter()
    indexed = brain.ingest(documents)
    took = (time.perf_counter() - started) * 1e3 / len(documents)
    return [
        {
            "documentId": document_id(new.path),
            "path": new.path,
            "chunkCount": len(indexed[new.path].chunks) if new.path in indexed else 0,
            "bytes": len(new.content),
            "tookMs": round(took, 3),
        }
        for new in documents
    ]
