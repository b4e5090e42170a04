"""A memory system behind an adapter, as a system of a bench."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from memconform.adapters.program import AdapterProgram
from memconform.adapters.session import BATCH, AdapterSession
from memconform.bench.adapter_index import AdapterIndex, StoredHaystack, unique_id
from memconform.bench.behaviour import SystemBehaviour
from memconform.bench.daemon_system import size_of_folder
from memconform.bench.records import IndexRecord, SystemRecord
from memconform.bench.strategy import Strategy
from memconform.bench.system import Index, RunningSystem
from memconform.daemons.upstream import scripted_upstream
from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.time_phrases import to_date_time, to_rfc3339
from memconform.errors import DaemonError
from memconform.storage.folders import DaemonFolder
from memconform.upstream.prompt_watch import read_counts
from memconform.upstream.script import Kind


@dataclass(frozen=True, slots=True)
class AdapterSystem:
    """A system with one way to search, its own."""

    program: AdapterProgram
    python: str
    folder: Path
    """Folder for the adapter's log and its state; it is created."""
    run_id: str
    scripted: bool = False
    """Whether the scripted upstream serves its models."""
    embed_model: str = ""
    ties: str | None = None

    @property
    def name(self) -> str:
        return self.program.manifest.name

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """Its own, labelled if it lacks the language model that it is meant to have."""
        return (Strategy(None, {"model": "none"} if self.program.manifest.lacks_model else {}),)

    @property
    def identity(self) -> str:
        return f"{self.program.identity} {self.scripted} {self.embed_model}"

    def kernel(self, strategy: Strategy) -> str | None:
        """None: nobody knows."""
        del strategy
        return None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunningSystem]:
        """Start the adapter.

        Raises:
            DaemonError: as `AdapterProgram.require_not_root`, and if it does not start.
        """
        self.program.require_not_root()
        folder, manifest = DaemonFolder(self.folder), self.program.manifest
        async with AsyncExitStack() as stack:
            stack.callback(folder.drop_state)
            address = ""
            if self.scripted:
                opening = scripted_upstream(folder.upstream, self.run_id)
                address = (await stack.enter_async_context(opening)).base_url
            session = await asyncio.to_thread(
                AdapterSession.of,
                *(self.program, self.python, folder.path),
                upstream=address,
                embed_model=self.embed_model,
            )
            await stack.enter_async_context(session.run())
            behaviour = SystemBehaviour(adapter_lines=self.program.lines, licence=manifest.licence)
            yield _RunningAdapter(self, session, behaviour, address)


@dataclass(frozen=True, slots=True)
class _RunningAdapter:
    system: AdapterSystem
    session: AdapterSession
    behaviour: SystemBehaviour
    upstream: str
    """The address of the scripted upstream; empty without one."""
    sent_ids: set[str] = field(default_factory=set)
    """Of all items that were stored, of whatever user."""
    sent_texts: set[str] = field(default_factory=set)
    earlier: list[str] = field(default_factory=list)
    """Users of the last index, whose items stay until the next one has been probed: its searches
    must not find them."""

    def record(self) -> SystemRecord:
        resources = self.session.sampler.result()
        return SystemRecord(
            name=self.system.name,
            version=self.system.program.manifest.version,
            build_hash=self.system.program.identity,
            upstream="scripted" if self.system.scripted else None,
            variables={
                **self.system.program.manifest.settings,
                **self.system.program.variables(scripted=self.system.scripted),
            },
            embedder=self.system.embed_model or None,
            rss_peak_bytes=resources.rss_peak_bytes,
            cpu_seconds=resources.cpu_seconds,
            behaviour=self.behaviour,
        )

    @asynccontextmanager
    async def build_index(self, haystacks: Iterable[Haystack]) -> AsyncIterator[Index]:
        stored: dict[str, StoredHaystack] = {}
        took = 0.0
        for haystack in haystacks:
            items = [item for item in haystack.items if item.text.strip()]
            started = time.perf_counter()
            for start in range(0, len(items), BATCH):
                rows = [_row(haystack.id, item) for item in items[start : start + BATCH]]
                await self.session.call("store", haystack.id, rows)
            await self.session.call("finish", haystack.id)
            took += time.perf_counter() - started
            self.behaviour.sent += len(items)
            stored[haystack.id] = one = StoredHaystack(haystack.id, items)
            self.sent_ids.update(one.texts)
            self.sent_texts.update(one.texts.values())
        index = AdapterIndex(
            self.session,
            self.behaviour,
            self.sent_ids,
            self.sent_texts,
            stored,
            IndexRecord(
                system=self.system.name,
                haystack="",
                documents=sum(len(each.texts) for each in stored.values()),
                chunks=None,
                vectors=None,
                ingest_ms=took * 1e3,
                disk_bytes=await asyncio.to_thread(size_of_folder, self.session.state),
            ),
        )
        await index.probe()
        # Before the questions, whose scores then depend on no other user, nor on a resume.
        for user in self.earlier:
            await self.session.call("forget", user)
        self.earlier[:] = stored
        yield index
        if self.upstream:
            counts = await read_counts(self.upstream)
            # An earlier sum would lack the calls of this index.
            self.behaviour.model_calls = self.behaviour.stand_ins = None
            if counts is not None:
                self.behaviour.model_calls = sum(int(counts[kind]) for kind in get_args(Kind))
                self.behaviour.stand_ins = int(counts["stand_ins"])
        # Not after an error or an interrupt: the process and its folder end with it.
        if index.first and not self.behaviour.restarted:
            await self._restart(index)
            if self.behaviour.lost == self.behaviour.restarted:
                # The new process knows nothing of these users.
                self.earlier.clear()

    async def _restart(self, index: "AdapterIndex") -> None:
        """Start the system's process anew, and count the searches that find nothing now.

        A system that does not start again gets an empty folder: what follows can be measured.
        """
        self.behaviour.restarted = len(index.first)
        try:
            await self.session.restart()
            self.behaviour.lost = await index.lost_searches()
        except DaemonError:
            self.behaviour.lost = self.behaviour.restarted
            await self.session.end()
            await asyncio.to_thread(_empty, self.session.state)
            await self.session.restart()


def _row(user: str, item: Item) -> list[str]:
    """An item as an adapter gets it: id, text, speaker, session, date."""
    moment = to_date_time(item.date)
    date = "" if moment is None else to_rfc3339(moment)
    return [unique_id(user, item), item.text, item.speaker, item.group, date]


def _empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
