"""A daemon without a network: predicts the response to each request, and keeps the brains."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from memconform.contract.schemas import Route
from memconform.contract.wire import JsonValue
from memconform.oracle import body_checks, reader
from memconform.oracle.brains import Brain, changed, empty
from memconform.oracle.document_routes import BODY_LIMIT, READS, on_document
from memconform.oracle.front_matter import Attributes
from memconform.oracle.json_decoder import decode
from memconform.oracle.predictions import (
    ANYTHING,
    NO_STORE,
    Omittable,
    Option,
    Prediction,
    Rejection,
    invalid,
    problem,
    rejected,
)
from memconform.oracle.search import Providers, search, trace
from memconform.oracle.store import Document, Documents, RejectedError, document_id
from memconform.oracle.targets import Target, parse_target

_CONTENT_LIMIT = 8 * 2**20
_STREAM = "text/event-stream"


Body = bytes | JsonValue


class OracleDaemon:
    """Predicts what a daemon must answer. Not for routes without a brain, except its creation."""

    def __init__(self, providers: Providers) -> None:
        self._has = providers
        self._brains: dict[str, Brain] = {}
        self._handlers: dict[str, Callable[[Brain, Any], Prediction]] = {
            "search": self._search,
            "ask": self._ask,
            "ingestFile": self._ingest_file,
            "ingestBatch": self._ingest_batch,
            "renameDocument": self._rename,
            "batchOps": self._batch_ops,
        }

    def brain(self, brain_id: str) -> Brain | None:
        """The brain of that id, if there is one."""
        return self._brains.get(brain_id)

    def create(self, brain_id: str, description: str | None = None) -> None:
        """Create an empty brain."""
        self._brains[brain_id] = Brain(description)

    def predict(
        self, method: str, target: str, body: Body, headers: Mapping[str, str]
    ) -> Prediction | None:
        """Return what may be answered; None if the contract does not say.

        Nothing changes until the `apply` of the option that was answered is called.

        Args:
            method: The HTTP method.
            target: Path and query.
            body: Bytes as they are sent, or what they are the JSON of; None without a body.
            headers: The request's own headers.
        """
        found = parse_target(target)
        route = found.routes.get(method)
        if route is None:
            return _unknown(method, found)
        if route.name == "createBrain":
            return self._create(body)
        brain = self._brains.get(found.brain)
        if brain is None:
            headers_ = NO_STORE if route.name in READS else {}
            return rejected([Rejection(404, "core.brain.unknown")], headers_)
        if route.name in ("brain", "deleteBrain"):
            is_read = route.name == "brain"
            return self._info(found.brain, brain) if is_read else self._delete(found.brain, headers)
        if route.request is not None:
            return self._with_body(route, brain, body)
        return on_document(route, brain, found.query, body if isinstance(body, bytes) else b"")

    def _create(self, body: Body) -> Prediction:
        value, rejections, open_ = _value(body)
        rejections = rejections or body_checks.create(value)
        if rejections:
            return rejected(rejections)
        brain_id, description = value["brainId"], value.get("description")
        if brain_id in self._brains:
            return rejected([Rejection(409, "core.brain.create")])
        option = Option(
            201,
            "core.brain.create",
            body=_brain_body(brain_id, Brain(description), self._has),
            apply=lambda: self.create(brain_id, description),
        )
        refusals = (problem(invalid("robust.depth")),) * open_
        return Prediction((option, *refusals))

    def _info(self, brain_id: str, brain: Brain) -> Prediction:
        body = _brain_body(brain_id, brain, self._has)
        return Prediction((Option(200, "core.brain.counts", body=body),))

    def _delete(self, brain_id: str, headers: Mapping[str, str]) -> Prediction:
        if headers.get("X-Confirm-Delete") != "yes":
            return rejected([Rejection(428, "core.brain.delete")])

        def forget() -> None:
            del self._brains[brain_id]

        option = Option(204, "core.brain.delete", media=None, body=b"", apply=forget)
        return Prediction((option,))

    def _with_body(self, route: Route, brain: Brain, body: Body) -> Prediction:
        value, rejections, open_ = _value(body)
        if rejections:
            return rejected(rejections)
        prediction = self._handlers[route.name](brain, value)
        if not open_ or prediction.options[0].status >= 400:
            return prediction
        return Prediction((*prediction.options, problem(invalid("robust.depth"))))

    def _search(self, brain: Brain, body: dict[str, Any]) -> Prediction:
        if rejections := [*body_checks.search(body), *self._unoffered(body)]:
            return rejected(rejections)
        body, refusals = self._without_unsupported(body)
        top_k = _top_k(body, 10)
        chunks = brain.documents.chunks()
        ranked = search(chunks, body, body["query"], top_k, self._has)
        answer = {
            "chunks": [hit.body() for hit in ranked],
            "trace": trace(chunks, body, top_k, self._has),
        }
        return Prediction((Option(200, "core.search.shape", body=answer), *refusals))

    def _unoffered(self, body: Mapping[str, Any]) -> list[Rejection]:
        """Reject the mode that not every daemon offers."""
        offers = self._has.conversation or body.get("mode") != "conversation"
        return [] if offers else [invalid("core.rank.conversation")]

    def _without_unsupported(
        self, body: dict[str, Any]
    ) -> tuple[dict[str, Any], tuple[Option, ...]]:
        """Leave out what a daemon without a SHOULD rule ignores; it may also reject it."""
        tuning = body.get("tuning") or {}
        optional = {"kernel": self._has.kernel, "recency": self._has.recency}
        optional["temporal"] = self._has.temporal
        ignored = [key for key, has in optional.items() if not has and tuning.get(key) is not None]
        if not ignored:
            return body, ()
        kept = {key: value for key, value in tuning.items() if key not in ignored}
        refusals = tuple(problem(invalid(f"core.rank.{key}")) for key in ignored[:1])
        return {**body, "tuning": kept}, refusals

    def _ask(self, brain: Brain, body: dict[str, Any]) -> Prediction:
        rejections = [*body_checks.ask(body), *self._unoffered(body)]
        if not self._has.reader:
            rejections = [*rejections, Rejection(502, "ask.before-stream")]
        if rejections:
            return rejected(rejections)
        body, refusals = self._without_unsupported(body)
        top_k, question = _top_k(body, 5), body["question"]
        chunks = brain.documents.chunks()
        ranked = search(chunks, body, question, top_k, self._has)
        trace_ = trace(chunks, body, top_k, self._has)
        retrieve = {
            "chunks": [hit.body() for hit in ranked],
            "topK": top_k,
            "mode": trace_["effectiveMode"],
            "trace": trace_,
        }
        events = reader.stream(question, ranked, retrieve)
        return Prediction((Option(200, "ask.order", _STREAM, events), *refusals))

    def _ingest_file(self, brain: Brain, body: dict[str, Any]) -> Prediction:
        return _ingest(brain, [body], body_checks.document(body), is_batch=False)

    def _ingest_batch(self, brain: Brain, body: dict[str, Any]) -> Prediction:
        rejections = body_checks.batch(body)
        documents = [] if rejections else body["documents"]
        return _ingest(brain, documents, rejections, is_batch=True)

    def _rename(self, brain: Brain, body: dict[str, Any]) -> Prediction:
        if rejections := body_checks.rename(body):
            return rejected(rejections)
        return changed(
            brain, lambda d: d.rename(body["from"], body["to"]), empty("documents.rename")
        )

    def _batch_ops(self, brain: Brain, body: dict[str, Any]) -> Prediction:
        if rejections := body_checks.operations(body):
            return rejected(rejections)
        ops, reason = body["ops"], body.get("reason")
        contents = [body_checks.decoded(op["content_base64"]) or b"" for op in ops if _writes(op)]
        if sum(map(len, contents)) > _CONTENT_LIMIT:
            return rejected([Rejection(413, "documents.limit")])

        def apply(documents: Documents) -> None:
            for number, op in enumerate(ops):
                try:
                    _operate(documents, op, reason)
                except RejectedError as error:
                    refused = replace(error.rejection, names=(f"ops[{number}]",))
                    raise RejectedError(refused) from error

        done = Option(200, "documents.batch", body={"committed": len(ops)})
        return changed(brain, apply, done)


def _unknown(method: str, target: Target) -> Prediction | None:
    """Predict the answer where no route matches."""
    if not target.routes:
        return rejected([Rejection(404, "wire.problem")])
    allow = {"allow": frozenset(name.lower() for name in target.routes if name != "HEAD")}
    is_read = method == "HEAD" and "GET" in target.routes
    return None if is_read else rejected([Rejection(405, "wire.problem")], allow)


def _value(body: Body) -> tuple[Any, list[Rejection], bool]:
    """The JSON object of a body, and what is wrong with it."""
    if isinstance(body, bytes):
        if len(body) > BODY_LIMIT:
            return None, [Rejection(413, "robust.large")], False
        return decode(body)
    return body, [] if isinstance(body, dict) else [invalid("robust.body")], False


def _top_k(body: Mapping[str, Any], default: int) -> int:
    given = body.get("topK")
    return default if given is None else int(given)


def _brain_body(brain_id: str, brain: Brain, has: Providers) -> dict[str, JsonValue]:
    chunks = len(brain.documents.chunks())
    return {
        "brainId": brain_id,
        "description": Omittable(None) if brain.description is None else brain.description,
        "documents": brain.documents.visible(),
        "chunks": chunks,
        "vectors": chunks if has.embedder else 0,
        "pending": 0,
    }


def _ingest(
    brain: Brain, documents: list[dict[str, Any]], rejections: list[Rejection], *, is_batch: bool
) -> Prediction:
    if rejections:
        return rejected(rejections)
    contents = [body_checks.decoded(document["contentBase64"]) or b"" for document in documents]
    if sum(map(len, contents)) > _CONTENT_LIMIT:
        return rejected([Rejection(413, "core.ingest.limit")])
    last = {document["path"]: number for number, document in enumerate(documents)}
    counts = sorted(last.values())

    def store(copy: Documents) -> None:
        for number in counts:
            document = documents[number]
            try:
                copy.store(document["path"], Document(contents[number], _attributes(document)))
            except RejectedError as error:
                # Of two documents that conflict, either may be named.
                names = tuple(f"documents[{n}]" for n in range(len(documents))) * is_batch
                raise RejectedError(replace(error.rejection, names=names)) from error

    copy = brain.documents.copy()
    try:
        store(copy)
    except RejectedError as error:
        return rejected([error.rejection])
    items = [
        {
            "documentId": document_id(document["path"]),
            "path": document["path"],
            # Of a document that another one of the batch replaces, no chunk is stored.
            "chunkCount": _chunk_count(copy, document["path"]) if number in counts else ANYTHING,
            "bytes": len(contents[number]),
        }
        for number, document in enumerate(documents)
    ]
    rule = "core.ingest.batch" if is_batch else "core.ingest.replace"
    done = Option(200, rule, body={"items": items} if is_batch else items[0])
    return changed(brain, store, done)


def _chunk_count(documents: Documents, path: str) -> int:
    return len(documents.indexed(path).chunks)


def _attributes(document: Mapping[str, Any]) -> Attributes:
    tags = document.get("tags")
    return Attributes(
        document.get("title"),
        None if tags is None else tuple(tags),
        document.get("metadata") or {},
    )


def _writes(op: Mapping[str, Any]) -> bool:
    return op["type"] in ("write", "append")


def _operate(documents: Documents, op: Mapping[str, Any], reason: str | None) -> None:
    match op["type"]:
        case "write":
            documents.write(op["path"], body_checks.decoded(op["content_base64"]) or b"", reason)
        case "append":
            documents.append(op["path"], body_checks.decoded(op["content_base64"]) or b"", reason)
        case "delete":
            documents.delete(op["path"], reason)
        case _:
            documents.rename(op["path"], op["to"], reason)
