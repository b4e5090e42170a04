"""Carries calls of the commands on workers to the process that had them started, and its replies.

Commands know a port of their machine and a secret, without which nobody is heard; from there to the
other process calls go through the scheduler, which is the only one that both can reach.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Protocol

from distributed import Client, Queue, get_client
from distributed.comm.core import CommClosedError

from memconform.daemons.ports import loopback_host

_LINE_BYTES = 1 << 26
_LAST_CALLS_SECONDS = 5.0
"""How long a relay waits, once the command has ended, until its last calls are handed on."""
_END = -1
"""The number of what is neither a call nor a reply: that a caller begins or ends, that no reply
follows."""
_LOST = (OSError, TimeoutError, CommClosedError)


class CallServer(Protocol):
    """Who answers the calls of all shards."""

    async def answer(self, caller: str, line: bytes, /) -> bytes:
        """The line that answers a line; cancelled if the caller withdraws it."""
        ...

    def forget(self, caller: str, /) -> None:
        """Called once a caller is lost or has ended."""
        ...


class _Calls:
    """The calls that are answered now; on the client of a cluster."""

    def __init__(self, client: Client, server: CallServer, group: asyncio.TaskGroup) -> None:
        self._client = client
        self._server = server
        self._group = group
        self._callers: dict[str, str] = {}
        """By shard, the caller that does it."""
        self._replies: dict[str, Queue] = {}
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}

    def take(self, shard: str, caller: str, number: int, line: bytes | None) -> None:
        """Take a call, its withdrawal (without a line), or the caller's begin or end."""
        if number == _END:
            before = self._callers.pop(shard, caller) if line is not None else caller
            self._forget(before)
            if line is not None:
                self._callers[shard] = caller
        elif line is None:
            if (task := self._tasks.get((caller, number))) is not None:
                task.cancel()
        else:
            task = self._group.create_task(self._answer(caller, number, line))
            self._tasks[caller, number] = task
            task.add_done_callback(lambda _: self._tasks.pop((caller, number)))

    async def _answer(self, caller: str, number: int, line: bytes) -> None:
        reply = await self._server.answer(caller, line[1:])
        if line.startswith(b"?"):
            if caller not in self._replies:
                self._replies[caller] = Queue(_replies(caller), client=self._client)
            with suppress(*_LOST):
                await self._replies[caller].put((number, reply))

    def _forget(self, caller: str) -> None:
        for (name, _), task in self._tasks.items():
            if name == caller:
                task.cancel()
        self._server.forget(caller)
        if (queue := self._replies.pop(caller, None)) is not None:
            queue.close()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for caller in self._callers.values():
            self._forget(caller)


@asynccontextmanager
async def served_calls(client: Client, run: str, server: CallServer) -> AsyncIterator[None]:
    """Answer the calls of the shards of a run, many at a time; on the client of a cluster.

    Raises what the body does. An unexpected error of the answering cancels the body and is raised,
    so that no shard waits for an answer that nobody gives.
    """
    # Awaited: the first `get` may reach the scheduler before the queue is created, and fail.
    queue = await Queue(_calls(run), client=client)

    async def serve(calls: _Calls) -> None:
        # If the scheduler is lost, the body raises it.
        with suppress(*_LOST):
            while True:
                calls.take(*await queue.get())

    try:
        async with asyncio.TaskGroup() as group:
            calls = _Calls(client, server, group)
            serving = group.create_task(serve(calls))
            try:
                yield
            finally:
                serving.cancel()
                await calls.close()
                # One that is awaited is created twice, and the scheduler counts.
                queue.close()
                queue.close()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0]  # noqa: B904 - it keeps the cause that it has


class _Relay:
    """Hands on the calls of one command; on a worker."""

    def __init__(self, run: str, shard: str) -> None:
        client = get_client()
        self._shard = shard
        # What another worker, now lost, had asked for this shard is answered to nobody.
        self._caller = f"{shard}-{secrets.token_hex(4)}"
        self._calls = Queue(_calls(run), client=client)
        self._replies = Queue(_replies(self._caller), client=client)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._numbers = count()
        self._tasks = set[asyncio.Task[None]]()
        self.secret = secrets.token_urlsafe(24)

    async def put(self, number: int, line: bytes | None) -> None:
        """Hand a call on; raises what `_LOST` has if the scheduler is lost."""
        await asyncio.to_thread(self._calls.put, (self._shard, self._caller, number, line))

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for mypy
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            secret, _, line = (await reader.readline()).partition(b" ")
            if secrets.compare_digest(secret, self.secret.encode()):
                await self._hand_on(line, reader, writer)
        except (ValueError, asyncio.CancelledError, *_LOST):
            # Whoever has called sees that the connection ends without a reply. A cancelled task
            # would be logged as an error by Python 3.11.
            pass
        finally:
            writer.close()

    async def _hand_on(
        self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        number = next(self._numbers)
        if not line.startswith(b"?"):
            await self.put(number, line)
            return
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        left = asyncio.ensure_future(reader.read())
        try:
            await self.put(number, line)
            await asyncio.wait({reply, left}, return_when=asyncio.FIRST_COMPLETED)
            if reply.done():
                writer.write(reply.result())
            else:
                await self.put(number, None)
        finally:
            left.cancel()
            del self._waiting[number]

    async def distribute(self) -> None:
        """Give each reply to whoever waits for it, until no other one follows."""
        number = 0
        try:
            while number != _END:
                # Without a time limit: Dask logs each that passes as an error.
                number, line = await asyncio.to_thread(self._replies.get)
                if (reply := self._waiting.get(number)) is not None and not reply.done():
                    reply.set_result(line)
        except _LOST as error:
            for reply in self._waiting.values():
                if not reply.done():
                    reply.set_exception(ConnectionError(str(error)))

    async def close(self, distributing: "asyncio.Task[None]") -> None:
        """Hand the last calls on, and say that none follows."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_CALLS_SECONDS)
        for task in self._tasks:
            task.cancel()
        with suppress(*_LOST):
            await self.put(_END, None)
            await asyncio.to_thread(self._replies.put, (_END, b""))
        await distributing
        self._replies.close()
        self._calls.close()


@asynccontextmanager
async def relayed_calls(run: str, shard: str) -> AsyncIterator[str]:
    """Have the calls of a command answered by the client of the cluster; on a worker.

    Yields what the command must know: port and secret, joined by a colon. A call is a line that
    begins with the secret, a space, and `?` if it has a reply, which is a line, or `!` if not.
    """
    relay = _Relay(run, shard)
    await relay.put(_END, b"")
    server = await asyncio.start_server(relay.accept, loopback_host(), limit=_LINE_BYTES)
    distributing = asyncio.create_task(relay.distribute())
    try:
        yield f"{server.sockets[0].getsockname()[1]}:{relay.secret}"
    finally:
        # Not `async with`, which from Python 3.12 on waits for all calls, however long.
        server.close()
        await relay.close(distributing)


def _calls(run: str) -> str:
    return f"calls-{run}"


def _replies(caller: str) -> str:
    return f"replies-{caller}"
