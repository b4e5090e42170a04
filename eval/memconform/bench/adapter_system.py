"""A memory system behind an adapter, as a system of a bench.

Such a system may rank approximately, cut by a threshold, drop duplicates or rewrite texts: all of
that is honest, and a finding. So its index is not proven; what it does becomes figures.
"""

import asyncio
import random
import shutil
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memconform.adapters.manifest import AdapterProgram, filled
from memconform.adapters.session import AdapterSession
from memconform.bench.behaviour import SystemBehaviour
from memconform.bench.daemon_system import size_of_folder
from memconform.bench.records import IndexRecord, SystemRecord
from memconform.bench.strategy import Strategy
from memconform.bench.system import Index, RunningSystem, SearchResult
from memconform.bench.tasks import Task
from memconform.client.failures import CallError, ContractViolatedError
from memconform.contract.wire import Mode
from memconform.daemons.environment import BASE, shell_variables
from memconform.daemons.upstream import scripted_upstream
from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.time_phrases import to_date_time, to_rfc3339
from memconform.errors import DaemonError
from memconform.measuring.observation import Observation
from memconform.storage.folders import DaemonFolder

_BATCH = 50
"""Items of one call of `store`."""
_PROBES = 30
"""Items of each haystack that are searched for by their own words."""
_PROBE_DEPTH = 10
_MAX_HITS_FACTOR = 16
"""How many times more hits than items are asked for, of a system that stores items in pieces."""
_REPEATED = 5
"""Searches of each haystack that are made twice."""
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "ANONYMIZED_TELEMETRY": "False",
    # Nothing listens there: what a system sends elsewhere than to this machine fails at once.
    **dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"
    ),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
}


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
    strategies: tuple[Strategy, ...] = (Strategy(None),)
    ties: str | None = None

    @property
    def name(self) -> str:
        return self.program.manifest.name

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
        state = folder.path / "state"
        state.mkdir()
        async with AsyncExitStack() as stack:
            stack.callback(folder.drop_state)
            address = ""
            if self.scripted:
                opening = scripted_upstream(folder.upstream, self.run_id)
                address = (await stack.enter_async_context(opening)).base_url
            placeholders = {"upstream": address, "embed_model": self.embed_model}
            env = shell_variables([*BASE]) | _OFFLINE | {"HOME": str(state.absolute())}
            env |= filled(self.program.variables(scripted=self.scripted), placeholders)
            session = AdapterSession(
                python=self.python,
                form="system" if manifest.command is None else "lines",
                command=await asyncio.to_thread(self.program.command),
                log=folder.path / "adapter.log",
                state=state,
                env=env,
                settings=filled(manifest.settings, placeholders),
                limit=manifest.timeout_s,
            )
            await stack.enter_async_context(session.run())
            behaviour = SystemBehaviour(adapter_lines=self.program.lines, licence=manifest.licence)
            yield _RunningAdapter(self, session, behaviour)


@dataclass(frozen=True, slots=True)
class _RunningAdapter:
    system: AdapterSystem
    session: AdapterSession
    behaviour: SystemBehaviour
    sent: set[str] = field(default_factory=set)
    """The ids and the texts of all items that were stored, of whatever user."""
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
        stored: dict[str, _StoredHaystack] = {}
        took = 0.0
        for haystack in haystacks:
            items = [item for item in haystack.items if item.text.strip()]
            started = time.perf_counter()
            for start in range(0, len(items), _BATCH):
                rows = [_row(haystack.id, item) for item in items[start : start + _BATCH]]
                await self.session.call("store", haystack.id, rows)
            await self.session.call("finish", haystack.id)
            took += time.perf_counter() - started
            self.behaviour.sent += len(items)
            stored[haystack.id] = one = _StoredHaystack(haystack.id, items)
            self.sent.update(one.texts, one.texts.values())
        index = _AdapterIndex(
            self.session,
            self.behaviour,
            self.sent,
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
        # Not after an error or an interrupt: the process and its folder end with it.
        if index.first and not self.behaviour.restarted:
            await self._restart(index)
            if self.behaviour.lost == self.behaviour.restarted:
                # The new process knows nothing of these users.
                self.earlier.clear()

    async def _restart(self, index: "_AdapterIndex") -> None:
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
    return [_unique_id(user, item), item.text, item.speaker, item.group, date]


def _unique_id(user: str, item: Item) -> str:
    """An id that no item of another user has: conversations of LoCoMo number their turns alike."""
    return f"{user}/{item.id}"


class _StoredHaystack:
    """The items that were sent for one user, and how its hits are recognized."""

    def __init__(self, user: str, items: Sequence[Item]) -> None:
        self.user = user
        self.searches = 0
        self.items_found = 0
        """Items in the rankings of all its searches, those for its own words too."""
        self.texts = {_unique_id(user, item): item.text for item in items}
        self.sources = {_unique_id(user, item): item.source or item.id for item in items}
        self._by_text = defaultdict[str, list[str]](list)
        for identifier, text in self.texts.items():
            self._by_text[text].append(identifier)

    def has_text(self, text: str) -> bool:
        """Whether an item has exactly this text."""
        return text in self._by_text

    def item_of(
        self, identifier: str | None, text: str, taken: Collection[str | None]
    ) -> str | None:
        """The item that a hit is; None for a text of the system's own.

        A text that lost its id is matched exactly, to the first item that has it and is not
        `taken`.
        """
        if identifier is not None:
            return identifier
        candidates = self._by_text.get(text, ())
        return next((item for item in candidates if item not in taken), None)


@dataclass(slots=True)
class _AdapterIndex:
    session: AdapterSession
    behaviour: SystemBehaviour
    sent: Collection[str]
    stored: Mapping[str, _StoredHaystack]
    record: IndexRecord
    first: list[tuple[Task, tuple[str, ...]]] = field(default_factory=list)
    """The first searches that found an item, which are made again at each verification."""

    async def probe(self) -> None:
        """Search for items by their own words.

        Raises:
            DaemonError: if a search fails: nobody knows then what the system holds.
        """
        for stored in self.stored.values():
            chosen = random.Random(stored.user)  # noqa: S311 - nothing secret
            items = chosen.sample(sorted(stored.texts), min(_PROBES, len(stored.texts)))
            for item in items:
                self.behaviour.probed += 1
                try:
                    ranking, _ = await self._hits(stored, stored.texts[item], _PROBE_DEPTH)
                except ContractViolatedError:
                    # Of another user, or made up: a question that meets one is not measured.
                    continue
                except CallError as error:
                    raise self._failed(
                        "searching for an item by its own words failed", error
                    ) from error
                self.behaviour.found += item in ranking

    async def search(self, task: Task, strategy: Strategy) -> SearchResult:
        """The system's own ranking, which may be shorter than asked for.

        Raises:
            CallError: if the search failed, or returned an item that was never sent for this user.
        """
        del strategy
        stored = self.stored[task.haystack]
        self.behaviour.searches += 1
        ranking, took_ms = await self._hits(stored, task.query.question, task.depth, counted=True)
        if ranking and len(self.first) < _REPEATED:
            self.first.append((task, ranking))
        wanted = min(task.depth, len(stored.texts))
        self.behaviour.short += len(ranking) < wanted
        sources = tuple(dict.fromkeys(stored.sources[item] for item in ranking))
        return SearchResult(
            sources, Observation(latency_ms=took_ms, is_short=len(ranking) < wanted)
        )

    async def _hits(
        self, stored: _StoredHaystack, query: str, k: int, *, counted: bool = False
    ) -> tuple[tuple[str, ...], float]:
        """The first k items of a search in order, each once, and the milliseconds that it took.

        A system may store an item in pieces: then more hits are asked for, until k items are found.
        The time is that of the last call.
        """
        asked, wanted = k, min(k, len(stored.texts))
        while True:
            reply: dict[str, Any] = await self.session.call("search", stored.user, query, asked)
            hits = reply["hits"][:asked]
            items = self._items(stored, hits)
            # A hit of no item counts towards k: what follows it is not what was asked for.
            entries = list(dict.fromkeys(item or rank for rank, item in enumerate(items)))
            if len(entries) >= wanted or len(hits) < asked or asked >= _MAX_HITS_FACTOR * k:
                break
            asked *= 2
        ranking = tuple(entry for entry in entries[:k] if isinstance(entry, str))
        if counted:
            self.behaviour.hits += len(hits)
            for item, (_, text, _) in zip(items, hits, strict=True):
                self.behaviour.of_no_item += item is None
                is_part = item is not None and text and text in stored.texts[item]
                self.behaviour.rewritten += item is not None and not is_part
        stored.searches += 1
        stored.items_found += len(ranking)
        return ranking, float(reply["took_ms"])

    def _items(self, stored: _StoredHaystack, hits: Sequence[Sequence[Any]]) -> list[str | None]:
        """The item of each hit.

        Raises:
            ContractViolatedError: if one was never sent for this user.
        """
        items: dict[str | None, None] = {}
        found = []
        for identifier, text, _ in hits:
            item = stored.item_of(identifier, text, items)
            is_own = item in stored.texts or (item is None and stored.has_text(text))
            is_others = not is_own and (identifier or text) in self.sent
            if is_others or not (is_own or item is None):
                self.behaviour.leaks += is_others
                what = f"the id {item!r}" if item is not None else "a text without an id"
                owner = "was stored for another user" if is_others else "was never stored"
                raise ContractViolatedError("foreign_id", f"a hit has {what} that {owner}")
            items[item] = None
            found.append(item)
        return found

    async def verify(self, mode: Mode | None) -> None:
        """Make the first searches again, and count those that rank otherwise now.

        Raises:
            DaemonError: if the adapter no longer answers, or no search of a haystack has found an
                item (`hits_of_no_item`): the scores would be 0, whatever the hits say.
        """
        del mode
        if self.session.connection.halted is not None:
            raise self.session.connection.halted
        lost = next((s for s in self.stored.values() if s.searches and not s.items_found), None)
        if lost is not None:
            raise DaemonError(
                f"{lost.user}: no hit of {lost.searches:,} searches has the id or the text of an"
                " item",
                code="hits_of_no_item",
                hint="return the id that `store` was given; a text without one is matched exactly;"
                f" if nothing was found, see {self.session.log}",
            )
        for task, ranking in self.first:
            stored = self.stored[task.haystack]
            try:
                again, _ = await self._hits(stored, task.query.question, task.depth)
            except CallError as error:
                raise self._failed("a repeated search failed that had succeeded", error) from error
            if not again:
                nothing = CallError("hits_of_no_item", "it found items before, and none now")
                raise self._failed("a repeated search found nothing", nothing)
            self.behaviour.repeated += 1
            self.behaviour.changed += again != ranking

    def _failed(self, what: str, error: CallError) -> DaemonError:
        hint = f"see {self.session.log}"
        return DaemonError(f"{what}: {error.message}", code=error.code, hint=hint)

    async def lost_searches(self) -> int:
        """How many of the first searches fail now, or find no item that they had found.

        Raises:
            DaemonError: if the adapter no longer answers.
        """
        lost = 0
        for task, ranking in self.first:
            try:
                again, _ = await self._hits(
                    self.stored[task.haystack], task.query.question, task.depth
                )
            except CallError:
                again = ()
            lost += set(ranking).isdisjoint(again)
        return lost


def _empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
