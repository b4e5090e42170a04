"""Clients that go away in the middle of anything, by the hundred, leave nothing behind."""

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

import httpx
import psutil

from tests.integration.changes import BASE, contents, send, serving
from tests.waiting import wait_until

_CLIENTS = 300
_AT_ONCE = 50

_SLACK = 8
"""Descriptors and threads that a daemon may have more than before: pools that have grown."""

_QUESTION = json.dumps({"question": "Where does the heron wait?"}).encode()


def _request(line: str, body: bytes = b"", *, length: int | None = None) -> bytes:
    announced = len(body) if length is None else length
    head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {announced}\r\n\r\n".encode() + body


_SENT: Mapping[str, bytes] = {
    "before a request": b"",
    "in the request line": b"GET /v1/bra",
    "in the headers": b"GET /healthz HTTP/1.1\r\nHost: 127.",
    "in a body": _request("PUT /v1/brains/b/documents?path=x.md", b"half", length=1_000_000),
    "in an ingest": _request("POST /v1/brains/b/ingest/batch", b'{"documents": [', length=70_000),
    "before a response": _request("POST /v1/brains/b/search", b'{"query": "heron"}'),
    "in an answer": _request("POST /v1/brains/b/ask", _QUESTION),
    "in a stream of events": _request("GET /v1/brains/b/events"),
}

_READ_FIRST = ("in an answer", "in a stream of events")


async def _leave(port: int, sent: bytes, *, reads: bool, resets: bool) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await writer.drain()
    if reads:
        await reader.readuntil(b"\r\n\r\n")
    if resets:
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


async def _storm(port: int, when: str) -> None:
    for start in range(0, _CLIENTS, _AT_ONCE):
        await asyncio.gather(
            *(
                _leave(port, _SENT[when], reads=when in _READ_FIRST, resets=bool(number % 2))
                for number in range(start, start + _AT_ONCE)
            )
        )


def _held(process: psutil.Process) -> tuple[int, int]:
    return process.num_fds(), process.num_threads()


def _is_released(process: psutil.Process, before: tuple[int, int]) -> bool:
    """Whether the daemon holds about as much as before."""
    return all(now <= then + _SLACK for now, then in zip(_held(process), before, strict=True))


async def test_clients_that_go_away_leave_nothing_behind(sdk: str, tmp_path: Path) -> None:
    async with serving(sdk, tmp_path) as (daemon, client):
        assert daemon.process is not None
        for request in BASE:
            await send(client, "b", request)
        expected = await contents(client, "b")
        port = httpx.URL(daemon.base_url).port
        assert port is not None
        # What grows once, such as a pool of threads, grows here.
        for when in _SENT:
            await _storm(port, when)
        process = psutil.Process(daemon.process.pid)
        await asyncio.sleep(1)  # short limit: what is still held then only raises the bound
        before = _held(process)
        for when in _SENT:
            await _storm(port, when)
        await asyncio.to_thread(wait_until, lambda: _is_released(process, before))
        assert await contents(client, "b") == expected


def test_what_is_held_is_noticed() -> None:
    """The bound is one that a leak of one descriptor per client exceeds."""
    process = psutil.Process()
    before = _held(process)
    leaked = [socket.socket() for _ in range(_CLIENTS)]
    assert not _is_released(process, before)
    for connection in leaked:
        connection.close()
    assert _is_released(process, before)
