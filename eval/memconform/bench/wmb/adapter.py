"""A user's adapter of WMB-100K as a system: `store(user_id, content)`, `search(user_id, query)`.

It runs in a process of its own, so that a crash, a hang or a print of its cannot pass for an
answer.
"""

import asyncio
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memconform.bench.records import IndexRecord, SystemRecord
from memconform.bench.strategy import Strategy
from memconform.bench.system import Index, RunningSystem, SearchResult
from memconform.bench.tasks import Task
from memconform.client.failures import DaemonFailedError
from memconform.contract.wire import Mode
from memconform.daemons.process import DaemonProcess
from memconform.daemons.tasks import finish
from memconform.datasets.files import read_whole
from memconform.datasets.haystacks import Haystack
from memconform.errors import DaemonError, UsageError
from memconform.measuring.observation import Observation
from memconform.storage.folders import DaemonFolder
from memconform.storage.sink import redact_file
from memconform.storage.temporary import temporary_folder

_CHILD = Path(__file__).with_name("adapter_child.py")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_MAX_BYTES = 16 << 20
"""Bytes of an adapter's file."""
_MAX_REPLY = 256 << 20
"""Bytes of one reply: far more than a judge could read."""
_CONNECT_SECONDS = 60.0
"""An interpreter starts in 30 ms; the limit is for swapping machines."""


def require_adapter(file: Path) -> bytes:
    """The source of an adapter.

    Raises:
        UsageError: if it cannot be read (`dataset_unreadable`), or is not a `.py` file whose name
            can name a system (`bad_option`).
    """
    if file.suffix != ".py" or not _NAME.fullmatch(file.stem):
        raise UsageError(
            f"--adapter {file} is not a Python file",
            code="bad_option",
            hint="name it NAME.py, with letters, digits, dots, hyphens and underscores",
        )
    return read_whole(file, _MAX_BYTES)


@dataclass(frozen=True, slots=True)
class AdapterSystem:
    """An adapter's file; each category of the benchmark is a user of its own."""

    file: Path
    folder: Path
    """Folder for the adapter's log; it is created."""
    timeout: float
    """Seconds for loading it, and for each call."""
    strategies: tuple[Strategy, ...] = (Strategy(None),)
    ties: str | None = None

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def identity(self) -> str:
        """The digest of its file; what it imports is not known."""
        return hashlib.sha256(require_adapter(self.file)).hexdigest()

    def kernel(self, strategy: Strategy) -> str | None:
        """None: nobody knows."""
        del strategy
        return None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunningSystem]:
        folder = DaemonFolder(self.folder)
        log = folder.path / "adapter.log"
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
                    (sys.executable, str(_CHILD), str(address), str(self.file.absolute())),
                    env=os.environ,
                    cwd=Path.cwd(),
                    log=log,
                )
                connection = _Connection(process, self.timeout)
                try:
                    connection.streams = await connection.until_dead(accepted, _CONNECT_SECONDS)
                    await connection.call("load")
                    yield _Session(self, connection)
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
class _Connection:
    """Requests to the adapter's process, one at a time."""

    process: DaemonProcess
    timeout: float
    streams: _Streams | None = field(default=None, init=False)
    calls: int = field(default=0, init=False)
    """Calls so far; each reply has the number of its call."""
    halted: DaemonError | None = field(default=None, init=False)
    """Why no further call can be made."""
    _death: "asyncio.Task[str] | None" = field(default=None, init=False)

    async def call(self, verb: str, *arguments: object) -> dict[str, Any]:
        """Make one call.

        Raises:
            DaemonError: if the adapter cannot be loaded or stores nothing (`adapter_load_failed`,
                `adapter_store_failed`, `adapter_wrong_type`), if its process died
                (`adapter_died`), did not answer (`adapter_hung`), or replied to another call
                (`adapter_out_of_step`).
            DaemonFailedError: if this search failed (`adapter_search_failed`,
                `adapter_wrong_type`); others may not.
        """
        if self.halted is not None:
            raise self.halted
        reader, writer = self._open_streams()
        with suppress(ConnectionError):
            self.calls += 1
            writer.write(json.dumps([self.calls, verb, *arguments]).encode() + b"\n")
            await writer.drain()
        line = await self.until_dead(asyncio.ensure_future(_line(reader)), self.timeout)
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
        if verb == "search" and code != "adapter_died":
            raise DaemonFailedError(code, message)
        raise self._halt(f"{verb}: {message}", code, "correct the adapter, and run again")

    def _open_streams(self) -> _Streams:
        if self.streams is None:
            raise RuntimeError("the adapter's process has not connected")
        return self.streams

    async def until_dead(self, wanted: "asyncio.Future[Any]", seconds: float) -> Any:  # noqa: ANN401 - what it waits for
        """Wait for a reply, but no longer than the process lives and the limit allows."""
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
            raise self._halt(reason, code, "see its output; --timeout allows it more time")
        finally:
            wanted.cancel()

    def _halt(self, reason: str, code: str, hint: str) -> DaemonError:
        error = DaemonError(f"the adapter failed: {reason}", code=code, hint=hint)
        error.excerpt = self.process.tail()
        self.halted = error
        return error


async def _line(reader: asyncio.StreamReader) -> bytes:
    return await reader.readline()


@dataclass(frozen=True, slots=True)
class _Session:
    system: AdapterSystem
    connection: _Connection

    def record(self) -> SystemRecord:
        return SystemRecord(name=self.system.name, build_hash=self.system.identity)

    @asynccontextmanager
    async def build_index(self, haystacks: Iterable[Haystack]) -> AsyncIterator[Index]:
        started = time.perf_counter()
        documents = 0
        for haystack in haystacks:
            for item in haystack.items:
                # The benchmark's template passes over turns without a text.
                speaker, _, text = item.text.partition(": ")
                if text.strip():
                    content = f"{speaker}: {text.strip()}"
                    await self.connection.call("store", item.group, content)
                    documents += 1
        record = IndexRecord(
            system=self.system.name,
            haystack="",
            documents=documents,
            chunks=None,
            vectors=None,
            ingest_ms=(time.perf_counter() - started) * 1_000,
        )
        yield _AdapterIndex(self.connection, record)


@dataclass(frozen=True, slots=True)
class _AdapterIndex:
    connection: _Connection
    record: IndexRecord

    async def search(self, task: Task, strategy: Strategy) -> SearchResult:
        """All memories that the adapter returns; it is not told how many are wanted."""
        del strategy
        reply = await self.connection.call("search", list(task.query.tags), task.query.question)
        return SearchResult(
            (),
            Observation(latency_ms=float(reply["took_ms"])),
            memories=tuple(reply["memories"]),
        )

    async def verify(self, _: Mode | None) -> None:
        """Check that its process lives; what it stored is not known to anyone else."""
        if self.connection.halted is not None:
            raise self.connection.halted
        if not self.connection.process.alive:
            raise DaemonError(
                "the adapter's process died after its last answer",
                code="adapter_died",
                hint="see its output",
                excerpt=self.connection.process.tail(),
            )
