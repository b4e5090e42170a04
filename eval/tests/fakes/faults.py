"""The faults of a scripted daemon; each breaks one part of what it sends."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from memconform.bench.raw_http import RawExchange

Chunk = dict[str, Any]
Event = tuple[str, Any]


def encode(name: str, payload: Any) -> bytes:
    data = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return f"event: {name}\ndata: {data}\n\n".encode()


async def _die(_: RawExchange) -> None:
    sys.stderr.write("scripted: dying by SIGKILL\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)


async def _hang(_: RawExchange) -> None:
    await asyncio.sleep(3600)


async def _endless(exchange: RawExchange) -> None:
    await exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    await exchange.raw(b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        await exchange.piece(b" " * (1 << 20))


async def _drip(exchange: RawExchange, data: bytes) -> None:
    head, _, _ = data.partition(b"event: done")
    await exchange.piece(head)
    while True:
        await exchange.piece(b": still here\n\n")
        await asyncio.sleep(0.05)


async def _drip_events(exchange: RawExchange, data: bytes) -> None:
    head, _, _ = data.partition(b"event: citation")
    await exchange.piece(head)
    while True:
        await exchange.piece(encode(*_DELTA))
        await asyncio.sleep(0.05)


async def _cut(exchange: RawExchange, data: bytes) -> None:
    await exchange.piece(data[: len(data) // 2])
    exchange.abort()


async def _silent(exchange: RawExchange, data: bytes) -> None:
    await exchange.piece(data[: data.index(b"event: answer_delta")])
    await asyncio.sleep(3600)


async def _stay_open(exchange: RawExchange, data: bytes) -> None:
    await exchange.piece(data)
    await asyncio.sleep(3600)


async def _byte_by_byte(exchange: RawExchange, data: bytes) -> None:
    for index in range(len(data)):
        await exchange.piece(data[index : index + 1])
    await exchange.end_stream()


async def _with_bom(exchange: RawExchange, data: bytes) -> None:
    await exchange.piece(b"\xef\xbb\xbf" + data)
    await exchange.end_stream()


def _replaced(line_end: str) -> Callable[[str, Any], bytes]:
    return lambda name, payload: encode(name, payload).replace(b"\n", line_end.encode())


def _noisy(name: str, payload: Any) -> bytes:
    """Precede an event with fields and events that a reader must ignore."""
    return b"retry: 3000\n: a comment\nid: 1\n\n" + encode("telemetry", {}) + encode(name, payload)


def _without(*names: str) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [event for event in events if event[0] not in names]


def _with_end(*last: Event, ok: bool = True) -> Callable[[list[Event]], list[Event]]:
    """Replace `done` by the events `last` and a `done` with this `ok`."""
    return lambda events: [*events[:-1], *last, ("done", {"ok": ok})]


HOSTILE = (
    "\x1b]52;c;cHduZWQ=\x07\x1b]8;;http://evil.example\x1b\\\x9b31m\r\x08\u202e\u2066\u061c\u200b\u2028"
    "\n::error file=a::pwned\n  ##vso[task.setvariable variable=a]b\n##[group]a\n##teamcity[a]"
    "[red]a[/] <img src=x> | end"
)
"""Text that controls a terminal, a CI server, rich or Markdown if it is printed unescaped."""

_DELTA = ("answer_delta", {"text": "more "})
_ERROR = ("error", {"code": "bad_gateway", "message": "the upstream is unavailable"})

EXCHANGE_FAULTS: dict[str, Callable[[RawExchange], Awaitable[None]]] = {
    "dies": _die,
    "hangs": _hang,
    "hangs_stubborn": _hang,
    "http_500": lambda e: e.problem(500, "internal_error", "boom"),
    "html_200": lambda e: e.reply(200, b"<html><title>Welcome</title></html>", "text/html"),
    "hostile_problem": lambda e: e.problem(500, HOSTILE, HOSTILE),
    "hostile_media_type": lambda e: e.reply(200, b"{}", "text/\x1b[31m\x9b31m::a"),
    "other_shape": lambda e: e.json({"hits": []}),
    "text_html": lambda e: e.reply(200, b'{"chunks": [], "tookMs": 1, "trace": {}}', "text/html"),
    "accepted_202": lambda e: e.json({}, 202),
    "endless_body": _endless,
}
STREAM_FAULTS: dict[str, Callable[[RawExchange, bytes], Awaitable[None]]] = {
    "cuts_stream": _cut,
    "silent_after_retrieve": _silent,
    "drips_comments": _drip,
    "drips_deltas": _drip_events,
    "open_after_done": _stay_open,
    "byte_by_byte": _byte_by_byte,
    "bom": _with_bom,
}
EVENT_FAULTS: dict[str, Callable[[list[Event]], list[Event]]] = {
    "bad_json_delta": lambda events: [events[0], ("answer_delta", '{"text": '), *events[1:]],
    "done_twice": lambda events: [*events, events[-1]],
    "delta_after_done": lambda events: [*events, _DELTA],
    "delta_before_retrieve": lambda events: [_DELTA, *events],
    "delta_after_citation": lambda events: [
        *events[:-1],
        ("answer_delta", {"text": "x"}),
        events[-1],
    ],
    "retrieve_twice": lambda events: [events[0], *events],
    "no_retrieve": _without("retrieve"),
    "no_done": _without("done"),
    "silent_reader": lambda events: [events[0], ("done", {"ok": True})],
    "hostile_event": lambda events: [events[0], (HOSTILE.partition("\n")[0], {}), *events[1:]],
    "hostile_error": _with_end(("error", {"code": HOSTILE, "message": HOSTILE}), ok=False),
    "misspelt_delta": lambda events: (
        [("answer-delta" if name == "answer_delta" else name, data) for name, data in events[:-1]]
        + [("done", {"ok": True})]
    ),
    "ok_after_error": _with_end(_ERROR),
    "error": _with_end(_ERROR, ok=False),
    "failed_without_error": _with_end(ok=False),
    "error_without_code": _with_end(("error", {"message": "out of quota"}), ok=False),
    "empty_error": _with_end(("error", {"code": "x", "message": ""}), ok=False),
    "answer_mismatch": lambda events: [*events[:-1], ("done", {"ok": True, "answer": "other"})],
    "foreign_citation": lambda events: [
        *events[:-1],
        ("citation", {"chunkId": "elsewhere#0", "path": "elsewhere", "title": "T", "score": 1.0}),
        events[-1],
    ],
}
RANKING_FAULTS: dict[str, Callable[[list[Chunk]], list[Chunk]]] = {
    "too_many_chunks": lambda chunks: [
        {**chunks[0], "chunkId": f"{n}#0"} for n in range(1001) if chunks
    ],
    "chunk_twice": lambda chunks: [*chunks[:1], *chunks[:1]],
    "rising_scores": lambda chunks: [
        {**chunk, "score": float(n)} for n, chunk in enumerate(chunks)
    ],
    "empty_text": lambda chunks: [{**chunk, "text": ""} for chunk in chunks],
    "hostile_paths": lambda chunks: [
        {**chunk, "path": f"{HOSTILE}{n}", "chunkId": HOSTILE} for n, chunk in enumerate(chunks)
    ],
    "foreign_chunk": lambda chunks: [{**chunk, "path": "made/up.md"} for chunk in chunks],
    "drops_first": lambda chunks: chunks[1:],
    "other_text": lambda chunks: [{**chunk, "text": chunk["text"] + "!"} for chunk in chunks],
    "other_item": lambda chunks: [{**chunk, "metadata": {"item_id": "x"}} for chunk in chunks],
    "nan_score": lambda chunks: [{**chunk, "score": float("nan")} for chunk in chunks],
}
ASK_FAULTS: dict[str, Callable[[list[Chunk]], list[Chunk]]] = {
    "ask_finds_nothing": lambda _: [],
    "ask_finds_one": lambda chunks: chunks[:1],
    "ask_skips_first": lambda chunks: chunks[1:],
}
"""Faults of what is retrieved for an answer, of one chunk more than were asked for; searches are
right."""
ENCODINGS = {"crlf": _replaced("\r\n"), "cr": _replaced("\r"), "noise": _noisy}
START_FAULTS = ("exits", "hostile_log", "exits_after_noise", "noisy", "never_listens")
STATE_FAULTS = (
    "never_healthy",
    "ignores_sigterm",
    "hangs_on_ingest",
    "dies_on_ingest",
    "dies_when_counted",
    "fell_back_lie",
    "other_requested_mode",
    "loses_document",
    "no_version",
    "brain_500",
    "other_brain",
    "keeps_brain",
    "tells_headers",
    "echoes_header",
    "leaks_token",
    "dies_once",
    "other_contract",
    "miscounts",
    "stays_pending",
    "not_searchable",
    "indexes_late",
    "truncates",
    "mode_not_served",
    "ignores_prefix",
    "ask_ignores_prefix",
    "no_chunks",
    "lists_no_brain",
    "plain_errors",
    "no_batch",
    "filters_sessions",
    "forgets_sessions",
    "kills_other",
)
FAULTS = (
    "",
    *START_FAULTS,
    *STATE_FAULTS,
    *EXCHANGE_FAULTS,
    *STREAM_FAULTS,
    *EVENT_FAULTS,
    *RANKING_FAULTS,
    *ASK_FAULTS,
    *ENCODINGS,
)
