"""Asks one daemon every question; what it returns counts once the index was verified after it."""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

from memconform.bench.daemon_session import daemon_session
from memconform.client.failures import CallError
from memconform.client.recorder import record_exchanges
from memconform.daemons.runner import Launch
from memconform.datasets.model import Question
from memconform.records import Failure
from memconform.redaction import hides
from memconform.replay.daemon import BrainIndex, Retrieved, brain_index
from memconform.replay.events import BrainIndexed, QuestionRetrieved
from memconform.replay.hits import Hit
from memconform.replay.journal import RetrievalJournal
from memconform.replay.manifest import DaemonRecord
from memconform.replay.plan import Part, ReplayPlan
from memconform.replay.records import HitRecord, RetrievalRecord
from memconform.runs.loop import work_through

_VERIFY_EVERY = 50
"""Questions between two verifications of the index; a resume repeats at most this many."""
_PREVIEW = 200
"""Characters of a hit's text in a result."""


class PartRetrieval:
    """The retrieval of one SDK."""

    def __init__(
        self, plan: ReplayPlan, part: Part, journal: RetrievalJournal, run_id: str
    ) -> None:
        self._plan = plan
        self._part = part
        self._journal = journal
        self._run_id = run_id
        self.failed: dict[str, Failure] = {}
        """Questions that were not measured, and why."""
        self.daemon = DaemonRecord()

    async def run(self) -> AsyncGenerator[BrainIndexed | QuestionRetrieved, None]:
        """Ask the questions that the journal does not have.

        Raises:
            DaemonError: if the daemon does not start, cannot be filled, dies, or loses documents.
            ResultsError: if the journal cannot be written.
        """
        plan, part = self._plan, self._part
        pending = [each for each in plan.questions if each.id not in self._journal]
        if not pending:
            return
        assert part.runner is not None  # noqa: S101 - for mypy: a control retrieves nothing
        launch = Launch(
            run_id=self._run_id,
            folder=_new_folder(plan, part),
            port=part.port,
            sampled=True,
        )
        async with daemon_session(
            part.runner,
            launch,
            plan.upstream,
            connections=2,
            timeouts=plan.timeouts,
            headers=plan.headers,
        ) as session:
            try:
                async with brain_index(
                    session,
                    part.runner,
                    plan.brain_name,
                    plan.brain,
                    placement=plan.placement,
                    settings=plan.settings.retrieval,
                ) as index:
                    yield BrainIndexed(part.name, index.record)
                    self.daemon.indexed(index.record)
                    async with aclosing(self._ask_all(index, pending)) as events:
                        async for event in events:
                            yield event
            finally:
                self.daemon.measured(session)

    async def _ask_all(
        self, index: BrainIndex, pending: Sequence[Question]
    ) -> AsyncGenerator[QuestionRetrieved, None]:
        unverified: list[RetrievalRecord] = []

        async def ask(question: Question) -> RetrievalRecord:
            return await self._ask(index, question)

        # One at a time: latencies of concurrent requests contain each other.
        async with aclosing(work_through(iter(pending), ask, 1)) as records:
            async for record in records:
                unverified.append(record)
                yield QuestionRetrieved(self._part.name, record.question)
                if len(unverified) >= _VERIFY_EVERY:
                    await self._accept(index, unverified)
        await self._accept(index, unverified)

    async def _accept(self, index: BrainIndex, records: list[RetrievalRecord]) -> None:
        """Journal the records, once the index is seen to be what it was before them."""
        await index.verify()
        self._journal.append([record for record in records if record.error is None])
        self.failed |= {r.question: r.error for r in records if r.error is not None}
        records.clear()

    async def _ask(self, index: BrainIndex, question: Question) -> RetrievalRecord:
        plan = self._plan
        sessions = plan.sessions.paths[question.id]
        with record_exchanges() as exchanges:
            try:
                retrieve = index.ask if plan.settings.endpoint_style == "full" else index.search
                retrieved = await retrieve(question, sessions)
            except CallError as error:
                curl = exchanges[-1].curl() if exchanges else ""
                failure = Failure(
                    code=error.code, message=error.message, body=error.body, curl=curl
                )
                return RetrievalRecord(
                    question=question.id, hits=[], texts=[], latency_ms=None, search_ms=None,
                    error=failure,
                )  # fmt: skip
        return retrieval_record(question.id, retrieved)


def retrieval_record(question: str, retrieved: Retrieved, turns: int = 0) -> RetrievalRecord:
    """What is journalled of a question."""
    texts = [hit.text for hit in retrieved.hits]
    secret = any(map(hides, (*texts, retrieved.answer or "")))
    return RetrievalRecord(
        question=question,
        hits=[hit_record(hit) for hit in retrieved.hits],
        texts=texts,
        latency_ms=retrieved.latency_ms,
        search_ms=retrieved.search_ms,
        answer=retrieved.answer,
        turns=turns,
        redacted=secret,
    )


def hit_record(hit: Hit) -> HitRecord:
    """A hit without its text."""
    return HitRecord(
        rank=hit.rank,
        path=hit.path,
        kind=hit.kind,
        session=hit.session,
        score=hit.score,
        text_sha256=hashlib.sha256(hit.text.encode("utf-8", "surrogatepass")).hexdigest(),
        preview=hit.text[:_PREVIEW],
    )


def _new_folder(plan: ReplayPlan, part: Part) -> Path:
    logs = plan.folder / "logs"
    logs.mkdir(exist_ok=True)
    taken = len(list(logs.glob(f"{part.name}-*")))
    return logs / f"{part.name}-{taken + 1:03}"
