"""The routes whose parameters are in the query (documents.*)."""

from collections.abc import Mapping
from dataclasses import replace

from memconform.contract.schemas import BYTES, Route
from memconform.contract.wire import JsonValue
from memconform.oracle.brains import Brain, changed, empty
from memconform.oracle.paths import is_canonical
from memconform.oracle.predictions import (
    NO_STORE,
    Option,
    Prediction,
    Rejection,
    invalid,
    problem,
    rejected,
)
from memconform.oracle.store import Documents
from memconform.oracle.targets import parameters

READS = ("readDocument", "hasDocument", "statDocument", "listDocuments")
BODY_LIMIT = 16 * 2**20
"""Bytes of any body (robust.large)."""
_WRITE_LIMIT = 2 * 2**20


def on_document(route: Route, brain: Brain, query: str, body: bytes) -> Prediction:
    """Predict the routes whose parameters are in the query."""
    headers = NO_STORE if route.name in READS else {}
    values, rejections, open_ = parameters(route, query)
    for name in ("path", "dir"):
        is_empty_folder = name == "dir" and not values.get(name)
        if name in values and not is_empty_folder and not is_canonical(values[name]):
            rejections.append(invalid("documents.path"))
    if len(body) > _WRITE_LIMIT:
        limit = "robust.large" if len(body) > BODY_LIMIT else "documents.limit"
        rejections.append(Rejection(413, limit))
    if rejections:
        return rejected(rejections, headers)
    prediction = _valid_on_document(route, brain.documents, values, body, brain)
    options = [
        replace(option, headers={**headers, **option.headers}) for option in prediction.options
    ]
    extra = [problem(invalid("documents.parameters"), headers)] if open_ else []
    return Prediction((*options, *extra))


def _valid_on_document(
    route: Route, documents: Documents, values: Mapping[str, str], body: bytes, brain: Brain
) -> Prediction:
    path = values.get("path", "")
    match route.name:
        case "writeDocument":
            return changed(brain, lambda d: d.write(path, body), empty("documents.write"))
        case "appendDocument":
            return changed(brain, lambda d: d.append(path, body), empty("documents.append"))
        case "deleteDocument":
            return changed(brain, lambda d: d.delete(path), empty("documents.delete"))
        case "listDocuments":
            return _listing(documents, values)
    return Prediction((_read(route, documents, path),))


def _read(route: Route, documents: Documents, path: str) -> Option:
    document = documents.get(path)
    if route.name == "statDocument" and document is None and documents.folder_exists(path):
        return Option(200, "documents.stat", body=_stat(path, 0, is_dir=True))
    if document is None:
        return problem(Rejection(404, "documents.missing"))
    if route.name == "statDocument":
        body = _stat(path, len(document.content), is_dir=False)
        return Option(200, "documents.stat", body=body)
    if route.name == "hasDocument":
        return Option(200, "documents.missing", media=None, body=b"")
    return Option(200, "documents.read", BYTES, document.content)


def _stat(path: str, size: int, *, is_dir: bool) -> dict[str, JsonValue]:
    return {"path": path, "size": size, "is_dir": is_dir}


def _listing(documents: Documents, values: Mapping[str, str]) -> Prediction:
    items = documents.listing(
        values.get("dir", ""),
        recursive=values.get("recursive") == "true",
        hidden=values.get("include_generated") == "true",
        glob=values.get("glob"),
    )
    body = {"items": [_stat(path, size, is_dir=is_dir) for path, size, is_dir in items]}
    return Prediction((Option(200, "documents.list", body=body),))
