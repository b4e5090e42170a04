"""A user's adapter of WMB-100K as a system: `store(user_id, content)`, `search(user_id, query)`."""

import asyncio
import hashlib
import re
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from memconform.adapters.connection import AdapterConnection, adapter_process
from memconform.bench.records import IndexRecord, SystemRecord
from memconform.bench.strategy import Strategy
from memconform.bench.system import Index, RunningSystem, SearchResult
from memconform.bench.tasks import Task
from memconform.contract.wire import Mode
from memconform.daemons.environment import whole_shell
from memconform.datasets.files import read_whole
from memconform.datasets.haystacks import Haystack
from memconform.errors import DaemonError, UsageError
from memconform.measuring.observation import Observation
from memconform.storage.folders import DaemonFolder

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_MAX_BYTES = 16 << 20
"""Bytes of an adapter's file."""


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
class TemplateSystem:
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
        file = await asyncio.to_thread(self.file.absolute)
        log = DaemonFolder(self.folder).path / "adapter.log"
        running = adapter_process(
            sys.executable, log, env=whole_shell(), cwd=Path.cwd(), limit=self.timeout
        )
        async with running as connection:
            await connection.call("load", "wmb", [str(file)])
            yield _Session(self, connection)


@dataclass(frozen=True, slots=True)
class _Session:
    system: TemplateSystem
    connection: AdapterConnection

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
        yield _TemplateIndex(self.connection, record)


@dataclass(frozen=True, slots=True)
class _TemplateIndex:
    connection: AdapterConnection
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
