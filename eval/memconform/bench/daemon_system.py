"""A daemon as a system: it is started, and haystacks are ingested through the contract."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memconform.bench.daemon_index import DaemonIndex
from memconform.bench.document_map import Dates, DocumentMap
from memconform.bench.records import IndexRecord, SystemRecord
from memconform.bench.strategy import Strategy
from memconform.bench.system import Index, RunningSystem
from memconform.client.timings import Timeouts
from memconform.contract.wire import Mode, RankBy
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.datasets.haystacks import Haystack
from memconform.errors import DaemonError
from memconform.ingest.monitor import TIMEOUTS, DaemonMonitor
from memconform.measuring.daemon_session import DaemonSession, daemon_identity, daemon_session
from memconform.measuring.proven_brain import OpenBrain, ProvenBrain, open_brain


@dataclass(frozen=True, slots=True)
class DaemonSystem:
    """A daemon under test, with the strategies by which it is searched."""

    runner: SdkRunner
    strategies: tuple[Strategy, ...]
    folder: Path
    """Folder for the daemon's log and state; it is created."""
    run_id: str
    upstream: UpstreamKind
    shared: bool
    """Whether all haystacks share one brain, so that queries are filtered."""
    concurrency: int = 1
    timeouts: Timeouts = field(default_factory=Timeouts)
    headers: Mapping[str, str] = field(default_factory=dict)
    rank_by: RankBy = "score"
    answer_depth: int | None = None
    """Chunks from which its own reader answers each question; None if it is not asked."""

    @property
    def name(self) -> str:
        return self.runner.name

    @property
    def brain(self) -> str:
        """The brain's name, unique to this bench: another one may use the same daemon."""
        return f"mc-{self.run_id}"

    @property
    def modes(self) -> list[Mode]:
        """The modes in which it is searched, each once."""
        return list(dict.fromkeys(strategy.mode or Mode.AUTO for strategy in self.strategies))

    @property
    def ties(self) -> str | None:
        """By path, as core.search.order says: paths number the items, and chunks follow in order.

        A daemon with a dialect, or one that is ranked by position, has an order of its own.
        """
        is_own = self.runner.dialect is not None or self.rank_by != "score"
        return None if is_own else "by the order of the items"

    def kernel(self, strategy: Strategy) -> str | None:
        """The kernel of a strategy; of a daemon with a dialect only what its trace confirms."""
        if self.runner.dialect is not None and "kernel" not in strategy.tuning:
            return None
        return strategy.kernel

    @property
    def identity(self) -> str:
        more: list[str] = []
        if self.rank_by != "score":
            more.append(self.rank_by)
        if self.answer_depth is not None:
            more.append(f"answers from {self.answer_depth}")
        return daemon_identity(self.runner, self.upstream, *more)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunningSystem]:
        async with daemon_session(
            self.runner,
            Launch(run_id=self.run_id, folder=self.folder, sampled=True),
            self.upstream,
            connections=self.concurrency + 1,
            timeouts=self.timeouts,
            headers=self.headers,
            rank_by=self.rank_by,
        ) as session:
            # If it cannot be read, opening a brain fails; it is needed where none is opened, too.
            with suppress(DaemonError):
                await session.require_version()
            reader = DaemonMonitor(session.daemon)
            monitors = {mode: DaemonMonitor(session.daemon) for mode in self.modes}
            try:
                yield _RunningDaemon(self, session, reader, monitors)
            finally:
                for monitor in (reader, *monitors.values()):
                    monitor.close()


@dataclass(frozen=True, slots=True)
class _RunningDaemon:
    system: DaemonSystem
    session: DaemonSession
    reader: DaemonMonitor
    """For the calls of its own reader, which may be stuck while its search is well."""
    monitors: Mapping[Mode, DaemonMonitor]
    """For searches, of which those in one mode may be stuck alone."""
    unproven: dict[Mode, DaemonError] = field(default_factory=dict)

    @property
    def lost(self) -> Mapping[Mode, DaemonError]:
        stuck = {
            mode: monitor.halted
            for mode, monitor in self.monitors.items()
            if monitor.halted is not None and monitor.halted.code == TIMEOUTS
        }
        return stuck | self.unproven

    def record(self) -> SystemRecord:
        runner, resources = self.system.runner, self.session.daemon.resources()
        return SystemRecord(
            name=runner.name,
            version=self.session.version.version if self.session.version else None,
            build_hash=runner.build_hash(),
            upstream=self.system.upstream,
            variables=runner.variables(),
            rank_by=self.system.rank_by,
            ready_ms=self.session.daemon.ready_ms,
            rss_peak_bytes=resources.rss_peak_bytes if resources else None,
            cpu_seconds=resources.cpu_seconds if resources else None,
        )

    @asynccontextmanager
    async def build_index(self, haystacks: Iterable[Haystack]) -> AsyncIterator[Index]:
        needed = any(strategy.needs_dates for strategy in self.system.strategies)
        answers = self.system.answer_depth is not None
        dates: Dates = "needed" if needed else "known" if answers else "none"
        turns = any(strategy.mode is Mode.CONVERSATION for strategy in self.system.strategies)
        document_map = DocumentMap(haystacks, dates=dates, turns=turns)
        opening = open_brain(self.session, self.system.runner, self.system.brain, document_map)
        async with opening as brain:
            proven = await self._prove(brain)
            records = [each.seeded.record for each in proven.values()]
            document_map.record_ingested(brain.filled.documents)
            record = IndexRecord(
                system=self.system.name,
                haystack="",
                documents=records[0].documents,
                chunks=records[0].chunks,
                vectors=records[0].vectors,
                ingest_ms=max(each.took_ms for each in records),
                disk_bytes=await asyncio.to_thread(size_of_folder, self.session.launch.state)
                if self.session.daemon.process
                else None,
            )
            yield DaemonIndex(
                proven,
                self.unproven,
                self.reader,
                document_map,
                record,
                shared=self.system.shared,
                answer_depth=self.system.answer_depth,
            )

    async def _prove(self, brain: OpenBrain) -> dict[Mode, ProvenBrain]:
        """Prove an index in each mode that is not lost; one that is not proven is lost from now on.

        Raises:
            DaemonError: if the daemon died, or no mode is left.
        """
        proven: dict[Mode, ProvenBrain] = {}
        # One that embeds in the background has indexed everything once a mode with vectors is
        # proven, and the legs of that need no second proof.
        for mode in sorted(self.system.modes, key=lambda each: each is Mode.BM25):
            if mode in self.lost:
                continue
            try:
                proven[mode] = await brain.prove(mode, monitor=self.monitors[mode])
            except DaemonError as error:
                if self.session.monitor.halted is not None:
                    raise
                self.unproven[mode] = error
        if not proven:
            raise next(iter(self.lost.values()))
        return proven


def size_of_folder(folder: Path) -> int:
    """Total bytes of the files below a folder; files that vanish meanwhile are skipped.

    `Path.rglob` remembers every path that it yields: 59 MB for the documents of WMB-100K.
    """
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - no objects
    return total
