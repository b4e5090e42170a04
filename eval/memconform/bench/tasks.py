"""Search tasks: the queries of a haystack with their relevant items per view."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memconform.bench.records import OfficialScoring, Relevance, SessionSizes
from memconform.datasets.haystacks import Haystack
from memconform.datasets.question import Question

if TYPE_CHECKING:
    from memconform.longmemeval.pruning import Pruning

ALL = "all"
"""View of every query with gold, by the gold that the dataset names."""
UNDISPUTED = "undisputed"
"""The same view as the errata correct it: without disputed queries, and by the right gold."""
OFFICIAL = "official"
"""View of the queries and the gold of the benchmark's own retrieval metrics."""
OFFICIAL_SESSIONS = "official, by session"
"""The official view of a ranking of turns, scored by session."""


@dataclass(frozen=True, slots=True)
class Task:
    """One query to run against one haystack."""

    haystack: str
    query: Question
    relevant_by_view: Mapping[str, tuple[str, ...]]
    """Gold by the name of the view; empty if the view excludes the query."""
    sessions: Mapping[str, str]
    """The session of each item by the official metrics, if they score rankings of turns by
    session too."""
    depth: int
    """How many items a ranking should have, if that many exist."""
    candidates: frozenset[str] | None = None
    """Ids of the items to search; None for the whole haystack."""
    searched: frozenset[str] | None = None
    """Ids of these items, or of all; None if they do not matter."""
    wants_memories: bool = False
    """Whether `depth` counts chunks, whose texts are the result, and not items."""

    def views(self, ranking: Sequence[str]) -> dict[str, Relevance]:
        """The relevant items in each view that includes the query.

        `ranking` holds ids of items; one that the index contains several times may repeat.
        """
        views = {
            name: Relevance(gold=list(gold), searched_gold=self._searched_gold(gold))
            for name, gold in self.relevant_by_view.items()
            if gold
        }
        if gold := self.relevant_by_view.get(OFFICIAL):
            relevant = max(len(gold), sum(map(gold.__contains__, ranking)))
            views[OFFICIAL] = Relevance(
                gold=list(gold),
                searched_gold=self._searched_gold(gold),
                ranking=None if len(set(ranking)) == len(ranking) else list(ranking),
                official=OfficialScoring(relevant=relevant, by_session=False),
            )
            if self.sessions:
                sessions = list(dict.fromkeys(self.sessions[item] for item in gold))
                views[OFFICIAL_SESSIONS] = Relevance(
                    gold=sessions,
                    ranking=[self.sessions[item] for item in ranking],
                    official=OfficialScoring(relevant=relevant, by_session=True),
                    session_sizes=self._session_sizes(sessions),
                )
        return views

    def _session_sizes(self, gold: Sequence[str]) -> SessionSizes | None:
        if self.searched is None:
            return None
        sizes = Counter(self.sessions[item] for item in self.searched)
        relevant = [sizes.pop(session) for session in gold if session in sizes]
        return SessionSizes(relevant=relevant, other=sorted(sizes.values()))

    def _searched_gold(self, gold: Collection[str]) -> int | None:
        return None if self.searched is None else len(self.searched.intersection(gold))


@dataclass(frozen=True, slots=True)
class QueryPlanner:
    """Plans the tasks of a haystack from its queries."""

    query_ids: frozenset[str]
    """Ids of the selected queries."""
    depth: int
    official_gold: Callable[[Haystack], tuple[str, ...]] | None = None
    official_sessions: Callable[[Haystack], Mapping[str, str]] | None = None
    """Given if items are turns that the official metrics also score by session. All turns are then
    ranked, as the released code does, because k sessions may take many more turns."""
    disputed: Collection[str] | None = None
    """Ids of queries whose gold is disputed; None without errata."""
    corrected_gold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The right gold of queries that name other evidence."""
    pruning: "Pruning | None" = None
    wants_memories: bool = False

    def tasks(self, haystack: Haystack) -> list[Task]:
        """The tasks of the selected queries of a haystack."""
        by_session = self.official_sessions is not None
        sessions = self.official_sessions(haystack) if self.official_sessions else {}
        # Additional keys of an item count as the item.
        sources = {item.id: item.source or item.id for item in haystack.items}
        item_ids = None if self.wants_memories else frozenset(sources.values())
        candidates = {
            query.id: self.pruning.candidates(haystack, query) if self.pruning else None
            for query in haystack.queries
            if query.id in self.query_ids
        }
        return [
            Task(
                haystack=haystack.id,
                query=query,
                relevant_by_view=self._relevant_by_view(haystack, query),
                sessions=sessions,
                depth=max(self.depth, len(haystack.items)) if by_session else self.depth,
                candidates=candidates[query.id],
                searched=item_ids
                if (chosen := candidates[query.id]) is None
                else frozenset(sources[item] for item in chosen),
                wants_memories=self.wants_memories,
            )
            for query in haystack.queries
            if query.id in self.query_ids
        ]

    def _relevant_by_view(self, haystack: Haystack, query: Question) -> dict[str, tuple[str, ...]]:
        if self.wants_memories:
            # An adapter returns texts and no ids: its recall would be 0.
            return {}
        relevant_by_view = {ALL: query.gold}
        if self.disputed is not None:
            gold = self.corrected_gold.get(query.id, query.gold)
            relevant_by_view[UNDISPUTED] = () if query.id in self.disputed else gold
        if self.official_gold is not None:
            relevant_by_view[OFFICIAL] = self.official_gold(haystack)
        return relevant_by_view
