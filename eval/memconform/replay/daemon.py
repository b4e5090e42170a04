"""One daemon that is filled with a copy of the shared brain, and searched."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice

from memconform.client.failures import CallError, ContractViolatedError, DaemonFailedError
from memconform.contract.ask import AskRequest, Retrieve
from memconform.contract.chunking import bodies
from memconform.contract.core import (
    Chunk,
    Filters,
    RetrievalParams,
    SearchRequest,
    SearchResponse,
    score_rise,
)
from memconform.contract.skipped_stages import skipped_stage
from memconform.contract.terms import terms
from memconform.contract.wire import Mode
from memconform.daemons.runner import SdkRunner
from memconform.datasets.model import Question
from memconform.datasets.time_phrases import to_date_time, to_rfc3339
from memconform.errors import DaemonError
from memconform.ingest.documents import Document
from memconform.ingest.monitor import DaemonMonitor
from memconform.ingest.query_verification import QueryVerification
from memconform.ingest.records import SeedRecord
from memconform.ingest.seeding import SeededBrain, adopted_brain, seeded_brain
from memconform.ingest.verification import IndexVerifier
from memconform.measuring.daemon_session import DaemonSession
from memconform.measuring.requirements import require_complete, require_strategy
from memconform.printing.plurals import plural
from memconform.replay.brain import BrainFile
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
    latency_ms: float | None
    search_ms: float | None = None
    daemon_ms: float | None = None
    """The longest time that it says it took."""
    answer: str | None = None
    """The answer of the daemon's own reader, if that was asked."""
    rises: bool = False
    """Whether a score of the ranking rises."""
    skipped_stage: str | None = None
    """Which stage of its mode the search skipped, and why; None if it skipped none."""
    null_chunks: bool = False
    """Whether `chunks` was null."""
    is_short: bool = False
    """Whether it has fewer hits than there are, because the daemon drops near duplicates."""


@dataclass(slots=True)
class BrainIndex:
    """The shared brain in one daemon, proven to be complete."""

    session: DaemonSession
    auto_modes: tuple[Mode, ...] | None
    """What the daemon may serve for mode auto."""
    is_own: bool
    """Whether it speaks the contract itself, without a dialect."""
    brain: str
    seeded: SeededBrain
    verification: QueryVerification
    placement: Placement
    settings: ReplayRetrievalSettings
    sessions: Mapping[str, tuple[str, ...]]
    """Paths of each question's sessions, to which a session filter restricts its searches."""
    _documents: dict[str, list[str]] = field(init=False)
    """Paths of each session's document and facts, by the path of the session."""

    def __post_init__(self) -> None:
        documents = defaultdict(list)
        for path in self.seeded.documents.paths:
            documents[self.placement.session_of(path)[1].path].append(path)
        self._documents = dict(documents)

    @property
    def record(self) -> SeedRecord:
        """The size of the index, and what it took."""
        return self.seeded.record

    async def verify(self) -> None:
        """Check that the index still contains the whole brain.

        Raises:
            DaemonError: if it does not, or the daemon is dead or stuck.
        """
        self._usable_monitor()
        await self.verification.verify()

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
                answer, _ = await self._usable_monitor().call(
                    self.session.client.search(self.brain, request)
                )
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
        monitor = self._usable_monitor()
        try:
            answer, timings = await monitor.call(self.session.client.search(self.brain, request))
            require_strategy(answer.trace, request, self.auto_modes)
            self._require_filtered(answer.chunks, sessions, request.filters)
            # A query without terms finds nothing in any mode.
            is_complete = not terms(request.query) or self._require_complete(
                answer, sessions, request.filters
            )
        except CallError as error:
            self._failed(error)
            raise
        monitor.answered()
        hits = self._hits(answer.chunks)
        self._note_missed(question, sessions, hits)
        return Retrieved(
            hits,
            timings.done_ms,
            answer.trace.search_ms,
            timings.daemon_ms,
            rises=_rises(answer.chunks),
            skipped_stage=skipped_stage(answer.trace),
            null_chunks=answer.was_null,
            is_short=not is_complete,
        )

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
        monitor = self._usable_monitor()
        try:
            asked, timings = await monitor.call(self.session.client.ask(self.brain, request))
            require_strategy(asked.retrieve.trace, search, self.auto_modes)
            self._require_filtered(asked.retrieve.chunks, sessions, request.filters)
            is_complete = not terms(request.question) or self._require_complete(
                asked.retrieve, sessions, request.filters
            )
        except CallError as error:
            self._failed(error)
            raise
        monitor.answered()
        hits = self._hits(asked.retrieve.chunks)
        self._note_missed(question, sessions, hits)
        return Retrieved(
            hits,
            timings.done_ms,
            daemon_ms=timings.daemon_ms,
            answer=asked.text,
            rises=_rises(asked.retrieve.chunks),
            skipped_stage=skipped_stage(asked.retrieve.trace),
            null_chunks=asked.retrieve.was_null,
            is_short=not is_complete,
        )

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
        if isinstance(answer, Retrieve) and not self.is_own and answer.chunks:
            return True
        chunks, top_k = self._searchable(sessions, filters), self.settings.top_k
        return require_complete(
            (chunks, chunks), top_k, top_k, answer,
            ranked=len(answer.chunks), dialect=self.session.client.dialect,
        )  # fmt: skip

    def _usable_monitor(self) -> DaemonMonitor:
        if self.session.monitor.halted is not None:
            raise self.session.monitor.halted
        return self.session.monitor

    def _failed(self, error: CallError) -> None:
        self.session.monitor.failed(error)
        self.verification.failed(error)

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
        if self.is_own:
            return filters
        folders = filters.model_dump(include={"path_prefix", "scope", "project"})
        return Filters(path_prefix=joint_prefix(**folders))

    def _require_filtered(
        self, chunks: Sequence[Chunk], sessions: Collection[str], filters: Filters | None
    ) -> None:
        """Raise ContractViolatedError for a chunk of no document, or one that filters exclude."""
        self.seeded.documents.require_own(chunks)
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
        counts = (self.seeded.documents.chunk_count(path) for path in paths)
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

    def _note_missed(
        self, question: Question, sessions: Collection[str], hits: Sequence[Hit]
    ) -> None:
        missed = set(question.gold).difference(hit.session for hit in hits)
        if missed:
            placed = ((path, self.placement.sessions[path].session.id) for path in sessions)
            self.verification.missed(path for path, name in placed if name in missed)


def _rises(chunks: Sequence[Chunk]) -> bool:
    return score_rise([chunk.score for chunk in chunks]) is not None


@asynccontextmanager
async def brain_index(
    session: DaemonSession,
    runner: SdkRunner,
    brain: str,
    file: BrainFile,
    *,
    placement: Placement,
    settings: ReplayRetrievalSettings,
    sessions: Mapping[str, tuple[str, ...]],
    is_filled: bool,
    again: str,
) -> AsyncIterator[BrainIndex]:
    """Fill a brain of a daemon from the shared brain, and prove that every document is found.

    The brain is deleted on exit without an error; after one it stays until it is filled again. One
    that `is_filled` already is proven in the same way, and stays. `again` is what asks questions
    again whose results do not count.

    Raises:
        DaemonError: if the daemon dies, refuses, miscounts or does not find the documents.
    """
    seed = adopted_brain if is_filled else seeded_brain
    seeding = seed(session.client, runner, session.daemon, brain, file, [settings.mode])
    async with AsyncExitStack() as stack:
        try:
            seeded = await session.monitor.call(stack.enter_async_context(seeding))
        except (DaemonError, DaemonFailedError) as error:
            raise await session.monitor.cause_of(error) from error
        verifier = IndexVerifier(
            session.client, session.daemon, seeded.counts, seeded, session.version
        )
        await verifier.begin()
        yield BrainIndex(
            session=session,
            auto_modes=runner.auto_modes,
            is_own=runner.dialect is None,
            brain=brain,
            seeded=seeded,
            verification=QueryVerification(verifier, again),
            placement=placement,
            settings=settings,
            sessions=sessions,
        )
    if session.monitor.halted is None and not is_filled:
        # If this fails, the brain goes with the daemon's state or with the next seeding.
        with suppress(CallError):
            await session.client.delete_brain(brain)
