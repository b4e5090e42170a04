"""Asks the questions of an index, and verifies the index between them and at their end."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from memconform.concurrency import work_through
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.ingest.verification import IndexChangedError
from memconform.measuring.validity import Statement
from memconform.records import Failure

_Trial = TypeVar("_Trial")
_Measured = TypeVar("_Measured")


class Verification(Protocol):
    """When an index is verified, and what follows for what was measured in it."""

    def is_due(self, trials: int) -> bool:
        """Whether to verify before more is asked, after so many trials since the last time."""

    def verify(self, *, last: bool) -> AsyncIterator[Statement]:
        """Verify, and yield what is known now; `last` after the last trial.

        Raises:
            DaemonError: if nothing more can be measured; if the index has changed, after the
                statement that says so.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Generic[_Trial, _Measured]):
    """What is asked of one index, and how the index is verified meanwhile."""

    ask: Callable[[_Trial], Awaitable[_Measured]]
    """Makes a trial; raises DaemonError if nothing more can be measured."""
    verification: Verification
    concurrency: int

    async def run(
        self, batches: Iterable[Iterator[_Trial]]
    ) -> AsyncGenerator[_Measured | Statement, None]:
        """Yield what each trial measured, and after each verification whether that counts.

        Trials of one batch may overlap, those of two never do. A journal that stores what is
        yielded in that order says which measurements count, whenever it ends.

        Raises:
            DaemonError: as `ask` and `Verification.verify`.
        """
        trials = 0
        for batch in batches:
            async with aclosing(work_through(batch, self.ask, self.concurrency)) as measured:
                async for each in measured:
                    yield each
                    trials += 1
                    if self.verification.is_due(trials):
                        trials = 0
                        async for statement in self.verification.verify(last=False):
                            yield statement
        async for statement in self.verification.verify(last=True):
            yield statement


@dataclass(frozen=True, slots=True)
class CountedVerification:
    """Verifies after every so many trials; an index that changed ends the measurement."""

    check: Callable[[], Awaitable[None]]
    """Checks that the index is what it was; raises DaemonError (IndexChangedError) if not."""
    scope: IndexVerified
    """What a check covers."""
    every: int
    """Trials between two checks; a resume repeats at most this many."""

    def is_due(self, trials: int) -> bool:
        """See `Verification`."""
        return trials >= self.every

    async def verify(self, *, last: bool) -> AsyncIterator[Statement]:
        """See `Verification`; every check is alike."""
        del last
        try:
            await self.check()
        except IndexChangedError as error:
            failure = Failure(code=error.code, message=error.message)
            covered = self.scope.model_dump(include={"system", "haystack", "strategies"})
            yield IndexInvalidated(**covered, error=failure)
            raise
        yield self.scope


@dataclass(frozen=True, slots=True)
class VerifiedAlong:
    """For trials that are journalled as they end, and verified beside others by who made them.

    So no statement is yielded: those of the journal name trials by number, because measuring goes
    on after a doubt, and what ended before it must be told from what ended later.
    """

    verify_last: Callable[[], Awaitable[None]]
    """Verifies after the last trial."""

    def is_due(self, trials: int) -> bool:
        """See `Verification`; never."""
        del trials
        return False

    async def verify(self, *, last: bool) -> AsyncIterator[Statement]:
        """See `Verification`."""
        del last
        await self.verify_last()
        return
        yield
