"""A daemon as a system: ingest, proof of it, search through the contract."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memconform.bench.document_map import DocumentMap
from memconform.bench.records import Filled, SystemRecord
from memconform.bench.strategy import Strategy
from memconform.bench.system import Found, Index, Session
from memconform.bench.tasks import Task
from memconform.client.client import ContractClient
from memconform.client.failures import CallError, ContractViolatedError, DaemonFailedError
from memconform.client.timing import Timeouts
from memconform.contract.core import (
    DEEPEST,
    Filters,
    SearchRequest,
    SearchResponse,
    Trace,
    Version,
)
from memconform.contract.terms import terms
from memconform.contract.wire import Mode
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.runner import Daemon, Launch, SdkRunner
from memconform.daemons.upstream import served
from memconform.datasets.haystacks import Haystack
from memconform.errors import DaemonError
from memconform.ingest.monitor import DaemonMonitor
from memconform.ingest.seeding import seeded_brain
from memconform.ingest.verification import (
    DOUBTFUL,
    IndexChangedError,
    IndexDoubtError,
    IndexVerifier,
)
from memconform.runs.preflight import read_version
from memconform.scenarios.scenario import RetrievalSettings, require_requested_mode
from memconform.storage.folders import DaemonFolder

_MISSED = 1_000
"""Documents that a proof asks for besides those it draws: ten queries."""

_DAY = re.compile(r"(\d{4})[-/](\d{2})[-/](\d{2})")


@dataclass(frozen=True, slots=True)
class DaemonSystem:
    runner: SdkRunner
    strategies: tuple[Strategy, ...]
    folder: Path
    """For its log and its state; it is made."""
    run_id: str
    upstream: UpstreamKind
    shared: bool
    """Whether several haystacks lie in one brain, and queries are filtered."""
    concurrency: int = 1
    timeouts: Timeouts = field(default_factory=Timeouts)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.runner.name

    @property
    def brain(self) -> str:
        """Of this bench alone: another one may ask the same daemon."""
        return f"mc-{self.run_id}"

    @property
    def identity(self) -> str:
        told = (self.runner.build_hash(), self.upstream, sorted(self.runner.variables().items()))
        return hashlib.sha256(repr(told).encode()).hexdigest()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Session]:
        folder = DaemonFolder(self.folder)
        try:
            async with self._open(folder) as session:
                yield session
        finally:
            folder.redact_log()
            folder.drop_state()

    @asynccontextmanager
    async def _open(self, folder: DaemonFolder) -> AsyncIterator[Session]:
        launch = Launch(run_id=self.run_id, folder=folder.path, sampled=True)
        async with (
            served(self.runner, launch, self.upstream) as daemon,
            ContractClient(
                daemon.base_url,
                timeouts=self.timeouts,
                connections=self.concurrency + 1,
                headers=self.headers,
            ) as client,
        ):
            version = await read_version(client)
            monitor = DaemonMonitor(daemon)
            try:
                yield _Session(self, daemon, client, monitor, launch.state, version)
            finally:
                monitor.close()


@dataclass(frozen=True, slots=True)
class _Session:
    system: DaemonSystem
    daemon: Daemon
    client: ContractClient
    monitor: DaemonMonitor
    state: Path
    version: Version

    def record(self) -> SystemRecord:
        runner, resources = self.system.runner, self.daemon.resources()
        return SystemRecord(
            name=runner.name,
            version=self.version.version,
            build_hash=runner.build_hash(),
            upstream=self.system.upstream,
            variables=runner.variables(),
            ready_ms=self.daemon.ready_ms,
            rss_peak_bytes=resources.rss_peak_bytes if resources else None,
            cpu_seconds=resources.cpu_seconds if resources else None,
        )

    @asynccontextmanager
    async def fill(self, haystacks: Iterable[Haystack]) -> AsyncIterator[Index]:
        document_map = DocumentMap(haystacks)
        modes = dict.fromkeys(each.mode or Mode.AUTO for each in self.system.strategies)
        filling = seeded_brain(
            self.client,
            self.system.runner,
            self.system.brain,
            document_map,
            modes,
        )
        async with AsyncExitStack() as stack:
            try:
                seeded = await self.monitor.call(stack.enter_async_context(filling))
            except (DaemonError, DaemonFailedError) as error:
                raise await self.monitor.cause_of(error) from error
            document_map.take(seeded.documents)
            verifier = IndexVerifier(
                self.client, self.daemon, seeded.counts, seeded, self.version.run_id
            )
            await verifier.begin()
            record = seeded.record
            filled = Filled(
                system=self.system.name,
                haystack="",
                documents=record.documents,
                chunks=record.chunks,
                vectors=record.vectors,
                ingest_ms=record.took_ms,
                disk_bytes=await asyncio.to_thread(_size, self.state)
                if self.daemon.process
                else None,
            )
            yield _Brain(self, document_map, verifier, filled)
        if self.monitor.halted is None:
            # What is left of it is gone with the daemon's state, or with the next seeding.
            with suppress(CallError):
                await self.client.delete_brain(self.system.brain)


@dataclass(slots=True)
class _Brain:
    session: _Session
    document_map: DocumentMap
    verifier: IndexVerifier
    filled: Filled
    _doubt: CallError | None = field(default=None, init=False)
    """A failure after which nothing that was found since the last proof is sure."""
    _missed: set[str] = field(default_factory=set, init=False)
    """Paths of documents that queries since the last proof needed, and did not find."""

    async def prove(self) -> None:
        if self.session.monitor.halted is not None:
            raise self.session.monitor.halted
        doubt, self._doubt = self._doubt, None
        try:
            missed, self._missed = self._missed, set()
            if doubt is None or doubt.code != "out_of_step":
                await self.verifier.verify(missed or None, full=doubt is not None)
            # It may be older than the proof, though it was seen during it.
            doubt = next((e for e in (doubt, self._doubt) if e and e.code == "out_of_step"), None)
            if doubt is not None:
                raise IndexDoubtError(doubt.code, doubt.message)  # noqa: TRY301
        except IndexDoubtError as error:
            raise IndexChangedError(
                error.message,
                code=error.code,
                hint="what was found since the last proof does not count; --resume asks it again",
            ) from error

    async def search(self, task: Task, strategy: Strategy) -> Found:
        client, monitor = self.session.client, self.session.monitor
        if monitor.halted is not None:
            raise monitor.halted
        request = self._request(task, strategy)
        try:
            answer, timings = await monitor.call(client.search(self.session.system.brain, request))
            _require_strategy(answer.trace, strategy, request)
            ranking = self.document_map.to_item_ranking(task, answer.chunks)
            # Without a term a query finds nothing, in any mode.
            if terms(request.query):
                searchable_counts = self.document_map.searchable_counts(
                    task.haystack, task.candidates
                )
                require_complete(
                    searchable_counts, task.depth, request.top_k, answer, ranked=len(ranking)
                )
        except CallError as error:
            monitor.failed(error)
            if error.code in DOUBTFUL and (self._doubt is None or error.code == "out_of_step"):
                self._doubt = error
            raise
        monitor.answered()
        lost = set(task.query.gold).difference(ranking)
        if lost and len(self._missed) < _MISSED:
            # As it counts as found: an item, or another key of it.
            self._missed.update(self.document_map.paths(task.haystack, lost))
        return Found(ranking, timings.done_ms, answer.trace.search_ms)

    def _request(self, task: Task, strategy: Strategy) -> SearchRequest:
        """With as many chunks as it takes to see that many items, whatever they were cut into.

        The legs of a fused ranking are to hold as many items as they would without that surplus.
        """
        chunks, items = self.document_map.searchable_counts(task.haystack, task.candidates)
        surplus = chunks - items
        pool = max(5 * task.depth, 50) + surplus
        swept = not strategy.tuning.keys().isdisjoint({"poolFactor", "poolFloor"})
        dated = not strategy.tuning.keys().isdisjoint({"recency", "temporal"})
        return SearchRequest(
            query=task.query.question,
            top_k=min(task.depth + surplus, DEEPEST),
            mode=strategy.mode or Mode.AUTO,
            candidate_k=min(pool, 10_000) if surplus and not swept else None,
            filters=self._filters(task),
            tuning=strategy.wishes,
            question_date=_day(task.query.question_date) if dated else None,
        )

    def _filters(self, task: Task) -> Filters | None:
        shared = self.session.system.shared
        if task.candidates is None and not shared:
            return None
        return Filters(
            path_prefix=self.document_map.prefix(task.haystack) if shared else None,
            paths=None
            if task.candidates is None
            else self.document_map.paths(task.haystack, task.candidates),
        )


def require_complete(
    searchable_counts: tuple[int, int],
    depth: int,
    top_k: int,
    answer: SearchResponse,
    *,
    ranked: int,
) -> None:
    """Raise where items that the mode ranks are missing, or hidden behind chunks of others.

    `reach` is how many chunks and items there are to be found, `ranked` how many items came.
    """
    chunks, items = searchable_counts
    cut = len(answer.chunks) == top_k < chunks
    if ranked < min(depth, items) and (cut or answer.trace.embedder_used):
        raise ContractViolatedError(
            "short_ranking",
            f"{len(answer.chunks)} chunks of {ranked} items came, and of {items} items {depth} are"
            " wanted",
        )


def _require_strategy(trace: Trace, strategy: Strategy, request: SearchRequest) -> None:
    """Raise CallError where another search was made than the one that was asked for."""
    require_requested_mode(RetrievalSettings("", request.mode, request.top_k), trace)
    told = trace.tuning or {}
    for key, value in strategy.tuning.items():
        if told.get(key) != value:
            raise DaemonFailedError(
                "tuning_not_served", f"asked for {key} {value!r}, the trace says {told.get(key)!r}"
            )


def _day(date: str | None) -> str | None:
    """`YYYY-MM-DD` of a date that begins with a year, month and day."""
    match = _DAY.match(date or "")
    return "-".join(match.groups()) if match else None


def _size(folder: Path) -> int:
    """Bytes of all files below a folder, but for those that vanish meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += 0 if path.is_dir() else path.lstat().st_size
    return total
