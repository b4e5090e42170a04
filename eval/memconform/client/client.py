"""The async client of the contract, with one connection pool per daemon."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from memconform.client.ask_stream import AskResult, AskStream
from memconform.client.connection import RESPONSE_LIMIT, HttpConnection, recorded_exchange
from memconform.client.failures import (
    CallTimeoutError,
    ContractViolatedError,
    DaemonFailedError,
)
from memconform.client.messages import read_message
from memconform.client.response_streams import dispatched_events
from memconform.client.responses import (
    SizeLimit,
    excerpt,
    require_media_type,
    require_status,
)
from memconform.client.timings import Timeouts, Timings
from memconform.client.transport import CallClock, timed
from memconform.contract.ask import AskRequest
from memconform.contract.core import (
    Brain,
    Brains,
    CreateBrain,
    Health,
    IngestBatch,
    Ingested,
    IngestedBatch,
    IngestFile,
    SearchRequest,
    SearchResponse,
    Trace,
    Version,
    ranking_fault,
    ranks_all,
    trace_fault,
)
from memconform.contract.dialect import Dialect, Operation, ranked_by, rerank_skips
from memconform.contract.dialect_keys import DialectError
from memconform.contract.dialect_tables import PathMapping
from memconform.contract.documents import Listing
from memconform.contract.strict_json import RepeatedKeyError
from memconform.contract.wire import RankBy, Request, Response
from memconform.validation_faults import first_fault

AFTER_DONE_SECONDS = 1.0
"""The contract's limit between `done` and the end of the stream."""

_BRAIN = "/v1/brains/{brain}"
_BY_POSITION = "; --rank-by position measures the ranking as it is ordered"

R = TypeVar("R", bound=Response)


class ContractClient:
    """Calls one daemon.

    Every method raises a CallError if the call yields no usable answer: DaemonFailedError for an
    HTTP error or a broken connection, ContractViolatedError for an answer that the contract does
    not allow, CallTimeoutError for a missed deadline.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeouts: Timeouts | None = None,
        connections: int = 8,
        headers: Mapping[str, str] | None = None,
        dialect: Dialect | None = None,
        rank_by: RankBy | None = None,
    ) -> None:
        """Create a client; without `rank_by`, rankings are taken as the dialect declares."""
        self.base_url = base_url.rstrip("/")
        self.timeouts = timeouts or Timeouts()
        self.dialect = dialect
        self._rank_by = rank_by
        self.null_lists = 0
        """Number of answers with null for an empty list of chunks (core.search.shape)."""
        self._confirms: bool | None = None
        """Whether the traces of searches confirm a mode; None before the first search."""
        self._connection = HttpConnection(
            self.base_url,
            self._authorized(headers or {}),
            connections=connections,
            connect_s=self.timeouts.connect,
        )

    @property
    def rank_by(self) -> RankBy:
        """What decides the order of a ranking whose scores rise."""
        return ranked_by(self.dialect, self._rank_by)

    def _authorized(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Send a bearer token in the way of the dialect."""
        result = dict(headers)
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if self.dialect is not None and scheme == "Bearer":
            del result["Authorization"]
            auth = self.dialect.auth
            result[auth.header] = auth.value.replace("{token}", token)
        return result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._connection.aclose()

    async def health(self) -> Health:
        return (await self._call("health", "GET", "/healthz", Health))[0]

    async def version(self) -> Version | None:
        """Return the daemon's version; None if its dialect has no such route."""
        if self.dialect is not None and not self.dialect.has("version"):
            return None
        return (await self._call("version", "GET", "/version", Version))[0]

    async def brain(self, brain_id: str) -> Brain:
        """Return a brain and its counts; those that the dialect does not have are None."""
        brain = (await self._call("brain", "GET", _BRAIN, Brain, brain=brain_id))[0]
        if brain.brain_id != brain_id:
            raise ContractViolatedError(
                "other_brain", f"requested brain {brain_id!r}, got brain {brain.brain_id!r}"
            )
        if self.dialect is not None and self.dialect.counts == "listing":
            paths = await self.list_documents(brain_id)
            return brain.model_copy(update={"documents": len(paths)})
        return brain

    async def list_brains(self) -> list[str]:
        """Return the ids of all brains."""
        listed, _ = await self._call("list_brains", "GET", "/v1/brains", Brains)
        return [item.brain_id for item in listed.items]

    async def create_brain(self, brain_id: str, description: str | None = None) -> None:
        body = CreateBrain(brain_id=brain_id, description=description)
        await self._send("create_brain", "POST", "/v1/brains", 201, body)

    async def delete_brain(self, brain_id: str) -> bool:
        """Delete a brain; False if it did not exist."""
        try:
            await self._send(
                "delete_brain", "DELETE", _BRAIN, 204,
                brain=brain_id, headers={"X-Confirm-Delete": "yes"},
            )  # fmt: skip
        except DaemonFailedError as error:
            if error.code != "http_404":
                raise
            return False
        return True

    async def ingest_file(self, brain_id: str, document: IngestFile) -> Ingested:
        path = f"{_BRAIN}/ingest/file"
        return (await self._call("ingest_file", "POST", path, Ingested, document, brain=brain_id))[
            0
        ]

    async def ingest_batch(self, brain_id: str, documents: Sequence[IngestFile]) -> IngestedBatch:
        path, body = f"{_BRAIN}/ingest/batch", IngestBatch(documents=list(documents))
        return (
            await self._call("ingest_batch", "POST", path, IngestedBatch, body, brain=brain_id)
        )[0]

    async def put_document(self, brain_id: str, path: str, content: bytes) -> None:
        """Store a document by its path, replacing one that exists."""
        if self.dialect is not None:
            path = self.dialect.paths.to_daemon(path)
        await self._send(
            "write_document", "PUT", f"{_BRAIN}/documents", 204,
            brain=brain_id, query={"path": path}, content=content,
        )  # fmt: skip

    async def list_documents(self, brain_id: str) -> list[str]:
        """Return the paths of all stored documents that the dialect's path mapping covers."""
        mapping = PathMapping() if self.dialect is None else self.dialect.paths
        # Of paths that were mapped already, nobody could tell whether the mapping covers them.
        plain = self.dialect and self.dialect.model_copy(update={"paths": PathMapping()})
        query = {
            "dir": mapping.folder_to_daemon(""),
            "recursive": "true",
            "include_generated": "true",
        }
        path = f"{_BRAIN}/documents"
        try:
            listing, _ = await self._call(
                "list_documents", "GET", path, Listing, brain=brain_id, query=query, dialect=plain
            )
        except DaemonFailedError as error:
            # Before the first document the folder does not exist.
            if error.code != "http_404":
                raise
            return []
        paths = [item.path for item in listing.items if not item.is_dir]
        return [mapping.from_daemon(path) for path in paths if mapping.covers(path)]

    async def search(
        self, brain_id: str, request: SearchRequest, *, rank_by: RankBy | None = None
    ) -> tuple[SearchResponse, Timings]:
        """Search; the trace is as unknown as the dialect declares it to be.

        `rank_by` overrides that of the client, for a search whose scores do not matter.
        """
        answer, timings = await self._call(
            "search", "POST", f"{_BRAIN}/search", SearchResponse, request, brain=brain_id
        )
        fault = trace_fault(answer.trace, request.mode, rerank_skips(self.dialect))
        if fault is not None:
            raise ContractViolatedError("bad_trace", fault)
        self._require_same_confirmation(answer.trace)
        everything = request.filters is None and ranks_all(answer.trace, request.query)
        fault = ranking_fault(
            answer.chunks, request.top_k, ranks_all=everything, rank_by=rank_by or self.rank_by
        )
        if fault is not None:
            raise _bad_ranking(fault)
        self.null_lists += answer.was_null
        return answer, replace(timings, daemon_ms=_longest(answer.took_ms, answer.trace.search_ms))

    def _require_same_confirmation(self, trace: Trace) -> None:
        """Raise ContractViolatedError if some traces of searches confirm a mode and others do not.

        A daemon was seen to leave out the trace where the retrieval had failed.
        """
        confirms = trace.effective_mode is not None
        if self._confirms is None:
            self._confirms = confirms
        if self._confirms != confirms:
            raise ContractViolatedError(
                "no_trace",
                "no trace confirms the mode, though those of other searches do"
                if self._confirms
                else "a trace confirms the mode, though those of other searches do not",
            )

    async def ask(self, brain_id: str, request: AskRequest) -> tuple[AskResult, Timings]:
        """Ask a question and read the answer's stream to its end."""
        limits = self.timeouts
        stream = AskStream(request, dialect=self.dialect, rank_by=self.rank_by)
        first_event = first_delta = done = None
        try:
            with timed(CallClock(limits.first, limits.total)) as clock:
                method, path = self._route("ask", "POST", f"{_BRAIN}/ask", brain_id)
                extensions = self._as_contract("ask", request)
                opened = self._connection.open(
                    method, path, self._body(request), extensions=extensions
                )
                async with opened as response:
                    first_byte = clock.elapsed_ms()
                    await require_status(response, self._status("ask", 200))
                    require_media_type(response, "text/event-stream")
                    exchange = recorded_exchange(response)
                    async with aclosing(dispatched_events(response)) as events:
                        async for event in events:
                            now = clock.elapsed_ms()
                            if exchange is not None:
                                exchange.add_event(event.event, event.data)
                            stream.feed(event.event, event.data)
                            first_event = first_event or now
                            if stream.has_delta:
                                first_delta = first_delta or now
                            if stream.is_done:
                                done = now
                            clock.allow(AFTER_DONE_SECONDS if stream.is_done else limits.gap)
        except ContractViolatedError as error:
            if error.code == "bad_ranking":
                raise _bad_ranking(error.message) from error
            raise
        except CallTimeoutError as error:
            if stream.is_done:
                raise ContractViolatedError(
                    "open_after_done",
                    f"the stream is still open {AFTER_DONE_SECONDS:g} s after done",
                ) from error
            raise
        answer = stream.finish()
        self.null_lists += answer.retrieve.was_null
        done = done or clock.elapsed_ms()
        daemon_ms = _longest(answer.retrieve.trace.search_ms)
        return answer, Timings(first_byte, done, first_event, first_delta, daemon_ms, clock.started)

    def ask_message(self, brain_id: str, request: AskRequest) -> bytes:
        """The request of `ask` as it is sent over a connection of its own, which it closes.

        Raises:
            DaemonFailedError: if the dialect cannot express it.
        """
        method, path = self._route("ask", "POST", f"{_BRAIN}/ask", brain_id)
        headers = {**self._connection.headers, "Connection": "close"}
        message = httpx.Request(
            method, f"{self.base_url}{path}", json=self._body(request), headers=headers
        )
        lines = [f"{method} ".encode() + message.url.raw_path + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in message.headers.raw]
        return b"\r\n".join([*lines, b"", message.content])

    def _route(
        self, operation: Operation, method: str, path: str, brain: str = ""
    ) -> tuple[str, str]:
        """The method and path of an operation: the dialect's, or else these of the contract."""
        if self.dialect is not None and (route := self.dialect.routes.get(operation)):
            method, _, path = route.partition(" ")
        return method, path.replace("{brain}", quote(brain, safe=""))

    def _status(self, operation: Operation, status: int) -> int:
        return self.dialect.statuses.get(operation, status) if self.dialect is not None else status

    def _body(self, body: Request) -> Any:  # noqa: ANN401 - JSON
        if self.dialect is None:
            return body.to_body()
        try:
            return self.dialect.request(body)
        except DialectError as error:
            raise DaemonFailedError(error.code, error.message) from error

    def _as_contract(self, operation: Operation, body: Request | None) -> dict[str, bytes]:
        """The request as the contract writes it, by which requests of two dialects are compared."""
        if self.dialect is None or body is None:
            return {}
        content = httpx.Request("POST", self.base_url, json=body.to_body()).content
        return {AS_CONTRACT: f"POST {operation}\n".encode() + content}

    async def _call(
        self,
        operation: Operation,
        method: str,
        path: str,
        model: type[R],
        body: Request | None = None,
        *,
        brain: str = "",
        query: Mapping[str, str] | None = None,
        dialect: Dialect | None = None,
    ) -> tuple[R, Timings]:
        content, timings = await self._send(
            operation, method, path, 200, body, brain=brain, query=query
        )
        try:
            return read_message(content, model, dialect or self.dialect), timings
        except RepeatedKeyError as error:
            raise ContractViolatedError(
                "duplicate_key", f"{self._where(operation, method, path, brain)}: {error}",
                body=excerpt(content),
            ) from error  # fmt: skip
        except (ValidationError, DialectError) as error:
            if isinstance(error, DialectError) and error.code == "reported_error":
                where = self._where(operation, method, path, brain)
                raise DaemonFailedError(
                    error.code, f"{where}: {error.message}", body=excerpt(content)
                ) from error
            fault = first_fault(error) if isinstance(error, ValidationError) else error.message
            raise ContractViolatedError(
                "bad_body",
                f"{self._where(operation, method, path, brain)}: {fault}",
                body=excerpt(content),
                model=model,
            ) from error

    def _where(self, operation: Operation, method: str, path: str, brain: str) -> str:
        return " ".join(self._route(operation, method, path, brain))

    async def _send(
        self,
        operation: Operation,
        method: str,
        path: str,
        status: int,
        body: Request | None = None,
        *,
        brain: str = "",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> tuple[bytes, Timings]:
        method, path = self._route(operation, method, path, brain)
        status = self._status(operation, status)
        json = self._body(body) if body else None
        limits = self.timeouts
        if status == httpx.codes.NO_CONTENT and self.dialect is not None:
            # A daemon that sends a body with 204 was seen to drop the connection a moment later,
            # during the next request.
            headers = {**(headers or {}), "Connection": "close"}
        with timed(CallClock(limits.first, limits.total)) as clock:
            async with self._connection.open(
                method,
                path,
                json,
                headers,
                query=query,
                content=content,
                extensions=self._as_contract(operation, body),
            ) as response:
                first_byte = clock.elapsed_ms()
                await require_status(response, status)
                if status != httpx.codes.NO_CONTENT:
                    require_media_type(response, "application/json")
                size_limit = SizeLimit(RESPONSE_LIMIT)
                received = bytearray()
                async for piece in response.aiter_bytes():
                    size_limit.count(piece)
                    received += piece
                    clock.allow(limits.gap)
                return bytes(received), Timings(
                    first_byte, clock.elapsed_ms(), sent_at=clock.started
                )


def _longest(*times: float | None) -> float | None:
    return max((time for time in times if time is not None), default=None)


AS_CONTRACT = "memconform.as_contract"
"""The extension of a request in a dialect that holds the contract's method, operation and body."""


def _bad_ranking(fault: str) -> ContractViolatedError:
    """A violation of the ranking rules, with the flag that measures a ranking whose scores rise."""
    return ContractViolatedError(
        "bad_ranking", f"{fault}{_BY_POSITION if 'score rises' in fault else ''}"
    )
