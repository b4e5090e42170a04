"""What a system behind an adapter holds of each user, and the searches of it.

Such a system may rank approximately, cut by a threshold, drop duplicates or rewrite texts: all of
that is honest, and a finding. So its index is not proven; what it does becomes figures.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from memconform.adapters.item_search import Hit, StoredTexts, search_items
from memconform.adapters.session import AdapterSession
from memconform.bench.behaviour import SystemBehaviour
from memconform.bench.records import IndexRecord
from memconform.bench.strategy import Strategy
from memconform.bench.system import SearchResult
from memconform.bench.tasks import Task
from memconform.client.failures import CallError, ContractViolatedError
from memconform.contract.core import score_rise
from memconform.contract.wire import Mode
from memconform.datasets.haystacks import Item
from memconform.errors import DaemonError
from memconform.measuring.observation import Observation

_PROBES = 30
"""Items of each haystack that are searched for by their own words."""
_PROBE_DEPTH = 10
_REPEATED = 5
"""Searches of each haystack that are made twice."""


def unique_id(user: str, item: Item) -> str:
    """An id that no item of another user has: conversations of LoCoMo number their turns alike."""
    return f"{user}/{item.id}"


class StoredHaystack(StoredTexts):
    """The items that were sent for one user, and how its hits are recognized."""

    def __init__(self, user: str, items: Sequence[Item]) -> None:
        super().__init__()
        self.user = user
        self.searches = 0
        self.items_found = 0
        """Items in the rankings of all its searches, those for its own words too; hits, where
        memories are wanted."""
        self.has_hits = False
        self.add({unique_id(user, item): item.text for item in items})
        self.sources = {unique_id(user, item): item.source or item.id for item in items}

    def has_part(self, text: str) -> bool:
        """Whether the text of an item has this one in it."""
        return any(text in whole for whole in self.texts.values())


@dataclass(frozen=True, slots=True)
class _Found:
    """What came of one search."""

    ranking: tuple[str, ...]
    """Ids of items, best first, each once."""
    texts: tuple[str, ...]
    """Those of all hits, in order."""
    scores: tuple[float | None, ...]
    """As the system gives them, if it does."""
    took_ms: float


@dataclass(slots=True)
class AdapterIndex:
    session: AdapterSession
    behaviour: SystemBehaviour
    sent_ids: Collection[str]
    sent_texts: Collection[str]
    """Ids and texts of all users."""
    stored: Mapping[str, StoredHaystack]
    record: IndexRecord
    first: list[tuple[Task, tuple[str, ...]]] = field(default_factory=list)
    """The first searches that found an item, which are made again at each verification."""

    async def probe(self) -> None:
        """Search for items by their own words.

        A search that fails has not found its item: a question that fails too is not measured.

        Raises:
            DaemonError: if the adapter no longer answers.
        """
        for stored in self.stored.values():
            chosen = random.Random(stored.user)  # noqa: S311 - nothing secret
            items = chosen.sample(sorted(stored.texts), min(_PROBES, len(stored.texts)))
            for item in items:
                self.behaviour.probed += 1
                try:
                    probed = await self._hits(stored, stored.texts[item], _PROBE_DEPTH)
                except CallError:
                    continue
                self.behaviour.found += item in probed.ranking

    async def search(self, task: Task, strategy: Strategy) -> SearchResult:
        """The system's own ranking, which may be shorter than asked for.

        Raises:
            CallError: if the search failed, or returned an item that was never sent for this user.
        """
        del strategy
        stored = self.stored[task.haystack]
        self.behaviour.searches += 1
        found = await self._hits_of(task, counted=True)
        if found.ranking and len(self.first) < _REPEATED:
            self.first.append((task, found.ranking))
        wanted = min(task.depth, len(stored.texts))
        is_short = len(found.texts if task.wants_memories else found.ranking) < wanted
        self.behaviour.short += is_short
        return SearchResult(
            tuple(dict.fromkeys(stored.sources[item] for item in found.ranking)),
            Observation(
                latency_ms=found.took_ms,
                is_short=is_short,
                rises=score_rise([each for each in found.scores if each is not None]) is not None,
            ),
            memories=found.texts if task.wants_memories else (),
        )

    async def _hits_of(self, task: Task, *, counted: bool = False) -> "_Found":
        """The hits of a question: `task.depth` items, or as many hits if it wants memories."""
        return await self._hits(
            self.stored[task.haystack],
            task.query.question,
            task.depth,
            whole=not task.wants_memories,
            counted=counted,
        )

    async def _hits(
        self,
        stored: StoredHaystack,
        query: str,
        k: int,
        *,
        whole: bool = True,
        counted: bool = False,
    ) -> "_Found":
        """The first k items of a search in order, each once; without `whole`, the first k hits."""
        searched = await search_items(
            *(self.session, stored.user, query, k),
            stored=len(stored.texts),
            items_of=partial(self._items, stored),
            whole=whole,
        )
        hits, items = searched.hits, searched.items
        entries = (items[rank] for rank in searched.firsts[:k])
        ranking = tuple(item for item in entries if item is not None)
        if counted:
            self.behaviour.hits += len(hits)
            for item, (_, text, _) in zip(items, hits, strict=True):
                self.behaviour.of_no_item += item is None
                is_part = item is not None and text and text in stored.texts[item]
                self.behaviour.rewritten += item is not None and not is_part
        stored.searches += 1
        stored.has_hits |= bool(hits)
        stored.items_found += len(ranking) if whole else len(hits)
        _, texts, scores = zip(*hits, strict=True) if hits else ((), (), ())
        return _Found(ranking, texts, scores, searched.took_ms)

    def _items(self, stored: StoredHaystack, hits: Sequence[Hit]) -> list[str | None]:
        """The item of each hit.

        Raises:
            ContractViolatedError: if one was never sent for this user.
        """
        items: dict[str | None, None] = {}
        found = []
        for identifier, text, _ in hits:
            item = stored.item_of(identifier, text, items)
            if identifier is not None:
                is_others = identifier in self.sent_ids
                is_foreign = identifier not in stored.texts
            else:
                # Of no item is a text of the system's own, unless another user's. A part of an own
                # item may be what another user said as a whole.
                is_others = item is None and text in self.sent_texts
                is_foreign = is_others and not stored.has_part(text)
            if is_foreign:
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
                " item"
                if lost.has_hits
                else f"{lost.user}: none of {lost.searches:,} searches had a hit",
                code="hits_of_no_item",
                hint="return the id that `store` was given; a text without one is matched exactly;"
                f" if nothing was found, see {self.session.log}",
            )
        for task, ranking in self.first:
            try:
                again = (await self._hits_of(task)).ranking
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
                again = (await self._hits_of(task)).ranking
            except CallError:
                again = ()
            lost += set(ranking).isdisjoint(again)
        return lost
