"""Asks one daemon every question; what it returns counts once the index was verified after it."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from pathlib import Path

from memconform.client.failures import CallError
from memconform.daemons.sdk_runner import Launch
from memconform.datasets.question import Question
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.llm.accounting import CallTotals
from memconform.llm.chat import HaltingError
from memconform.measuring.daemon_session import daemon_session
from memconform.measuring.engine import Measurement
from memconform.measuring.proven_brain import open_brain
from memconform.records import Failure
from memconform.replay.agent import Agent
from memconform.replay.daemon import BrainIndex
from memconform.replay.events import BrainIndexed, QuestionRetrieved
from memconform.replay.journal import RetrievalJournal
from memconform.replay.manifest import DaemonFacts
from memconform.replay.plan import Part, ReplayPlan
from memconform.replay.records import ReplayRetrieval
from memconform.replay.retrieval_record import retrieval_record
from memconform.replay.tool_loop import agent_prefixes, answer_with_tools

_VERIFY_EVERY = 50
"""Questions between two verifications of the index; a resume repeats at most this many."""


class PartRetrieval:
    """The retrieval of one SDK: it is filled, waits for its turn, and is asked."""

    def __init__(
        self,
        plan: ReplayPlan,
        part: Part,
        journal: RetrievalJournal,
        run_id: str,
        calls: CallTotals,
    ) -> None:
        """Retrieve for a part; an agent's calls are added to `calls`."""
        self._calls = calls
        self._plan = plan
        self._part = part
        self._journal = journal
        self._run_id = run_id
        self._pending = [each for each in plan.questions if each.id not in journal]
        self.turn = asyncio.Event()
        """Set when its questions may be asked: nothing else runs then."""
        self.failed: dict[str, Failure] = {}
        """Questions that were not measured, and why."""
        self.daemon = DaemonFacts()
        self.halted: HaltingError | None = None
        """Why the agent calls its model no more."""

    async def run(self, emit: Callable[[BrainIndexed | QuestionRetrieved], None]) -> None:
        """Ask the questions that the journal does not have, once it is the SDK's turn.

        Raises:
            DaemonError: if the daemon does not start, cannot be filled, dies, or loses documents.
            ResultsError: if the journal cannot be written.
        """
        if not self._pending:
            return
        plan, part = self._plan, self._part
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
            part.upstream,
            connections=2,
            timeouts=plan.timeouts,
            headers=plan.headers,
            rank_by=part.rank_by,
        ) as session:
            try:
                async with open_brain(
                    session, part.runner, plan.brain_name, plan.brain, is_filled=plan.is_filled
                ) as brain:
                    retrieval = plan.settings.retrieval
                    proven = await brain.prove(retrieval.mode, again=plan.again)
                    index = BrainIndex(proven, plan.placement, retrieval, plan.sessions.paths)
                    self.daemon.indexed(index.record)
                    self.daemon.measured(session)
                    self._journal.require_version(session.version)
                    await self._require_filters_find(index)
                    emit(BrainIndexed(part.name, index.record))
                    await self.turn.wait()
                    await self._ask_all(index, emit)
            finally:
                self.daemon.measured(session)

    async def _require_filters_find(self, index: BrainIndex) -> None:
        """Raise DaemonError for a filter of the questions' searches that leaves nothing to find."""
        prefixes: Iterable[str | None] = [None]
        if self._plan.agent is not None:
            prefixes = agent_prefixes(index.placement.project).values()
        for prefix in prefixes:
            await index.require_filters_find(self._plan.brain.documents(), prefix)

    async def _ask_all(self, index: BrainIndex, emit: Callable[[QuestionRetrieved], None]) -> None:
        async def ask(question: Question) -> ReplayRetrieval:
            return await self._ask(index, question)

        measurement = Measurement(
            ask=ask,
            verify=index.brain.verify,
            verify_every=_VERIFY_EVERY,
            scope=IndexVerified(),
            # One at a time: latencies of concurrent requests contain each other. An agent waits for
            # its model most of the time.
            concurrency=1 if self._plan.agent is None else self._plan.concurrency,
        )
        async with aclosing(measurement.run([iter(self._pending)])) as measured:
            async for each in measured:
                match each:
                    case ReplayRetrieval():
                        self._journal.append(each)
                        if each.error is not None:
                            self.failed[each.question] = each.error
                        emit(QuestionRetrieved(self._part.name, each.question))
                    case IndexVerified() | IndexInvalidated():
                        self._journal.state(each)

    async def _ask(self, index: BrainIndex, question: Question) -> ReplayRetrieval:
        plan = self._plan
        try:
            if plan.agent is not None:
                return await self._ask_agent(plan.agent, index, question)
            if plan.settings.endpoint_style == "full":
                return retrieval_record(question.id, await index.ask(question))
            return retrieval_record(question.id, await index.search(question))
        except CallError as error:
            return _failed(question, Failure(code=error.code, message=error.message))

    async def _ask_agent(
        self, agent: Agent, index: BrainIndex, question: Question
    ) -> ReplayRetrieval:
        if self.halted is not None:
            return _failed(question, Failure(code=self.halted.code, message=self.halted.message))
        record, error = await answer_with_tools(agent, index, question, self._calls)
        if isinstance(error, HaltingError):
            self.halted = error
        return record


def _failed(question: Question, failure: Failure) -> ReplayRetrieval:
    return ReplayRetrieval(question=question.id, hits=[], texts=[], error=failure)


def _new_folder(plan: ReplayPlan, part: Part) -> Path:
    logs = plan.folder / "logs"
    logs.mkdir(exist_ok=True)
    taken = len(list(logs.glob(f"{part.name}-*")))
    return logs / f"{part.name}-{taken + 1:03}"
