"""Decides when attempts count: once the index was verified to be complete after them."""

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from memconform.client.failures import CallError, ContractViolatedError, DaemonFailedError
from memconform.datasets.question import Question
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
from memconform.runs.proven_attempts import Retraction
from memconform.runs.results import VerificationRecord

_log = Logger()

_SHARE = 0.05
"""The share of the run time that verifications between questions may take."""
_MOST_OPEN = 100
"""Attempts after which the index is verified at any cost: a resume repeats unverified ones."""

_SAMPLE = 16
"""Attempts of the whole run that are repeated at its end."""
_MOST_DOUBTS = 5
"""Doubts after which the run ends, because a daemon that keeps recovering yields no measurement."""
_ROUNDS = 4
"""Rounds of repeating retrievals before a daemon counts as unstable."""
_TRIES = 3
_RETRY_SECONDS = 0.2
"""Pause before a retry: a daemon that is briefly busy has lost nothing."""
NOT_CONFIRMED = "not_confirmed"
_UNSTABLE = "retrievals since the last verification of the index differed in every repetition"


@dataclass(slots=True)
class RetrievalSnapshot:
    """The part of an attempt's retrieval that a repetition must reproduce."""

    number: int
    """The attempt's number in the journal."""
    question: Question
    held: bool
    """Whether the retrieved text contains the expected strings."""
    chunks: tuple[str, ...] | None
    """Chunk ids in order; None after reranking, which may be nondeterministic."""
    passed: bool | None = None
    """Whether the answer passed; None until it is judged."""

    def mark_judged(self, *, passed: bool) -> None:
        """Record the judgement."""
        self.passed = passed

    @property
    def suspect(self) -> bool:
        """Whether an incomplete index could explain the outcome; it makes readers abstain, too."""
        # An answer that is not judged yet may still fail, after the attempt was settled.
        return not self.passed or self.question.abstain

    def repeats(self, before: "RetrievalSnapshot") -> bool:
        """Whether it reproduces an earlier retrieval (core.search.repeatable)."""
        return (self.held, self.chunks) == (before.held, before.chunks)


class Checkpoints:
    """Verifies the index between questions, at the end, and at once after a suspicious failure.

    A retrieval without the expected text is repeated. If the repetition differs, part of the index
    was missing and the attempt is not a measurement. Verification and repetition happen together,
    after the attempt: the verification detects an outage that lasts, the repetition one that is
    over. After an outage, all retrievals since the last verification are repeated, because a
    missing document may have made room for the right one.
    """

    def __init__(
        self,
        verifier: IndexVerifier,
        journal: Journal,
        confirm: Callable[[RetrievalSnapshot], Awaitable[Failure | None]],
        relevant: Callable[[Question], Iterable[str]],
        *,
        reverify: bool,
    ) -> None:
        """
        Args:
            verifier: verifies the brain under test.
            journal: stores the attempts and the statements about them.
            confirm: repeats a retrieval; returns why the attempt is not a measurement, or None.
                Raises CallError if it cannot be repeated.
            relevant: returns the paths of documents that a question is known to need.
            reverify: whether to probe documents and repeat retrievals at all.
        """
        self._verifier = verifier
        self._journal = journal
        self._confirm = confirm
        self._relevant = relevant
        self._reverify = reverify
        self._open: list[RetrievalSnapshot] = []
        self._sample: list[RetrievalSnapshot] = []
        """A uniform sample of all attempts (reservoir sampling); repeated at the end."""
        self._added = 0
        self._rng = random.Random(secrets.randbits(64))  # noqa: S311 - seeded by secrets
        self._doubt: Failure | None = None
        self._recheck = False
        # Adopted attempts were proven by another run.
        self._proven = journal.settled
        """Number of attempts that were followed by a proof of all documents."""
        self._lock = asyncio.Lock()
        self._spent = 0.0
        self._began = time.perf_counter()
        self._verifications = self._invalidations = self._repeated = self._retracted = 0

    def add(self, snapshot: RetrievalSnapshot) -> None:
        """Add an attempt, to be confirmed at the next verification if it is suspect."""
        if self._reverify:
            self._open.append(snapshot)
            self._added += 1
            if len(self._sample) < _SAMPLE:
                self._sample.append(snapshot)
            elif (slot := self._rng.randrange(self._added)) < _SAMPLE:
                self._sample[slot] = snapshot

    def record_failure(self, error: CallError) -> None:
        """Record a failed call, because some failures cast doubt on earlier calls."""
        if error.code == "out_of_step":
            self._doubt = self._doubt or Failure(code=error.code, message=error.message)
        elif error.code in DOUBTFUL:
            self._recheck = True

    @property
    def due(self) -> bool:
        """Whether to verify the index before the next question."""
        open_attempts = self._journal.written - self._journal.settled
        if not open_attempts or self._lock.locked():
            return False
        if self._doubt or self._recheck or open_attempts >= _MOST_OPEN:
            return True
        return self._spent <= _SHARE * (time.perf_counter() - self._began)

    async def verify(self, *, last: bool = False) -> None:
        """Settle the attempts that ended before this call.

        Raises:
            DaemonError: if nothing more can be measured; the open attempts are invalidated.
        """
        async with self._lock:
            ended = self._journal.written
            if ended == (self._proven if last else self._journal.settled):
                return
            snapshots, suspicious = tuple(self._open), self._recheck
            self._recheck = False
            try:
                await self._settle(ended, snapshots, suspicious=suspicious, last=last)
            except asyncio.CancelledError:
                # The attempts stay open, to be confirmed by a later verification.
                self._recheck = self._recheck or suspicious
                raise
            del self._open[: len(snapshots)]

    async def _settle(
        self, ended: int, snapshots: Sequence[RetrievalSnapshot], *, suspicious: bool, last: bool
    ) -> None:
        suspects = [snapshot for snapshot in snapshots if snapshot.suspect]
        needed = await asyncio.to_thread(self._needed, suspects)
        try:
            proven = self._doubt is None and await self._verify_index(
                snapshots, needed if suspects else None, suspicious=suspicious, last=last
            )
            # A concurrent question may have raised the doubt, which may be older than this call.
            if self._doubt is not None:
                await self._invalidate(self._doubt, needed)
                return
        except DaemonError as error:
            self._discard(Failure(code=error.code, message=error.message))
            raise
        self._journal.write_statement(IndexVerified(attempts=ended, reproof=self._reverify))
        self._verifications += 1
        self._proven = ended if proven else self._proven

    async def _verify_index(
        self,
        snapshots: Sequence[RetrievalSnapshot],
        needed: set[str] | None,
        *,
        suspicious: bool,
        last: bool,
    ) -> bool:
        """Whether every document was proven; evidence against the index is stored in `_doubt`."""
        started = time.perf_counter()
        try:
            proven = await self._verifier.verify(needed, full=last or suspicious)
            repeated = self._repeated
            await self._confirm_all(snapshots, needed or set(), everything=suspicious)
            if last:
                await self._confirm_sample()
            if self._repeated > repeated:
                # If the index was lost meanwhile, the repetitions confirmed spoilt attempts.
                await self._verifier.verify(needed)
        except IndexDoubtError as error:
            self._doubt = self._doubt or Failure(code=error.code, message=error.message)
            return False
        self._spent += time.perf_counter() - started
        return proven

    def _needed(self, suspects: Sequence[RetrievalSnapshot]) -> set[str]:
        return {path for suspect in suspects for path in self._relevant(suspect.question)}

    def record(self) -> VerificationRecord:
        """Summarize the verifications so far."""
        return VerificationRecord(
            reproof=self._reverify,
            verifications=self._verifications,
            invalidations=self._invalidations,
            repeated=self._repeated,
            retracted=self._retracted,
        )

    async def _confirm_sample(self) -> None:
        """Raise IndexDoubtError if an attempt from any time of the run now differs.

        Only these attempts reveal a document that is lost for good and was not needed since. One
        that cannot be repeated reveals nothing, unless none can.
        """
        failures = [await self._repeat(snapshot) for snapshot in self._sample]
        unconfirmed = [failure for failure in failures if failure and failure.code == NOT_CONFIRMED]
        if len(unconfirmed) < len(failures):
            failures = [failure for failure in failures if failure not in unconfirmed]
        for failure in failures:
            if failure is not None:
                raise IndexDoubtError(failure.code, failure.message)

    async def _repeat(self, snapshot: RetrievalSnapshot) -> Failure | None:
        """Repeat a retrieval, more than once if the daemon fails to answer.

        That an answer is missing now says nothing about the one that was measured.

        Returns:
            Why the attempt is not a measurement; None if it is one.
        """
        self._repeated += 1
        for tries in reversed(range(_TRIES)):
            try:
                return await self._confirm(snapshot)
            except CallError as error:
                self.record_failure(error)
                may_pass = isinstance(error, DaemonFailedError) and error.code != "daemon_died"
                if not tries or not may_pass:
                    return _confirmation_failure(error)
            await asyncio.sleep(_RETRY_SECONDS)
        raise AssertionError("unreachable")

    async def _invalidate(self, failure: Failure, needed: set[str]) -> None:
        """Discard open attempts; raises DaemonError unless the index recovers."""
        self._discard(failure)
        if self._invalidations >= _MOST_DOUBTS:
            raise IndexChangedError(
                f"the index was in doubt {self._invalidations} times: {failure.message}",
                code=failure.code,
                hint="earlier measurements are kept; --resume asks the remaining questions",
            )
        await self._verifier.recover(needed)
        # Attempts that ended during the recovery were asked of an unproven index.
        self._discard(failure)
        self._doubt = None
        self._proven = self._journal.written

    def _discard(self, failure: Failure) -> None:
        """Invalidate the open attempts, or all since the last full proof if data was lost."""
        # A lost document may have been missing since the last proof of all documents.
        lasting = failure.code in ("not_searchable", "not_repeatable")
        since = self._proven if lasting else self._journal.settled
        written = self._journal.written
        if written > since:
            _log.warning(
                "attempts are not measured", attempts=written - since, **_log_fields(failure)
            )
            self._journal.write_statement(
                IndexInvalidated(attempts=written, since=since, error=failure)
            )
            self._sample = [snapshot for snapshot in self._sample if snapshot.number < since]
            self._invalidations += 1

    async def _confirm_all(
        self, snapshots: Sequence[RetrievalSnapshot], needed: set[str], *, everything: bool
    ) -> None:
        """Repeat suspect retrievals, or all of them, until a round finds no difference.

        A second outage during the repetitions may have confirmed attempts that the first one
        spoilt.
        """
        remaining = list(snapshots)
        for _ in range(_ROUNDS):
            retracted = [
                snapshot
                for snapshot in remaining
                if (everything or snapshot.suspect) and await self._retract_if_changed(snapshot)
            ]
            if not retracted and not self._recheck:
                return
            remaining = [snapshot for snapshot in remaining if snapshot not in retracted]
            everything, self._recheck = True, False
            await self._verifier.verify(needed, full=True)
        # Retract passed attempts too; otherwise an unstable daemon would lose only its failures.
        for snapshot in remaining:
            self._retract(snapshot, Failure(code=NOT_CONFIRMED, message=_UNSTABLE))

    async def _retract_if_changed(self, snapshot: RetrievalSnapshot) -> bool:
        """Repeat a retrieval and retract the attempt if the result differs; returns whether."""
        failure = await self._repeat(snapshot)
        if failure is None:
            return False
        self._retract(snapshot, failure)
        return True

    def _retract(self, snapshot: RetrievalSnapshot, failure: Failure) -> None:
        _log.warning("question not measured", id=snapshot.question.id, **_log_fields(failure))
        self._retracted += 1
        self._journal.write_statement(Retraction(number=snapshot.number, error=failure))
        # A retracted attempt is no evidence about those that still count.
        self._sample = [other for other in self._sample if other.number != snapshot.number]


def _log_fields(failure: Failure) -> dict[str, str]:
    return {"code": failure.code, "message": failure.message}


def not_repeatable(before: RetrievalSnapshot, now: RetrievalSnapshot) -> Failure:
    """The failure of an attempt whose retrieval differed when it was repeated."""
    return Failure(
        code="not_repeatable",
        message=f"the retrieval {_describe(before)}; repeated, it {_describe(now)}"
        " (core.search.repeatable)",
    )


def _describe(snapshot: RetrievalSnapshot) -> str:
    verb = "contained" if snapshot.held else "lacked"
    text = f"{verb} the expected text"
    return text if snapshot.chunks is None else f"{text} in {len(snapshot.chunks)} chunks"


def _confirmation_failure(error: CallError) -> Failure:
    """The failure of an attempt whose retrieval could not be repeated because of `error`."""
    violated = isinstance(error, ContractViolatedError)
    return Failure(
        code=error.code if violated else NOT_CONFIRMED,
        message=f"the retrieval could not be repeated: {error.message}",
    )
