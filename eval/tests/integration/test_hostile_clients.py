"""Clients that send little and would have a daemon keep much."""

import asyncio
from pathlib import Path

import httpx
import psutil

from tests.integration.changes import serving

_PIECES = 1_500_000

_GROWTH_LIMIT = 200 * 2**20
"""A daemon that kept an object for each piece grew by 70 bytes to 1 KiB for each of them."""


async def test_a_body_in_pieces_of_one_byte_takes_little_memory(sdk: str, tmp_path: Path) -> None:
    async with serving(sdk, tmp_path) as (daemon, _):
        assert daemon.process is not None
        process = psutil.Process(daemon.process.pid)
        port = httpx.URL(daemon.base_url).port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        before = peak = process.memory_info().rss
        head = b"POST /v1/brains HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"1\r\n{\r\n")
        for _ in range(_PIECES // 10_000):
            writer.write(b"1\r\n \r\n" * 10_000)
            await writer.drain()
            peak = max(peak, process.memory_info().rss)
        writer.write(b"1\r\n}\r\n0\r\n\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400")
        peak = max(peak, process.memory_info().rss)
        writer.close()
        assert peak - before < _GROWTH_LIMIT


async def test_headers_without_end_take_little_memory(sdk: str, tmp_path: Path) -> None:
    async with serving(sdk, tmp_path) as (daemon, client):
        assert daemon.process is not None
        process = psutil.Process(daemon.process.pid)
        port = httpx.URL(daemon.base_url).port
        before = process.memory_info().rss
        for line in (b"X: a\r\n", b"X" * 1024):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
            try:
                for _ in range(32):
                    writer.write(line * (2**20 // len(line)))
                    await writer.drain()
            except ConnectionError:
                pass
            writer.close()
        assert (await client.get("/healthz")).status_code == 200
        assert process.memory_info().rss - before < _GROWTH_LIMIT
