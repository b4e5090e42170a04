"""The queries of a haystack, and what counts as found."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from memconform.bench.records import Relevance
from memconform.datasets.haystacks import Haystack
from memconform.datasets.model import Question
from memconform.datasets.pruning import Pruning

ALL = "all"
"""Every query that has gold, by the gold that its dataset names."""
UNDISPUTED = "undisputed"
"""Without the queries of the errata file."""
OFFICIAL = "official"
"""By the gold, and only the queries, of the benchmark's own retrieval metrics."""
OFFICIAL_SESSIONS = "official, by session"
"""The same of a ranking of turns, each standing for its session."""


@dataclass(frozen=True, slots=True)
class Task:
    haystack: str
    query: Question
    relevant_by_view: Mapping[str, tuple[str, ...]]
    """By the name of the view; none where a view does not have the query."""
    sessions: Mapping[str, str]
    """The session of each item, where rankings of turns are judged by session too."""
    depth: int
    """How many items a ranking is to have, where so many are found."""
    candidates: frozenset[str] | None = None
    """Ids of the items among which is searched; None: all of the haystack."""

    def views(self, ranking: Sequence[str]) -> dict[str, Relevance]:
        found = {
            name: Relevance(gold=list(gold)) for name, gold in self.relevant_by_view.items() if gold
        }
        if self.sessions and self.relevant_by_view[OFFICIAL]:
            found[OFFICIAL_SESSIONS] = Relevance(
                gold=self._by_session(self.relevant_by_view[OFFICIAL]),
                ranking=self._by_session(ranking),
            )
        return found

    def _by_session(self, items: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(self.sessions[item] for item in items))


@dataclass(frozen=True, slots=True)
class QueryPlanner:
    """How queries become tasks."""

    chosen: frozenset[str]
    """Ids of the queries that are put."""
    depth: int
    official_gold: Callable[[Haystack], tuple[str, ...]] | None = None
    turns: bool = False
    """Whether items are turns of sessions; then all of them are ranked, as the released code does,
    for k sessions may take many more turns."""
    disputed: Collection[str] | None = None
    """Ids of queries whose gold is disputed; None where nothing is known of that."""
    pruning: Pruning | None = None

    def of(self, haystack: Haystack) -> list[Task]:
        by_session = self.turns and self.official_gold is not None
        sessions = {item.id: item.group for item in haystack.items} if by_session else {}
        return [
            Task(
                haystack=haystack.id,
                query=query,
                relevant_by_view=self._golds(haystack, query),
                sessions=sessions,
                depth=max(self.depth, len(haystack.items)) if by_session else self.depth,
                candidates=self.pruning.allowed(haystack, query) if self.pruning else None,
            )
            for query in haystack.queries
            if query.id in self.chosen
        ]

    def _golds(self, haystack: Haystack, query: Question) -> dict[str, tuple[str, ...]]:
        relevant_by_view = {ALL: query.gold}
        if self.disputed is not None:
            relevant_by_view[UNDISPUTED] = () if query.id in self.disputed else query.gold
        if self.official_gold is not None:
            relevant_by_view[OFFICIAL] = self.official_gold(haystack)
        return relevant_by_view
