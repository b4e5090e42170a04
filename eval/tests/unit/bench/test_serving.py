"""The minimal HTTP server closes every connection, whatever its state."""

import asyncio
import gc
import socket

import pytest

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from tests.conftest import WAIT_SECONDS


async def _answer(_: RawRequest, exchange: RawExchange) -> None:
    await exchange.json({})


@pytest.mark.parametrize("iterations", range(6))
def test_a_connection_that_is_accepted_while_the_server_closes_is_closed(iterations: int) -> None:
    """asyncio left it open: the socket was reported as unclosed in a later test."""

    async def run() -> bytes:
        async with serving(_answer, "127.0.0.1", 0) as port:
            client = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
            for _ in range(iterations):
                await asyncio.sleep(0)
        with client:
            try:
                return client.recv(1)
            except ConnectionResetError:
                return b""

    assert asyncio.run(run()) == b""
    # A transport that was not closed warns when it is collected, which fails the test.
    gc.collect()
