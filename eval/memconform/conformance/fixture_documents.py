"""Stores the documents that a case begins with, and verifies that the daemon has them.

A case about a document that the daemon has lost, or has stored elsewhere, would pass by accident: a
search for something else finds nothing either.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from memconform.conformance import request_bodies
from memconform.conformance.case import StoreStep
from memconform.conformance.case_context import CaseContext
from memconform.conformance.causes import step_name
from memconform.conformance.pointer import MISSING, resolve
from memconform.conformance.step_result import StepResult
from memconform.conformance.variables import substitute
from memconform.contract.core import Ingested
from memconform.contract.wire import JsonValue

_ATTRIBUTES = ("title", "tags", "metadata")
_SECONDS = 10.0
_QUERY_CHARACTERS = 200


class StoppedError(Exception):
    """A step failed in a way that leaves the later ones nothing to work with.

    `cause` names it; `outcome` is the result of the step, if it has one.
    """

    def __init__(self, message: str, cause: str, outcome: StepResult | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.outcome = outcome


class InapplicableError(Exception):
    """The case, or the rest of it, does not apply to the daemon."""


def document(path: str, source: JsonValue) -> dict[str, JsonValue]:
    """Build the body of an ingest request."""
    fields: dict[str, Any] = {}
    if isinstance(source, dict):
        fields = {key: source[key] for key in _ATTRIBUTES if key in source}
        source = {key: value for key, value in source.items() if key not in fields}
    encoded = request_bodies.build_body({"$base64": source}, {})
    return {"path": path, "contentType": "text/markdown", "contentBase64": encoded, **fields}


def fixture_steps(documents: Mapping[str, JsonValue], *, has_store: bool) -> list[StoreStep]:
    """Return the steps that store documents: by PUT if the case is about the document store.

    Only an ingest can give a document attributes.
    """
    by_put = {p: s for p, s in documents.items() if has_store and not _has_attributes(s)}
    by_ingest = {p: s for p, s in documents.items() if p not in by_put}
    steps = [StoreStep(store=by_ingest)] if by_ingest else []
    return [*steps, StoreStep(store=by_put, via="put")] if by_put else steps


def _has_attributes(source: JsonValue) -> bool:
    return isinstance(source, dict) and any(key in source for key in _ATTRIBUTES)


def require_acknowledged(outcome: StepResult, documents: Sequence[Mapping[str, Any]]) -> None:
    """Compare the acknowledgement of an ingest with the documents that were sent.

    Raises:
        StoppedError: if the daemon has stored other paths, or another number of bytes.
    """
    answer = outcome.json()
    listed = resolve(answer, "/items")
    items = listed if isinstance(listed, list) else [answer]
    if len(items) != len(documents):
        raise StoppedError(
            f"{outcome.label}: {len(documents)} documents were sent, {len(items)} acknowledged",
            f"{step_name(outcome)}: another number of documents is acknowledged",
            outcome,
        )
    unknown = outcome.dialect.unknown_places(Ingested) if outcome.dialect is not None else []
    for item, sent in zip(items, documents, strict=True):
        size = len(base64.b64decode(sent["contentBase64"]))
        for key, value in (("path", sent["path"]), ("bytes", size)):
            got = item.get(key) if isinstance(item, dict) else None
            if got is None and key in unknown:
                continue
            if got != value:
                raise StoppedError(
                    f"{outcome.label}: the document {sent['path']!r} was not stored as sent:"
                    f" the acknowledgement has the {key} {got!r} instead of {value!r}",
                    f"{step_name(outcome)}: another {key} is acknowledged than was sent",
                    outcome,
                )


async def require_stored(
    context: CaseContext, documents: Mapping[str, JsonValue], *, has_store: bool
) -> None:
    """Verify that the daemon has the documents, by any of the routes that would show them.

    Raises:
        StoppedError: if none of the routes shows one of them.
    """
    variables = context.variables()
    contents: dict[str, bytes] = {}
    for path, source in substitute(dict(documents), variables).items():
        body = document(path, request_bodies.build_body(source, dict(variables)))
        contents[path] = base64.b64decode(body["contentBase64"])
    if not has_store and await _counts(context, contents):
        return
    for path, content in contents.items():
        if has_store:
            is_there = await _is_in_store(context, path, content)
        else:
            is_there = _is_hidden(path, content) or await _is_found(context, path, content)
        if not is_there:
            raise StoppedError(
                f"the daemon acknowledged the document {path!r}, but lacks it",
                "an acknowledged document is not stored",
            )


async def _counts(context: CaseContext, contents: Mapping[str, bytes]) -> bool:
    """Whether the brain counts as many documents as it must have."""
    counted = resolve((await _send(context, "GET ${brain_url}")).json(), "/documents")
    expected = sum(not path.rpartition("/")[2].startswith("_") for path in contents)
    return isinstance(counted, int) and 0 < expected <= counted


def _is_hidden(path: str, content: bytes) -> bool:
    """Whether no search finds the document: its name, or the lack of text, hides it."""
    try:
        has_text = bool(content.decode().strip())
    except UnicodeDecodeError:
        has_text = False
    return path.rpartition("/")[2].startswith("_") or not has_text


async def _is_found(context: CaseContext, path: str, content: bytes) -> bool:
    query = content.decode()[:_QUERY_CHARACTERS]
    body = request_bodies.as_json({"query": query, "mode": "bm25", "topK": 1000})
    answer = (await _send(context, "POST ${brain_url}/search", body)).json()
    paths = resolve(answer, "/chunks/*/path")
    return isinstance(paths, list) and path in paths


async def _is_in_store(context: CaseContext, path: str, content: bytes) -> bool:
    encoded = quote(path)
    read = await _send(context, f"GET ${{brain_url}}/documents/read?path={encoded}")
    if read.status == 200 and read.body == content:
        return True
    stat = await _send(context, f"GET ${{brain_url}}/documents/stat?path={encoded}")
    if resolve(stat.json(), "/size") == len(content):
        return True
    query = "?recursive=true&include_generated=true"
    listing = await _send(context, f"GET ${{brain_url}}/documents{query}")
    paths = resolve(listing.json(), "/items/*/path")
    return paths is not MISSING and isinstance(paths, list) and path in paths


async def _send(context: CaseContext, line: str, body: bytes | None = None) -> StepResult:
    sender = context.sender("daemon")
    request, exchange = sender.request(substitute(line, context.variables()), {}, body)
    outcome = await sender.send(request, exchange, _SECONDS)
    context.exchanges.append(outcome)
    return outcome
