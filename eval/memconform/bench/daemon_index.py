"""What a daemon has ingested as an index: verification, searches and answers of the contract."""

from collections.abc import Mapping, MutableMapping
from dataclasses import KW_ONLY, dataclass, replace

from memconform.bench.document_map import DocumentMap
from memconform.bench.records import IndexRecord
from memconform.bench.strategy import Strategy
from memconform.bench.system import OwnAnswer, SearchResult
from memconform.bench.tasks import Task
from memconform.client.failures import ContractViolatedError
from memconform.contract.ask import AskRequest
from memconform.contract.core import (
    DEEPEST,
    Filters,
    RetrievalParams,
    SearchRequest,
    SearchResponse,
)
from memconform.contract.terms import terms
from memconform.contract.wire import Mode
from memconform.datasets.time_phrases import to_date_time, to_rfc3339
from memconform.errors import DaemonError
from memconform.ingest.monitor import DaemonMonitor
from memconform.measuring.observation import Observation
from memconform.measuring.proven_brain import ProvenBrain
from memconform.measuring.requirements import require_complete


@dataclass(frozen=True, slots=True)
class DaemonIndex:
    """A brain that holds the haystacks; implements `AnsweringIndex`."""

    modes: Mapping[Mode, ProvenBrain]
    unproven: MutableMapping[Mode, DaemonError]
    """Why the index is not, or no longer, proven in a mode."""
    reader: DaemonMonitor
    """For the calls of its own reader, which may be stuck while its search is well."""
    document_map: DocumentMap
    record: IndexRecord
    _: KW_ONLY
    shared: bool
    """Whether it holds all haystacks, so that queries are filtered."""
    answer_depth: int | None
    """Chunks from which its own reader answers each question; None if it is not asked."""

    async def verify(self, mode: Mode | None) -> None:
        """Check that the index still holds every document, in the legs of a mode.

        Whatever is found concerns this mode alone: a change of the whole index is found again when
        the others are verified.
        """
        mode = mode or Mode.AUTO
        brain = self.modes[mode]
        try:
            await brain.verify()
        except DaemonError as error:
            if brain.monitor.halted is None:
                self.unproven[mode] = error
            raise

    def _proven(self, strategy: Strategy) -> ProvenBrain:
        return self.modes[strategy.mode or Mode.AUTO]

    async def search(self, task: Task, strategy: Strategy) -> SearchResult:
        brain = self._proven(strategy)
        request = self._request(task, strategy)
        is_complete = True
        with brain.accounted():
            while True:
                answer, timings = await brain.search(request)
                ranking = self.document_map.to_item_ranking(task, answer.chunks)
                if not self._is_cut_short(task, request, answer, len(ranking)):
                    break
                deeper = min(2 * request.top_k, DEEPEST)
                request = request.model_copy(update={"top_k": deeper, "candidate_k": 5 * deeper})
            # A query without terms finds nothing in any mode.
            if terms(request.query):
                chunks, items = self.document_map.searchable_counts(task.haystack, task.candidates)
                ranked = len(ranking)
                if task.wants_memories:
                    items, ranked = chunks, len(answer.chunks)
                is_complete = require_complete(
                    (chunks, items), task.depth, request.top_k, answer,
                    ranked=ranked, dialect=brain.client.dialect,
                )  # fmt: skip
        missed = set(task.query.gold).difference(ranking)
        if missed:
            brain.queries.missed(self.document_map.paths(task.haystack, missed))
        return SearchResult(
            ranking,
            Observation.of(answer, timings, is_complete=is_complete),
            memories=tuple(chunk.text for chunk in answer.chunks) if task.wants_memories else (),
        )

    async def answer(self, task: Task, strategy: Strategy, found: SearchResult) -> OwnAnswer:
        """Ask the daemon's own reader, as of the day of the question.

        Its failures are those of a reader: they never count as failures of the daemon's search.
        """
        self._proven(strategy).require_usable()
        brain = replace(self._proven(strategy), monitor=self.reader)
        search = self._request(task, strategy)
        shared = {name: getattr(search, name) for name in RetrievalParams.model_fields}
        asked_at = to_date_time(task.query.question_date)
        request = AskRequest(
            question=search.query,
            top_k=self.answer_depth or search.top_k,
            reader_mode="augmented",
            **shared | {"question_date": to_rfc3339(asked_at) if asked_at else None},
        )
        with brain.accounted():
            asked, _ = await brain.ask(request, search)
            # Chunks of another haystack, or of no document, are an error as in a search.
            ranking = self.document_map.to_item_ranking(task, asked.retrieve.chunks)
            retrieved = len(asked.retrieve.chunks)
            # With fewer chunks than it was asked for, a reader had all that there are. One with a
            # dialect may not know how many that is; of it, only nothing at all is an error.
            is_short = retrieved < request.top_k and len(ranking) < len(found.ranking)
            if is_short and (brain.is_own or not ranking):
                raise ContractViolatedError(
                    "short_ranking",
                    f"the reader retrieved {retrieved} chunks of {len(ranking)} items, and a search"
                    f" finds {len(found.ranking)} items; {request.top_k} chunks were requested",
                )
        return OwnAnswer(asked.text, ranking)

    def _is_cut_short(
        self, task: Task, request: SearchRequest, answer: SearchResponse, ranked: int
    ) -> bool:
        """Whether chunks that nobody counts may have displaced items from a full answer."""
        _, items = self.document_map.searchable_counts(task.haystack, task.candidates)
        return (
            not task.wants_memories
            and not self.document_map.is_counted
            and ranked < min(task.depth, items)
            and len(answer.chunks) == request.top_k < DEEPEST
        )

    def _request(self, task: Task, strategy: Strategy) -> SearchRequest:
        """A request for enough chunks to see `task.depth` items, however items were chunked.

        The surplus is added to the candidate pool too, so that the legs of a fused ranking contain
        as many items as they would if every item were one chunk. Memories are chunks: for them,
        `task.depth` chunks are requested.
        """
        chunks, items = self.document_map.searchable_counts(task.haystack, task.candidates)
        surplus = 0 if task.wants_memories else chunks - items
        pool = max(5 * task.depth, 50) + surplus
        sets_pool = not strategy.tuning.keys().isdisjoint({"poolFactor", "poolFloor"})
        return SearchRequest(
            query=task.query.question,
            top_k=min(task.depth + surplus, DEEPEST),
            mode=strategy.mode or Mode.AUTO,
            candidate_k=min(pool, 10_000) if surplus and not sets_pool else None,
            filters=self._filters(task),
            tuning=strategy.requested_tuning(task.query),
        )

    def _filters(self, task: Task) -> Filters | None:
        if task.candidates is None and not self.shared:
            return None
        return Filters(
            path_prefix=self.document_map.prefix(task.haystack) if self.shared else None,
            paths=None
            if task.candidates is None
            else self.document_map.paths(task.haystack, task.candidates),
        )
