"""Responses that are out of step with their requests, too large, or ambiguous."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.client.client import ContractClient
from memconform.client.connection import RESPONSE_LIMIT
from memconform.client.failures import CallError, ContractViolatedError
from memconform.client.timings import Timeouts

_HEALTH = b'{"ok": true}'


def _response(body: bytes = _HEALTH, headers: bytes = b"") -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + headers
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


class _Client(ContractClient):
    """Knows what its server is doing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.received = asyncio.Event()
        """Set when a call has ended."""
        self.sent = asyncio.Event()
        """Set unless a response is still being sent."""


@asynccontextmanager
async def _client(
    answer: Callable[[RawExchange, int], object], timeouts: Timeouts | None = None
) -> AsyncIterator[_Client]:
    """A client of a server that sends what `answer` writes to the n-th request, from 0."""
    count = 0

    async def handle(_: RawRequest, exchange: RawExchange) -> None:
        nonlocal count
        count += 1
        client.sent.clear()
        try:
            written = answer(exchange, count - 1)
            if asyncio.iscoroutine(written):
                await written
        finally:
            client.sent.set()

    async with (
        serving(handle, "127.0.0.1", 0) as port,
        _Client(f"http://127.0.0.1:{port}", timeouts=timeouts) as client,
    ):
        yield client


async def _healths(client: _Client, count: int = 4) -> list[str]:
    outcomes = []
    for _ in range(count):
        try:
            await client.health()
            outcomes.append("ok")
        except CallError as error:
            outcomes.append(error.code)
        client.received.set()
        # What comes late has come before the next call.
        await client.sent.wait()
        for _ in range(5):
            await asyncio.sleep(0)
    return outcomes


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (b"", ["ok"] * 4),
        (_response(), ["out_of_step"] * 4),
        (b"\n", ["out_of_step"] * 4),
        (_response()[:20], ["out_of_step"] * 4),
    ],
    ids=["nothing", "a response", "a byte", "a part of a response"],
)
async def test_bytes_after_a_response_fail_the_call(more: bytes, expected: list[str]) -> None:
    """A response that was sent twice made every later answer one question late."""
    async with _client(lambda exchange, _: exchange.raw(_response() + more)) as client:
        assert await _healths(client) == expected


_DONE = b"HTTP/1.1 204 No Content\r\n\r\n"


async def _deletions(client: ContractClient) -> set[str]:
    codes = set()
    for _ in range(3):
        try:
            await client.delete_brain("b")
            codes.add("ok")
        except CallError as error:
            codes.add(error.code)
    return codes


@pytest.mark.parametrize("more", [b"null", b'{"deleted": true}'])
@pytest.mark.parametrize("pause", [False, True])
async def test_a_body_with_204_is_no_answer_to_the_next_request(
    more: bytes, *, pause: bool
) -> None:
    """A daemon whose server sends a body with each 204 could not be filled with documents."""

    async def delete(exchange: RawExchange, _: int) -> None:
        await exchange.raw(_DONE if pause else _DONE + more)
        await asyncio.sleep(0)
        await exchange.raw(more if pause else b"")

    async with _client(delete) as client:
        assert await _deletions(client) == {"ok"}


@pytest.mark.parametrize("more", [_response(), b"H"], ids=["a response", "perhaps one"])
async def test_a_response_after_204_is_out_of_step(more: bytes) -> None:
    async with _client(lambda exchange, _: exchange.raw(_DONE + more)) as client:
        assert await _deletions(client) == {"out_of_step"}


async def test_response_before_its_request_fails_the_next_call() -> None:
    async def twice(exchange: RawExchange, number: int) -> None:
        await exchange.raw(_response())
        if number == 0:
            await client.received.wait()
            await exchange.raw(_response(b'{"ok": false}'))

    async with _client(twice) as client:
        assert await _healths(client) == ["ok", "out_of_step", "ok", "ok"]


@pytest.mark.parametrize("size", [1, 7, 64])
async def test_response_in_pieces_is_accepted(size: int) -> None:
    async def pieces(exchange: RawExchange, _: int) -> None:
        data = _response()
        for start in range(0, len(data), size):
            await exchange.raw(data[start : start + size])
            await asyncio.sleep(0)

    async with _client(pieces) as client:
        assert await _healths(client, 2) == ["ok", "ok"]


async def test_connection_closed_by_the_server_is_replaced() -> None:
    async def close(exchange: RawExchange, _: int) -> None:
        await exchange.raw(_response())
        exchange.abort()

    async with _client(close) as client:
        assert await _healths(client) == ["ok"] * 4


async def test_decompressed_size_is_bounded() -> None:
    """4 MB of gzip, which nobody had asked for, took 1,165 MiB."""
    bomb = gzip.compress(b" " * (RESPONSE_LIMIT + 1))
    data = _response(bomb, b"Content-Encoding: gzip\r\n")
    async with _client(lambda exchange, _: exchange.raw(data)) as client:
        with pytest.raises(ContractViolatedError) as caught:
            await client.health()
    assert caught.value.code == "too_large"


async def test_repeated_key_is_a_contract_violation() -> None:
    data = _response(b'{"ok": false, "ok": true}')
    async with _client(lambda exchange, _: exchange.raw(data)) as client:
        with pytest.raises(ContractViolatedError) as caught:
            await client.health()
    assert caught.value.code == "duplicate_key"
