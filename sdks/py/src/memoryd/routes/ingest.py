"""Ingest: documents with what is said of them, one or many."""

import json
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memoryd.brain import NewDocument, Stored
from memoryd.chunking import document_id
from memoryd.models import IngestBatch, IngestFile, decoded, parse, validated
from memoryd.paths import canonical
from memoryd.problems import invalid, named
from memoryd.requests import DECODED_LIMIT, body_of, brain_of, refuse_over, unless_gone
from memoryd.responses import json_response


async def ingest_file(request: Request) -> Response:
    body = await body_of(request)
    brain = await brain_of(request)

    def ingest() -> list[Stored]:
        document = _document(parse(IngestFile, body))
        refuse_over(DECODED_LIMIT, len(document.content))
        return brain.ingest([document])

    [stored] = await unless_gone(request, ingest)
    return json_response(_stored(stored))


async def ingest_batch(request: Request) -> Response:
    started = time.perf_counter()
    body = await body_of(request)
    brain = await brain_of(request)

    def ingest() -> list[Stored]:
        documents = [
            _batched(index, raw) for index, raw in enumerate(parse(IngestBatch, body).documents)
        ]
        refuse_over(DECODED_LIMIT, sum(len(document.content) for document in documents))
        return brain.ingest(documents)

    stored = await unless_gone(request, ingest)
    took = (time.perf_counter() - started) * 1e3
    return json_response({"items": [_stored(item) for item in stored], "tookMs": round(took, 3)})


def _batched(index: int, raw: dict[str, Any]) -> NewDocument:
    with named(f"documents[{index}]"):
        return _document(validated(IngestFile, raw))


def _document(body: IngestFile) -> NewDocument:
    content = decoded(body.content_base64, "contentBase64")
    sidecar: dict[str, Any] = {"contentType": body.content_type}
    given = {"title": body.title, "tags": body.tags, "metadata": body.metadata}
    sidecar |= {key: value for key, value in given.items() if value is not None}
    try:
        json.dumps(sidecar, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        # NaN and lone surrogates: no JSON could carry them back.
        raise invalid(f"metadata: {error}") from None
    return NewDocument(canonical(body.path), content, sidecar)


def _stored(stored: Stored) -> dict[str, Any]:
    return {
        "documentId": document_id(stored.path),
        "path": stored.path,
        "chunkCount": stored.chunks,
        "bytes": stored.bytes,
        "tookMs": round(stored.took_ms, 3),
    }
