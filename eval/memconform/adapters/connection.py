"""The process of an adapter: requests and replies on a socket of its own, one at a time.

A crash, a hang or a print of its cannot pass for an answer.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memconform.client.failures import DaemonFailedError
from memconform.daemons.process import DaemonProcess
from memconform.daemons.tasks import finish
from memconform.errors import DaemonError
from memconform.storage.sink import redact_file
from memconform.storage.temporary import temporary_folder

_CHILD = Path(__file__).with_name("child.py")
_MAX_REPLY = 256 << 20
"""Bytes of one reply: far more than a judge could read."""
_MORE_TIME = "see its output; timeout_s of system.toml, or --timeout of `wmb run`, allows more time"
_FATAL = ("adapter_died", "adapter_out_of_step")
"""What ends an adapter, and is not about the search in which it is seen."""
_CONNECT_SECONDS = 60.0
"""An interpreter starts in 30 ms; the limit is for swapping machines."""


@asynccontextmanager
async def adapter_process(
    python: str, log: Path, *, env: Mapping[str, str], cwd: Path, limit: float
) -> "AsyncIterator[AdapterConnection]":
    """Run an adapter until the block is left; it is not loaded yet.

    Args:
        python: the interpreter.
        log: the file to which its output is added.
        env: its whole environment.
        cwd: its folder.
        limit: seconds for each call.

    Raises:
        DaemonError: if the interpreter does not start.
    """
    # Not in the results folder, whose path may be longer than a socket's may be.
    with temporary_folder("mc-") as sockets:
        address = sockets / "s"
        accepted: asyncio.Future[_Streams] = asyncio.get_running_loop().create_future()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not accepted.done():
                accepted.set_result((reader, writer))

        server = await asyncio.start_unix_server(accept, address, limit=_MAX_REPLY)
        async with server:
            process = await DaemonProcess.start(
                # Unbuffered: what an adapter prints is in its log when its process is killed.
                (python, "-u", str(_CHILD), str(address)),
                env=env,
                cwd=cwd,
                log=log,
            )
            connection = AdapterConnection(process, limit)
            try:
                connection.streams = await connection.until_dead(accepted, _CONNECT_SECONDS)
                yield connection
            finally:
                if connection.streams is not None:
                    # The child ends by itself when its socket closes.
                    connection.streams[1].close()
                await finish(_stop(process))
                redact_file(log)


async def _stop(process: DaemonProcess) -> None:
    await process.stop()


_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class AdapterConnection:
    """Requests to the adapter's process, one at a time."""

    process: DaemonProcess
    timeout: float
    streams: _Streams | None = field(default=None, init=False)
    calls: int = field(default=0, init=False)
    """Calls so far; each reply has the number of its call."""
    halted: DaemonError | None = field(default=None, init=False)
    """Why no further call can be made."""
    _death: "asyncio.Task[str] | None" = field(default=None, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def call(self, verb: str, *arguments: object) -> dict[str, Any]:
        """Make one call, after those that others make.

        Raises:
            DaemonError: if the adapter cannot be loaded or stores nothing (`adapter_load_failed`,
                `adapter_store_failed` and so on, `adapter_wrong_type`), if its process died
                (`adapter_died`), did not answer (`adapter_hung`), or replied to another call
                (`adapter_out_of_step`).
            DaemonFailedError: if this search failed (`adapter_search_failed`,
                `adapter_wrong_type`); others may not.
        """
        async with self._turn:
            return await self._call(verb, *arguments)

    async def _call(self, verb: str, *arguments: object) -> dict[str, Any]:
        if self.halted is not None:
            raise self.halted
        reader, writer = self._open_streams()
        with suppress(ConnectionError):
            self.calls += 1
            writer.write(json.dumps([self.calls, verb, *arguments]).encode() + b"\n")
        line = await self.until_dead(
            asyncio.ensure_future(_line(writer, reader)), self.timeout, f"{verb}: "
        )
        try:
            reply = json.loads(line)
        except ValueError:
            reply = {"error": "adapter_died", "message": "it closed the connection"}
        else:
            if not isinstance(reply, dict) or reply.get("number") != self.calls:
                # Memories would count for another question.
                raise self._halt(
                    f"{verb}: its process sent a reply to another call",
                    "adapter_out_of_step",
                    "an adapter must not write to a socket that it did not open",
                )
        code = reply.get("error")
        message = str(reply.get("message", "")).encode("utf-8", "backslashreplace").decode()
        if code is None:
            return dict(reply)
        if verb == "search" and code not in _FATAL:
            raise DaemonFailedError(code, message)
        raise self._halt(f"{verb}: {message}", code, "correct the adapter, and run again")

    def _open_streams(self) -> _Streams:
        if self.streams is None:
            raise RuntimeError("the adapter's process has not connected")
        return self.streams

    async def until_dead(
        self, wanted: "asyncio.Future[Any]", seconds: float, call: str = ""
    ) -> Any:  # noqa: ANN401 - what it waits for
        """Wait for a reply, but no longer than the process lives and the limit allows.

        `call` begins the message of an error.
        """
        self._death = self._death or asyncio.create_task(self.process.wait())
        try:
            done, _ = await asyncio.wait(
                (wanted, self._death), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if wanted in done and not wanted.cancelled() and wanted.exception() is None:
                result = wanted.result()
                if result != b"":
                    return result
                # The socket of a process closes before its end is reported.
                await asyncio.wait((self._death,), timeout=_CONNECT_SECONDS)
            if self._death.done():
                reason, code = f"its process died: {self._death.result()}", "adapter_died"
            elif wanted in done:
                reason, code = "its reply cannot be read", "adapter_died"
            else:
                reason, code = f"no answer within {seconds:g} s", "adapter_hung"
            hint = _MORE_TIME if code == "adapter_hung" else "see its output, and correct it"
            raise self._halt(f"{call}{reason}", code, hint)
        finally:
            wanted.cancel()

    def _halt(self, reason: str, code: str, hint: str) -> DaemonError:
        error = DaemonError(f"the adapter failed: {reason}", code=code, hint=hint)
        error.excerpt = self.process.tail()
        self.halted = error
        return error


async def _line(writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> bytes:
    """The reply to what was written, which the adapter may be slow to read."""
    with suppress(ConnectionError):
        await writer.drain()
    return await reader.readline()
