"""Ingest of one document or a batch, with title, tags and metadata."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memoryd.api.bodies import IngestBatch, IngestFile
from memoryd.api.decode import parse, validate
from memoryd.api.requests import DECODED_LIMIT, body_of, brain_of, require_at_most, run_cancellable
from memoryd.api.respond import json_response
from memoryd.brain.ingest import NewDocument, StoredDocument
from memoryd.chunk import document_id
from memoryd.files.path import canonical
from memoryd.problem import invalid, problem_prefix
from memoryd.wire import exact_json
from memoryd.wire.base64 import decode_base64


async def ingest_file(request: Request) -> Response:
    body = await body_of(request)
    brain = await brain_of(request)

    def ingest() -> list[StoredDocument]:
        document = _document(parse(IngestFile, body), exact_json.loads(body))
        require_at_most(DECODED_LIMIT, len(document.content))
        return brain.ingest([document])

    [stored] = await run_cancellable(request, ingest)
    return json_response(_ingest_result(stored))


async def ingest_batch(request: Request) -> Response:
    started = time.perf_counter()
    body = await body_of(request)
    brain = await brain_of(request)

    def ingest() -> list[StoredDocument]:
        parsed = parse(IngestBatch, body).documents
        exact = exact_json.loads(body)["documents"]
        documents = [_batch_item(index, raw, exact[index]) for index, raw in enumerate(parsed)]
        require_at_most(DECODED_LIMIT, sum(len(document.content) for document in documents))
        return brain.ingest(documents)

    stored = await run_cancellable(request, ingest)
    took = (time.perf_counter() - started) * 1e3
    return json_response(
        {"items": [_ingest_result(item) for item in stored], "tookMs": round(took, 3)}
    )


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


def _ingest_result(stored: StoredDocument) -> dict[str, Any]:
    return {
        "documentId": document_id(stored.path),
        "path": stored.path,
        "chunkCount": stored.chunks,
        "bytes": stored.bytes,
        "tookMs": round(stored.took_ms, 3),
    }
