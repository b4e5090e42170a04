"""Asks the questions of an index, and verifies the index between them and at their end."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

from memconform.concurrency import work_through
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.ingest.verification import IndexChangedError
from memconform.measuring.validity import Statement
from memconform.records import Failure

_Trial = TypeVar("_Trial")
_Measured = TypeVar("_Measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Generic[_Trial, _Measured]):
    """What is asked of one index, and how the index is verified meanwhile."""

    ask: Callable[[_Trial], Awaitable[_Measured]]
    """Makes a trial; raises DaemonError if nothing more can be measured."""
    verify: Callable[[], Awaitable[None]]
    """Checks that the index is what it was; raises DaemonError (IndexChangedError) if not."""
    concurrency: int
    verify_every: int | None = None
    """Trials between two verifications; a resume repeats at most this many. None if `ask` verifies
    when it is due, beside the trials of others, so that only the last verification is made here."""
    scope: IndexVerified | None = None
    """What a verification covers; None if `verify` says in the journal what follows from it."""

    async def run(
        self, batches: Iterable[Iterator[_Trial]]
    ) -> AsyncGenerator[_Measured | Statement, None]:
        """Yield what each trial measured, and after each verification whether that counts.

        Trials of one batch may overlap, those of two never do. A journal that stores what is
        yielded in that order says which measurements count, whenever it ends.

        Raises:
            DaemonError: if nothing more can be measured; if the index has changed, after the
                statement that says so.
        """
        count = 0
        for batch in batches:
            async with aclosing(work_through(batch, self.ask, self.concurrency)) as measured:
                async for each in measured:
                    yield each
                    count += 1
                    if self.verify_every is not None and count % self.verify_every == 0:
                        async for statement in self._verified():
                            yield statement
        async for statement in self._verified():
            yield statement

    async def _verified(self) -> AsyncGenerator[Statement, None]:
        try:
            await self.verify()
        except IndexChangedError as error:
            if self.scope is not None:
                failure = Failure(code=error.code, message=error.message)
                covered = self.scope.model_dump(include={"system", "haystack", "strategies"})
                yield IndexInvalidated(**covered, error=failure)
            raise
        if self.scope is not None:
            yield self.scope
