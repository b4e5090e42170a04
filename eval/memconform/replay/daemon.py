"""One daemon that is filled with a copy of the shared brain, and searched."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from memconform.client.failures import CallError, ContractViolatedError
from memconform.client.timings import Timings
from memconform.contract.ask import AskRequest, Retrieve
from memconform.contract.chunking import bodies
from memconform.contract.core import (
    Chunk,
    Filters,
    RetrievalParams,
    SearchRequest,
    SearchResponse,
)
from memconform.contract.terms import terms
from memconform.datasets.question import Question
from memconform.datasets.time_phrases import to_date_time, to_rfc3339
from memconform.errors import DaemonError
from memconform.ingest.documents import Document
from memconform.ingest.records import SeedRecord
from memconform.measuring.observation import Observation
from memconform.measuring.proven_brain import ProvenBrain
from memconform.measuring.requirements import require_complete
from memconform.printing.plurals import plural
from memconform.replay.hits import Hit
from memconform.replay.placement import Placement, has_prefixes, joint_prefix, session_filter
from memconform.replay.records import ReplayRetrievalSettings

_TRIED = 3
"""Documents by whose words it is tried whether filters leave anything to find."""
_QUERY_WORDS = 12


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a daemon returned for a question."""

    hits: tuple[Hit, ...]
    observed: Observation = field(default_factory=Observation)
    answer: str | None = None
    """The answer of the daemon's own reader, if that was asked."""


@dataclass(slots=True)
class BrainIndex:
    """The shared brain in one daemon, proven to be complete."""

    brain: ProvenBrain
    placement: Placement
    settings: ReplayRetrievalSettings
    sessions: Mapping[str, tuple[str, ...]]
    """Paths of each question's sessions, to which a session filter restricts its searches."""
    _documents: dict[str, list[str]] = field(init=False)
    """Paths of each session's document and facts, by the path of the session."""

    def __post_init__(self) -> None:
        documents = defaultdict(list)
        for path in self.brain.seeded.documents.paths:
            documents[self.placement.session_of(path)[1].path].append(path)
        self._documents = dict(documents)

    @property
    def record(self) -> SeedRecord:
        """The size of the index, and what it took."""
        return self.brain.seeded.record

    async def require_filters_find(
        self, documents: Iterable[Document], prefix: str | None = None
    ) -> None:
        """Check that the filters by folders leave something to find.

        A daemon to which they mean other folders finds nothing for any question, which would be a
        score of 0. Some documents that match are searched for by their own words; of these, one may
        have no words that a daemon indexes.

        Args:
            documents: of the brain.
            prefix: of an agent's searches, in place of that of the settings.

        Raises:
            DaemonError: if nothing is found for any of them (`filters_find_nothing`), or the daemon
                died.
        """
        filters = self._folder_filters(prefix)
        if not filters.model_dump(exclude_none=True):
            return
        tried = []
        matching = (each for each in documents if self._matches(each.path, (), filters))
        for document in islice(matching, _TRIED):
            *_, body = bodies(document.content)
            words = " ".join(body.decode().split()[:_QUERY_WORDS])
            request = SearchRequest(
                query=words, top_k=self.settings.top_k, mode=self.settings.mode, filters=filters
            )
            try:
                self.brain.require_usable()
                answer, _ = await self.brain.search(request)
            except CallError:
                # The questions fail on it too, and each reports it with its request.
                return
            if answer.chunks:
                return
            if terms(words):
                tried.append(document.path)
        if not tried:
            return
        by, omit = "--actor-scope, --actor-project and --actor-path-prefix", "omit the filters"
        if prefix is not None:
            by, omit = f"the prefix {prefix} of an agent's searches", "use another --ingest-mode"
        raise DaemonError(
            f"with {by}, nothing is found by the words of {plural(len(tried), 'document')} included"
            f" there: {', '.join(tried)}",
            code="filters_find_nothing",
            hint=f"{omit}, or fix the SDK (core.filter)",
        )

    async def search(self, question: Question, prefix: str | None = None) -> Retrieved:
        """Search the brain for a question.

        Args:
            question: its text is the query.
            prefix: of the documents to search, in place of that of the settings.

        Raises:
            CallError: if the daemon did not answer as the contract says.
            DaemonError: if nothing can be measured any more.
        """
        sessions = self.sessions[question.id]
        params = self._params(question, sessions, prefix)
        request = SearchRequest(
            query=question.question, top_k=self.settings.top_k, **params.model_dump()
        )
        with self.brain.accounted():
            answer, timings = await self.brain.search(request)
            is_complete = self._require_sound(answer, sessions, request)
        return self._retrieved(question, sessions, answer, timings, is_complete=is_complete)

    async def ask(self, question: Question) -> Retrieved:
        """Ask the daemon's own reader, as of the day of the question; raises as `search`."""
        sessions = self.sessions[question.id]
        params = self._params(question, sessions, None)
        shared = {name: getattr(params, name) for name in RetrievalParams.model_fields}
        request = AskRequest(
            question=question.question,
            top_k=self.settings.top_k,
            reader_mode="augmented",
            **shared,
        )
        search = SearchRequest(query=question.question, top_k=request.top_k, **shared)
        with self.brain.accounted():
            asked, timings = await self.brain.ask(request, search)
            is_complete = self._require_sound(asked.retrieve, sessions, search)
        found = self._retrieved(
            question, sessions, asked.retrieve, timings, is_complete=is_complete
        )
        return replace(found, answer=asked.text)

    def _require_sound(
        self, answer: SearchResponse | Retrieve, sessions: Collection[str], request: SearchRequest
    ) -> bool:
        """Whether no chunk is missing; raises CallError for one that is, or that does not belong
        there."""
        self._require_filtered(answer.chunks, sessions, request.filters)
        # A query without terms finds nothing in any mode.
        return not terms(request.query) or self._require_complete(answer, sessions, request.filters)

    def _retrieved(
        self,
        question: Question,
        sessions: Collection[str],
        answer: SearchResponse | Retrieve,
        timings: Timings,
        *,
        is_complete: bool,
    ) -> Retrieved:
        hits = self._hits(answer.chunks)
        missed = set(question.gold).difference(hit.session for hit in hits)
        if missed:
            placed = ((path, self.placement.sessions[path].session.id) for path in sessions)
            self.brain.queries.missed(path for path, name in placed if name in missed)
        return Retrieved(hits, Observation.of(answer, timings, is_complete=is_complete))

    def _require_complete(
        self,
        answer: SearchResponse | Retrieve,
        sessions: Collection[str],
        filters: Filters | None,
    ) -> bool:
        """Whether no chunk is missing; raises ContractViolatedError (`short_ranking`) for a fault.

        A reader with a dialect may not know how many it is asked for; of it, only nothing at all is
        an error.
        """
        if isinstance(answer, Retrieve) and not self.brain.is_own and answer.chunks:
            return True
        chunks, top_k = self._searchable(sessions, filters), self.settings.top_k
        return require_complete(
            (chunks, chunks), top_k, top_k, answer,
            ranked=len(answer.chunks), dialect=self.brain.client.dialect,
        )  # fmt: skip

    def _params(
        self, question: Question, sessions: Collection[str], prefix: str | None
    ) -> RetrievalParams:
        settings = self.settings
        filters = self._folder_filters(prefix).model_copy(
            update={"session_ids": session_filter(sessions) if settings.session_filter else None}
        )
        asked_at = to_date_time(question.question_date)
        return RetrievalParams(
            mode=settings.mode,
            question_date=to_rfc3339(asked_at) if asked_at else None,
            candidate_k=settings.candidate_k,
            rerank_top_n=settings.rerank_top_n,
            filters=filters if filters.model_dump(exclude_none=True) else None,
        )

    def _folder_filters(self, prefix: str | None = None) -> Filters:
        """The filters of the settings by folders, with another prefix if one is given.

        A daemon with a dialect stores documents in folders of its own, of which its scopes and
        projects say nothing; to it the same is said by a prefix, which the dialect translates.
        """
        settings = self.settings
        filters = Filters(
            path_prefix=prefix or settings.path_prefix,
            scope=settings.scope,
            project=settings.project,
        )
        if self.brain.is_own:
            return filters
        folders = filters.model_dump(include={"path_prefix", "scope", "project"})
        return Filters(path_prefix=joint_prefix(**folders))

    def _require_filtered(
        self, chunks: Sequence[Chunk], sessions: Collection[str], filters: Filters | None
    ) -> None:
        """Raise ContractViolatedError for a chunk of no document, or one that filters exclude."""
        self.brain.seeded.documents.require_own(chunks)
        for chunk in chunks:
            if filters is not None and not self._matches(chunk.path, sessions, filters):
                raise ContractViolatedError(
                    "filter_ignored", f"{chunk.path} was retrieved, but the filters exclude it"
                )

    def _matches(self, path: str, sessions: Collection[str], filters: Filters) -> bool:
        prefixed = has_prefixes(
            path,
            path_prefix=filters.path_prefix,
            scope=filters.scope,
            project=filters.project,
        )
        return prefixed and (
            filters.session_ids is None or self.placement.belongs_to(path, sessions)
        )

    def _searchable(self, sessions: Collection[str], filters: Filters | None) -> int:
        """How many chunks a search can find."""
        if filters is None and self.record.chunks is not None:
            return self.record.chunks
        restricted = filters is not None and filters.session_ids is not None
        paths = (
            path
            for session in (sessions if restricted else self._documents)
            for path in self._documents[session]
            if filters is None or self._matches(path, sessions, filters)
        )
        counts = (self.brain.seeded.documents.chunk_count(path) for path in paths)
        # A document whose chunks nobody counts is expected to be one.
        return sum(1 if count is None else count for count in counts)

    def _hits(self, chunks: Sequence[Chunk]) -> tuple[Hit, ...]:
        return tuple(self._hit(rank, chunk) for rank, chunk in enumerate(chunks, start=1))

    def _hit(self, rank: int, chunk: Chunk) -> Hit:
        kind, placed = self.placement.session_of(chunk.path)
        # A daemon that keeps front matter returns it with the first chunk.
        *_, body = bodies(chunk.text.encode("utf-8", "surrogatepass"))
        text = body.decode("utf-8", "surrogatepass")
        session = placed.session
        return Hit(rank, chunk.path, kind, session.id, session.date, chunk.score, text)
