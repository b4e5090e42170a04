"""Carries calls of the commands on workers to the process that had them started, and its replies.

Commands know a port of their machine and a secret, without which nobody is heard; from there to the
other process calls go through the scheduler, which is the only one that both can reach.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count

from distributed import Client, Queue, get_client
from distributed.comm.core import CommClosedError

Answer = Callable[[bytes], Awaitable[bytes]]
"""Makes the line of a reply of the line of a call."""

_LINE_BYTES = 1 << 26
_END = -1
"""The number of the reply after which none follows."""


@asynccontextmanager
async def served_calls(client: Client, run: str, answer: Answer) -> AsyncIterator[None]:
    """Answer the calls of the shards of a run, many at a time; on the client of a cluster."""
    calls = Queue(_calls(run), client=client)
    open_calls = set[asyncio.Task[None]]()

    async def reply(shard: str, number: int, line: bytes) -> None:
        with suppress(OSError, TimeoutError, CommClosedError):
            await Queue(_replies(shard), client=client).put((number, await answer(line)))

    async def serve() -> None:
        while True:
            task = asyncio.create_task(reply(*await calls.get()))
            open_calls.add(task)
            task.add_done_callback(open_calls.discard)

    serving = asyncio.create_task(serve())
    try:
        yield
    finally:
        tasks = [serving, *open_calls]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def relayed_calls(run: str, shard: str) -> AsyncIterator[str]:
    """Have the calls of a command answered by the client of the cluster; on a worker.

    Yields what the command must know: port and secret, joined by a colon. A call is a line that
    begins with the secret and a space, and its reply a line.
    """
    client = get_client()
    # What another worker, now lost, had asked for this shard is answered to nobody.
    name = f"{shard}-{secrets.token_hex(4)}"
    calls, replies = Queue(_calls(run), client=client), Queue(_replies(name), client=client)
    waiting: dict[int, asyncio.Future[bytes]] = {}
    numbers, secret = count(), secrets.token_urlsafe(24)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(numbers)
        waiting[number] = asyncio.get_running_loop().create_future()
        try:
            given, _, line = (await reader.readline()).partition(b" ")
            if secrets.compare_digest(given, secret.encode()):
                await asyncio.to_thread(calls.put, (name, number, line))
                writer.write(await waiting[number])
        except (OSError, ValueError, TimeoutError, CommClosedError):
            # Whoever has called sees that the connection ends without a reply.
            pass
        finally:
            del waiting[number]
            writer.close()

    async def distribute() -> None:
        number = 0
        try:
            while number != _END:
                # Without a time limit: Dask logs each that passes as an error.
                number, line = await asyncio.to_thread(replies.get)
                if (future := waiting.get(number)) is not None and not future.done():
                    future.set_result(line)
        except (OSError, CommClosedError) as error:
            for future in waiting.values():
                future.set_exception(ConnectionError(str(error)))

    server = await asyncio.start_server(relay, "127.0.0.1", limit=_LINE_BYTES)
    distributing = asyncio.create_task(distribute())
    try:
        async with server:
            yield f"{server.sockets[0].getsockname()[1]}:{secret}"
    finally:
        with suppress(OSError, TimeoutError, CommClosedError):
            await asyncio.to_thread(replies.put, (_END, b""))
        await distributing
        replies.close()


def _calls(run: str) -> str:
    return f"calls-{run}"


def _replies(shard: str) -> str:
    return f"replies-{shard}"
