"""A brain of a daemon that is filled, proven, searched and verified again."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from memconform.client.ask_stream import AskResult
from memconform.client.client import ContractClient
from memconform.client.failures import CallError, DaemonFailedError
from memconform.client.timings import Timings
from memconform.contract.ask import AskRequest
from memconform.contract.core import SearchRequest, SearchResponse
from memconform.contract.wire import Mode
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import DaemonError
from memconform.ingest.documents import Corpus
from memconform.ingest.monitor import DaemonMonitor
from memconform.ingest.query_verification import QueryVerification
from memconform.ingest.seeding import FilledBrain, SeededBrain, adopted_brain, filled_brain
from memconform.ingest.verification import IndexChangedError, IndexVerifier
from memconform.measuring.daemon_session import DaemonSession
from memconform.measuring.requirements import require_strategy

_DELETE_SECONDS = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProvenBrain:
    """A brain in which every document was found, in the legs of one mode."""

    client: ContractClient
    monitor: DaemonMonitor
    """For the calls that it is asked: those in one mode may be stuck while others are well."""
    seeded: SeededBrain
    queries: QueryVerification
    name: str
    auto_modes: tuple[Mode, ...] | None
    """What the daemon may serve for mode auto; None leaves the choice to it."""

    @property
    def is_own(self) -> bool:
        """Whether the daemon speaks the contract itself, without a dialect."""
        return self.client.dialect is None

    def require_usable(self) -> None:
        """Raise DaemonError if nothing more can be measured."""
        if self.monitor.halted is not None:
            raise self.monitor.halted

    @contextmanager
    def accounted(self) -> Iterator[None]:
        """Account for the question that the block asks, and for the checks of what came back.

        A failure counts against the daemon, and some cast doubt on the index; an answer clears it.

        Raises:
            DaemonError: if nothing more can be measured; nothing is asked then.
            CallError: from the block.
        """
        self.require_usable()
        try:
            yield
        except CallError as error:
            self.monitor.failed(error)
            self.queries.failed(error)
            raise
        self.monitor.answered()

    async def search(self, request: SearchRequest) -> tuple[SearchResponse, Timings]:
        """Search; raises CallError if that fails, or in another mode or tuning than requested."""
        answer, timings = await self.monitor.call(self.client.search(self.name, request))
        require_strategy(answer.trace, request, self.auto_modes)
        return answer, timings

    async def ask(self, request: AskRequest, search: SearchRequest) -> tuple[AskResult, Timings]:
        """Ask the daemon's own reader, which is to retrieve as `search` does; raises as that."""
        answer, timings = await self.monitor.call(self.client.ask(self.name, request))
        require_strategy(answer.retrieve.trace, search, self.auto_modes)
        return answer, timings

    async def verify(self) -> None:
        """Check that the index still holds every document.

        Raises:
            IndexChangedError: if it does not.
            DaemonError: if the daemon is dead, gone or stuck, so that nobody knows.
        """
        self.require_usable()
        try:
            await self.queries.verify()
        except IndexChangedError:
            raise
        except DaemonError as error:
            # One that is dead or gone has lost nothing before: what was verified counts.
            if error.code == "daemon_gone":
                self.monitor.halt(error)
            raise await self.monitor.cause_of(error) from error.__cause__


@dataclass(frozen=True, slots=True)
class OpenBrain:
    """A brain with as many documents as were sent; whether they are found is not proven yet."""

    session: DaemonSession
    runner: SdkRunner
    filled: FilledBrain
    name: str

    async def prove(
        self,
        mode: Mode,
        *,
        monitor: DaemonMonitor | None = None,
        again: str = "--resume",
        proving: bool = True,
    ) -> ProvenBrain:
        """Prove that every document is found in a mode.

        Args:
            mode: as it will be searched in.
            monitor: for its searches; None for that of the session.
            again: what asks questions again whose results do not count.
            proving: whether documents are probed again later; counts are always compared.

        Raises:
            DaemonError: if one is not found, or the daemon died, which its session's monitor says.
        """
        session = self.session
        proving = proving and self.runner.has_contract
        seeded = await _monitored(session, self.filled.prove([mode]))
        verifier = IndexVerifier(
            session.client, session.daemon, seeded.counts, seeded, session.version, proving
        )
        await verifier.begin()
        auto_modes, served = self.runner.auto_modes, seeded.prover.auto
        if served is not None and (auto_modes is None or served in auto_modes):
            auto_modes = (served,)
        return ProvenBrain(
            session.client,
            monitor or session.monitor,
            seeded,
            QueryVerification(verifier, again),
            self.name,
            auto_modes,
        )


@asynccontextmanager
async def open_brain(
    session: DaemonSession,
    runner: SdkRunner,
    name: str,
    corpus: Corpus,
    *,
    is_filled: bool = False,
    stays: bool = False,
) -> AsyncIterator[OpenBrain]:
    """Fill a brain with a corpus, or compare one that `is_filled` with it.

    On exit it is deleted, unless it `stays` or is the user's own. The brain of a daemon that was
    started here goes with the daemon's state.

    Raises:
        UsageError: if the documents cannot be read.
        DaemonError: if the daemon implements another contract, dies, refuses or miscounts the
            documents.
    """
    await session.require_version()
    opening = adopted_brain if is_filled else filled_brain
    brain = opening(session.client, runner, session.daemon, name, corpus)
    try:
        async with AsyncExitStack() as stack:
            filled = await _monitored(session, stack.enter_async_context(brain))
            yield OpenBrain(session, runner, filled, name)
    finally:
        if not (stays or is_filled or runner.managed):
            # Also one whose filling failed.
            with suppress(CallError, TimeoutError):
                async with asyncio.timeout(_DELETE_SECONDS):
                    await session.client.delete_brain(name)


async def _monitored(session: DaemonSession, call: Coroutine[Any, Any, T]) -> T:
    """Await a call; a failure is raised as the death of the daemon, if that is its cause."""
    try:
        return await session.monitor.call(call)
    except (DaemonError, DaemonFailedError) as error:
        cause = await session.monitor.cause_of(error)
        if cause is error:
            raise
        raise cause from error
