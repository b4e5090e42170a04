"""The proxy before a daemon that ends idle connections."""

import asyncio
import sys
from functools import partial
from pathlib import Path

import httpx

from tests.waiting import wait_until

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def _is_ended(http: httpx.AsyncClient) -> bool:
    """Whether the proxy has handed on that the connection ended."""
    pool = http._transport._pool  # type: ignore[attr-defined]
    return all(connection.has_expired() for connection in pool.connections)


async def test_an_idle_connection_that_the_daemon_ended_is_not_used_again(tmp_path: Path) -> None:
    idle = asyncio.Semaphore(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection, which ends once it is idle."""
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_ANSWER)
        await writer.drain()
        await idle.acquire()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    places = ("--mutation", tmp_path / "none.json", "--root", tmp_path)
    proxy = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "memconform.conformance.mutation.proxy", "--addr", "127.0.0.1:0"),
        *(*places, "--to", f"127.0.0.1:{port}"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert proxy.stdout is not None
        line = (await proxy.stdout.readline()).decode()
        async with httpx.AsyncClient(base_url=line.split()[-1], trust_env=False) as http:
            for _ in range(3):
                assert (await http.post("/x")).text == "ok"
                idle.release()
                await asyncio.to_thread(wait_until, partial(_is_ended, http))
    finally:
        proxy.terminate()
        await proxy.wait()
        server.close()
        await server.wait_closed()
