"""The upstream's HTTP API: two chat APIs, embeddings, reranking, models, and control routes.

GET  /_control/requests     recorded requests, in order; ?after=N skips the first N
GET  /_control/counts       how many requests of each kind arrived, and how many were refused
PUT  /_control/script       replaces the script and clears the records
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from memconform import __version__
from memconform.contract.wire import CONTRACT_VERSION
from memconform.errors import UsageError
from memconform.upstream.chat_apis import Anthropic, BadRequestError, Dialect, OpenAI
from memconform.upstream.embedders import served_models
from memconform.upstream.extractive import NO_ANSWER, complete, wants_scores
from memconform.upstream.fact_extractor import extractor_reply, is_extracting
from memconform.upstream.lexical_judge import is_judging, judge
from memconform.upstream.reader_prompt import UnreadablePromptError
from memconform.upstream.records import RecordedRequest, Records
from memconform.upstream.request_bodies import (
    BodyTooLargeError,
    parse_body,
    read_body,
    read_script,
)
from memconform.upstream.schema_filler import WantedSchema, stand_in
from memconform.upstream.script import Kind, Reply, Script, ScriptPlayer, TokenUsage
from memconform.upstream.search_agent import is_searching, next_reply
from memconform.upstream.vector_apis import embeddings, ollama_embeddings, rerank
from memconform.validation_faults import first_fault

_WORD = re.compile(r"\S+\s*|\s+")
_POLL_SECONDS = 0.02
"""How often to check whether a waiting client has disconnected."""
_STATUS = {
    **dict.fromkeys(("unknown_model", "extra_missing", "model_missing", "model_differs"), 404),
    "bad_text": 400,
}
"""HTTP status by the code of an embedder's UsageError; any other code is a 500."""
_MAX_DIGITS = 15
"""Digits of a request's number: Python refuses to parse 10,000."""
_LONG_PROMPT = 1 << 18
"""Characters. Longer prompts are answered in a thread: they would block others for 0.1 s."""
_CLOSE = {"Connection": "close"}
"""Headers of a response sent before the request was read to its end; otherwise the server would
read the rest first."""


class _ClientGoneError(Exception):
    pass


class _CutError(Exception):
    """Raised inside a response body to make the server close the connection without ending it."""


class ScriptedUpstream:
    """The ASGI application of the upstream, with its script and its records."""

    def __init__(self, script: Script, run_id: str | None = None) -> None:
        self._player = ScriptPlayer(script)
        self._records = Records()
        self._version = {"name": "upstream", "version": __version__, "contract": CONTRACT_VERSION}
        if run_id is not None:
            self._version["runId"] = run_id

    def app(self) -> Starlette:
        def both(path: str, handle: Callable[[Request], Awaitable[Response]]) -> list[Route]:
            return [Route(p, handle, methods=["POST"]) for p in (path, f"/v1{path}")]

        return Starlette(
            routes=[
                *both("/chat/completions", self._chat(OpenAI())),
                *both("/messages", self._chat(Anthropic())),
                *both("/embeddings", self._plain("embeddings", embeddings)),
                *both("/rerank", self._plain("rerank", rerank)),
                Route("/api/embed", self._plain("embeddings", ollama_embeddings), methods=["POST"]),
                Route("/models", _models),
                Route("/v1/models", _models),
                Route("/healthz", _health),
                # Asked of a reranker before its first call, as servers of such models answer it.
                Route("/health", _health),
                Route("/version", self._send_version),
                Route("/_control/requests", self._requests),
                Route("/_control/counts", self._counts),
                Route("/_control/script", self._set_script, methods=["PUT"]),
            ]
        )

    async def _send_version(self, _: Request) -> Response:
        return JSONResponse(self._version)

    async def _requests(self, request: Request) -> Response:
        after = request.query_params.get("after", "0")
        if not after.isdecimal() or len(after) > _MAX_DIGITS:
            return JSONResponse({"error": "after: must be the number of a request"}, 400)
        return Response(self._records.dump(int(after)), media_type="application/json")

    async def _counts(self, _: Request) -> Response:
        return JSONResponse(self._records.counts.dump())

    async def _set_script(self, request: Request) -> Response:
        try:
            script = read_script(await read_body(request))
        except ValidationError as error:
            return JSONResponse({"error": first_fault(error)}, 400)
        except BadRequestError as error:
            return JSONResponse({"error": str(error)}, 400)
        except BodyTooLargeError as error:
            return JSONResponse({"error": str(error)}, 413, _CLOSE)
        self._player = ScriptPlayer(script)
        self._records.clear()
        return Response(status_code=204)

    async def _record(
        self, kind: Kind, request: Request
    ) -> tuple[RecordedRequest, dict[str, Any], Reply]:
        """Read and record a request; return its record, its body, and the script's reply."""
        body, text = parse_body(await read_body(request))
        recorded = self._records.add(kind, request.url.path, request.headers, text.encode())
        return recorded, body, self._player.reply(kind, text)

    def _chat(self, dialect: Dialect) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            recorded = None
            try:
                recorded, body, reply = await self._record("chat", request)
                system, users = dialect.prompt(body)
                wanted = dialect.wanted_schema(body)
                default = await self._default_text(reply, system, users, wanted)
            except BadRequestError as error:
                return _error_response(dialect, error, recorded)
            except UnreadablePromptError as error:
                self._records.counts.refuse(str(error))
                return _error_response(dialect, error, recorded, error_code=error.code)
            except BodyTooLargeError as error:
                return _error_response(dialect, str(error), None, 413)
            tool = "" if wanted is None or reply.replaces_text else wanted.tool
            chat = _Chat(dialect, recorded, body, reply, default=default, tool=tool)
            if body.get("stream") is True and reply.status == 200:
                return await _stream_response(request, recorded, reply, chat.stream())
            return await _body_response(request, recorded, reply, chat.whole(), dialect)

        return handle

    async def _default_text(
        self, reply: Reply, system: str, users: Sequence[str], wanted: WantedSchema | None
    ) -> str:
        """The text of an answer, as far as the script leaves it open; counts what was asked.

        Raises:
            UnreadablePromptError: if the answer depends on a prompt that has no recognized
                structure.
            BadRequestError: if a schema that is to be filled is not one.
        """
        counts = self._records.counts
        is_call = wanted is not None and wanted.tool != ""
        if is_judging(system) and not is_call:
            return judge(users[-1])
        if is_extracting(system, users) and not is_call:
            return extractor_reply(users)
        if is_searching(system, users) and not is_call:
            counts.answers += 1
            return next_reply(users)
        try:
            text = stand_in(users, wanted)
        except ValueError as error:
            raise BadRequestError(str(error)) from error
        if text is not None:
            counts.stand_ins += 1
            return text
        if not wants_scores(system):
            counts.answers += 1
        return await _answer(reply, system, users)

    def _plain(
        self, kind: Kind, answer: Callable[[dict[str, Any]], Awaitable[Any]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            recorded = None
            try:
                recorded, query, reply = await self._record(kind, request)
                body = await answer(query)
            except BadRequestError as error:
                return _error_response(OpenAI(), error, recorded)
            except BodyTooLargeError as error:
                return _error_response(OpenAI(), str(error), None, 413)
            except UsageError as error:
                message = f"{error.message}; try: {error.hint}"
                return _error_response(OpenAI(), message, recorded, _STATUS.get(error.code, 500))
            return await _body_response(request, recorded, reply, body, OpenAI())

        return handle


class _Chat:
    """One chat's answer, complete or streamed, with the faults of the script."""

    def __init__(
        self,
        dialect: Dialect,
        recorded: RecordedRequest,
        body: dict[str, Any],
        reply: Reply,
        *,
        default: str,
        tool: str,
    ) -> None:
        self._dialect = dialect
        self._recorded = recorded
        self._body = body
        self._reply = reply
        self._tool = tool
        self._model = str(body.get("model", ""))
        text = default if reply.text is None else reply.text
        self._deltas = _WORD.findall(text) if reply.deltas is None else reply.deltas
        # Counts words as tokens, so that usage is the same for every daemon.
        prompt_words = len(json.dumps(body.get("messages"), ensure_ascii=False).split())
        self._usage = reply.usage or TokenUsage(input=prompt_words, output=len(self._deltas))

    def whole(self) -> dict[str, Any]:
        return self._dialect.whole(self._model, "".join(self._deltas), self._usage, self._tool)

    async def stream(self) -> AsyncIterator[bytes]:
        reply, dialect = self._reply, self._dialect
        yield dialect.opening(self._model, self._usage)
        for index, delta in enumerate(self._deltas):
            if reply.fault is not None and index == reply.after:
                break
            if index:
                await asyncio.sleep(reply.delta_delay_ms / 1e3)
            yield dialect.delta(self._model, delta)
            self._recorded.pieces += 1
        match reply.fault:
            case None:
                yield dialect.closing(self._model, self._usage, self._body)
            case "hang":
                await asyncio.Event().wait()
            case "cut":
                raise _CutError
            case "error":
                yield dialect.error("scripted error in the stream")
            case "bad_json":
                yield dialect.bad_json()
            case "ends":
                return


async def _answer(reply: Reply, system: str, users: Sequence[str]) -> str:
    """The reader's reply. Raises as `_default_text`."""
    try:
        if sum(map(len, users)) + len(system) > _LONG_PROMPT:
            return await asyncio.to_thread(complete, system, users)
        return complete(system, users)
    except UnreadablePromptError:
        if reply.replaces_text:
            return NO_ANSWER
        raise


def _error_response(
    dialect: Dialect,
    error: ValueError | str,
    recorded: RecordedRequest | None,
    status: int = 400,
    error_code: str = "",
) -> Response:
    if recorded is not None:
        recorded.outcome, recorded.refusal = "refused", str(error)
    headers = _CLOSE if status == 413 else {}
    return JSONResponse(dialect.problem(status, str(error), error_code=error_code), status, headers)


async def _stream_response(
    request: Request, recorded: RecordedRequest, reply: Reply, pieces: AsyncIterator[bytes]
) -> Response:
    """Stream `pieces` and record the outcome."""
    try:
        await _pause(request, reply.delay_ms / 1e3)
        if reply.fault == "hang" and reply.after == 0:
            await _pause(request, None)
    except _ClientGoneError:
        recorded.outcome = "client_gone"
        return Response(status_code=499)

    async def observed_pieces() -> AsyncIterator[bytes]:
        try:
            async for piece in pieces:
                yield piece
        except asyncio.CancelledError:
            recorded.outcome = "client_gone"
            raise
        except _CutError:
            recorded.outcome = "broken"
            raise
        recorded.outcome = "broken" if reply.fault else "answered"

    return StreamingResponse(
        observed_pieces(), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


async def _body_response(
    request: Request,
    recorded: RecordedRequest,
    reply: Reply,
    body: dict[str, Any],
    dialect: Dialect,
) -> Response:
    try:
        await _pause(request, reply.delay_ms / 1e3)
        if reply.fault == "hang":
            await _pause(request, None)
    except _ClientGoneError:
        recorded.outcome = "client_gone"
        return Response(status_code=499)
    recorded.outcome = "broken" if reply.fault else "answered"
    status = 500 if reply.fault == "error" and reply.status == 200 else reply.status
    headers = {} if reply.retry_after is None else {"Retry-After": f"{reply.retry_after:g}"}
    if status != 200:
        recorded.outcome = "refused"
        return JSONResponse(dialect.problem(status, f"scripted status {status}"), status, headers)
    content = json.dumps(body if reply.body is None else reply.body).encode()
    if reply.fault is None:
        return Response(content, media_type="application/json")
    half = content[: len(content) // 2]
    if reply.fault == "bad_json":
        return Response(half, media_type="application/json")

    async def cut_body() -> AsyncIterator[bytes]:
        yield half
        raise _CutError

    return StreamingResponse(
        cut_body(), media_type="application/json", headers={"Content-Length": str(len(content))}
    )


async def _pause(request: Request, seconds: float | None) -> None:
    """Wait `seconds`, or forever if None; raises _ClientGoneError if the client disconnects."""
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while end is None or (remaining := end - loop.time()) > 0:
        await asyncio.sleep(_POLL_SECONDS if end is None else min(_POLL_SECONDS, remaining))
        if await request.is_disconnected():
            raise _ClientGoneError


async def _health(_: Request) -> Response:
    return JSONResponse({"ok": True})


async def _models(_: Request) -> Response:
    names = ("extractive", *served_models(), "lexical")
    models = [{"id": name, "object": "model"} for name in names]
    return JSONResponse({"object": "list", "data": models})
