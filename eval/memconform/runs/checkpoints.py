"""When what was measured counts: once the index was seen to be whole afterwards."""

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from memconform.client.failures import CallError, ContractViolatedError
from memconform.datasets.model import Question
from memconform.errors import DaemonError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.ingest.verification import (
    DOUBTFUL,
    IndexChangedError,
    IndexDoubtError,
    IndexVerifier,
)
from memconform.printing.logs import Logger
from memconform.records import Failure
from memconform.runs.journal import Journal
from memconform.runs.proofs import Retraction
from memconform.runs.results import VerificationRecord

_log = Logger()

_SHARE = 0.05
"""Of the time spent on questions, what verifications between them may take."""
_MOST_OPEN = 100
"""Attempts after which the index is verified whatever that costs: a resume asks them again."""

_SAMPLE = 16
"""Attempts of a whole run that are made again at its end."""
_MOST_DOUBTS = 5
"""After so many the run ends: a daemon that recovers each time measures nothing but patience."""
_ROUNDS = 4
"""In which retrievals that come out otherwise each time are made again."""
_RESTLESS = Failure(
    code="not_confirmed",
    message="retrievals since the last proof of the index came out otherwise each time",
)


@dataclass(slots=True)
class Retrieved:
    """What an attempt retrieved, as far as making its retrieval again must show the same."""

    number: int
    """Of the attempt, in the journal."""
    question: Question
    held: bool
    """Whether the retrieval held what is expected."""
    chunks: tuple[str, ...] | None
    """The chunks that came, by id and in order; None of a reranker, which may be a model."""
    passed: bool | None = None
    """Whether the question did; None before it was judged."""

    def mark_judged(self, *, passed: bool) -> None:
        self.passed = passed

    @property
    def suspect(self) -> bool:
        """Whether a partial index could have made it so: it has readers abstain, too."""
        # What a judge has not seen yet may still fail, and is settled by then.
        return not self.passed or self.question.abstain

    def repeats(self, before: "Retrieved") -> bool:
        """Whether it shows what was retrieved before (core.search.repeatable)."""
        return (self.held, self.chunks) == (before.held, before.chunks)


class Checkpoints:
    """Verifies the index between questions, at the end, and at once where something is odd.

    A retrieval that lacks what was expected is made again: where that comes out otherwise, part of
    the index was away, and the attempt is no measurement. Both are done at one time, after the
    attempt: an outage that lasts is seen by the verification, one that is over by the repetition.
    Where one was, all retrievals since the last verification are made again: a document that was
    away may have made room for the right one.
    """

    def __init__(
        self,
        verifier: IndexVerifier,
        journal: Journal,
        confirm: Callable[[Retrieved], Awaitable[Failure | None]],
        relevant: Callable[[Question], Iterable[str]],
        *,
        reproof: bool,
    ) -> None:
        """
        Args:
            verifier: of the brain that is asked.
            journal: holds the attempts, and takes what becomes known of them.
            confirm: makes a retrieval again; why it is no measurement, or None.
            relevant: the paths of documents that a question needs, as far as that is known.
            reproof: whether documents are proven, and retrievals made again, at all.
        """
        self._verifier = verifier
        self._journal = journal
        self._confirm = confirm
        self._relevant = relevant
        self._reproof = reproof
        self._open: list[Retrieved] = []
        self._sample: list[Retrieved] = []
        """Of all attempts, each with the same chance; made again at the end."""
        self._noted = 0
        self._rng = random.Random(secrets.randbits(64))  # noqa: S311 - seeded by secrets
        self._doubt: Failure | None = None
        self._recheck = False
        # What was adopted was proven to another run.
        self._proven = journal.settled
        """Attempts that a proof of all documents has followed."""
        self._lock = asyncio.Lock()
        self._spent = 0.0
        self._began = time.perf_counter()
        self._verifications = self._invalidations = self._repeated = self._retracted = 0

    def note(self, retrieved: Retrieved) -> None:
        """Have an attempt confirmed at the next verification, where it needs to be."""
        if self._reproof:
            self._open.append(retrieved)
            self._noted += 1
            if len(self._sample) < _SAMPLE:
                self._sample.append(retrieved)
            elif (place := self._rng.randrange(self._noted)) < _SAMPLE:
                self._sample[place] = retrieved

    def failed(self, error: CallError) -> None:
        """Note how a call failed: some failures say something of the calls before."""
        if error.code == "out_of_step":
            self._doubt = self._doubt or Failure(code=error.code, message=error.message)
        elif error.code in DOUBTFUL:
            self._recheck = True

    @property
    def due(self) -> bool:
        """Whether to verify before the next question."""
        open_attempts = self._journal.written - self._journal.settled
        if not open_attempts or self._lock.locked():
            return False
        if self._doubt or self._recheck or open_attempts >= _MOST_OPEN:
            return True
        return self._spent <= _SHARE * (time.perf_counter() - self._began)

    async def verify(self, *, last: bool = False) -> None:
        """Settle the attempts that ended before this call.

        Raises:
            DaemonError: where nothing more can be measured; they are invalidated then.
        """
        async with self._lock:
            ended = self._journal.written
            if ended == (self._proven if last else self._journal.settled):
                return
            retrieved, odd = tuple(self._open), self._recheck
            self._recheck = False
            try:
                await self._settle(ended, retrieved, odd=odd, last=last)
            except asyncio.CancelledError:
                # What was not confirmed is to be, should it be verified once more.
                self._recheck = self._recheck or odd
                raise
            del self._open[: len(retrieved)]

    async def _settle(
        self, ended: int, retrieved: Sequence[Retrieved], *, odd: bool, last: bool
    ) -> None:
        suspects = [each for each in retrieved if each.suspect]
        needed = await asyncio.to_thread(self._needed, suspects)
        try:
            proven = self._doubt is None and await self._verified(
                retrieved, needed if suspects else None, odd=odd, last=last
            )
            # It may have been raised by what was asked meanwhile, and be older than that.
            if self._doubt is not None:
                await self._invalidate(self._doubt, needed)
                return
        except DaemonError as error:
            self._spoil(Failure(code=error.code, message=error.message))
            raise
        self._journal.state(IndexVerified(attempts=ended, reproof=self._reproof))
        self._verifications += 1
        self._proven = ended if proven else self._proven

    async def _verified(
        self, retrieved: Sequence[Retrieved], needed: set[str] | None, *, odd: bool, last: bool
    ) -> bool:
        """Whether every document was proven; what speaks against the index becomes `_doubt`."""
        started = time.perf_counter()
        try:
            proven = await self._verifier.verify(needed, full=last or odd)
            repeated = self._repeated
            await self._confirm_all(retrieved, needed or set(), everything=odd)
            if last:
                await self._confirm_sample()
            if self._repeated > repeated:
                # An index that is gone by now confirms what an outage before had spoilt.
                await self._verifier.verify(needed)
        except IndexDoubtError as error:
            self._doubt = self._doubt or Failure(code=error.code, message=error.message)
            return False
        self._spent += time.perf_counter() - started
        return proven

    def _needed(self, suspects: Sequence[Retrieved]) -> set[str]:
        return {path for each in suspects for path in self._relevant(each.question)}

    def record(self) -> VerificationRecord:
        return VerificationRecord(
            reproof=self._reproof,
            verifications=self._verifications,
            invalidations=self._invalidations,
            repeated=self._repeated,
            retracted=self._retracted,
        )

    async def _confirm_sample(self) -> None:
        """Raise IndexDoubtError where attempts of any time come out otherwise now.

        What is lost for good, and was not needed since, shows in them alone.
        """
        for each in self._sample:
            failure = await self._confirm(each)
            self._repeated += 1
            if failure is not None:
                raise IndexDoubtError(failure.code, failure.message)

    async def _invalidate(self, failure: Failure, needed: set[str]) -> None:
        """Throw away what is open; raises DaemonError unless the index is whole again."""
        self._spoil(failure)
        if self._invalidations >= _MOST_DOUBTS:
            raise IndexChangedError(
                f"the index was in doubt {self._invalidations} times: {failure.message}",
                code=failure.code,
                hint="what was measured before counts; --resume asks the rest",
            )
        await self._verifier.recover(needed)
        # What ended while the index was proven again was asked before that was known.
        self._spoil(failure)
        self._doubt = None
        self._proven = self._journal.written

    def _spoil(self, failure: Failure) -> None:
        # A document that is gone may have been missing since all of them were last asked for.
        lasting = failure.code in ("not_searchable", "not_repeatable")
        since = self._proven if lasting else self._journal.settled
        written = self._journal.written
        if written > since:
            _log.warning("attempts are not measured", attempts=written - since, **_told(failure))
            self._journal.state(IndexInvalidated(attempts=written, since=since, error=failure))
            self._sample = [each for each in self._sample if each.number < since]
            self._invalidations += 1

    async def _confirm_all(
        self, retrieved: Sequence[Retrieved], needed: set[str], *, everything: bool
    ) -> None:
        """Make suspect retrievals again, or all of them, until a round of it brings no surprise.

        An outage may have come back while they were made again, and confirmed what another one had
        spoilt.
        """
        left = list(retrieved)
        for _ in range(_ROUNDS):
            gone = [
                each
                for each in left
                if (everything or each.suspect) and await self._retracted_after(each)
            ]
            if not gone and not self._recheck:
                return
            left = [each for each in left if each not in gone]
            everything, self._recheck = True, False
            await self._verifier.verify(needed, full=True)
        # Those that pass too, or failures alone would vanish from a daemon that is never the same.
        for each in left:
            self._retract(each, _RESTLESS)

    async def _retracted_after(self, retrieved: Retrieved) -> bool:
        """Whether an attempt came out otherwise when its retrieval was made again."""
        failure = await self._confirm(retrieved)
        self._repeated += 1
        if failure is None:
            return False
        self._retract(retrieved, failure)
        return True

    def _retract(self, retrieved: Retrieved, failure: Failure) -> None:
        _log.warning("question not measured", id=retrieved.question.id, **_told(failure))
        self._retracted += 1
        self._journal.state(Retraction(number=retrieved.number, error=failure))
        # What does not count any more says nothing of what does.
        self._sample = [each for each in self._sample if each.number != retrieved.number]


def _told(failure: Failure) -> dict[str, str]:
    return {"code": failure.code, "message": failure.message}


def not_repeatable(before: Retrieved, now: Retrieved) -> Failure:
    """Why an attempt does not count whose retrieval came out otherwise when it was made again."""
    return Failure(
        code="not_repeatable",
        message=f"the retrieval {_described(before)}; made again, it {_described(now)}"
        " (core.search.repeatable)",
    )


def _described(retrieved: Retrieved) -> str:
    what = "held what is expected" if retrieved.held else "lacked what is expected"
    return what if retrieved.chunks is None else f"{what} in {len(retrieved.chunks)} chunks"


def unconfirmed(error: CallError) -> Failure:
    """Why an attempt does not count whose retrieval could not be made again."""
    violated = isinstance(error, ContractViolatedError)
    return Failure(
        code=error.code if violated else "not_confirmed",
        message=f"the retrieval could not be made again: {error.message}",
    )
