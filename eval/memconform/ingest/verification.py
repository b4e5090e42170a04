"""Verifies between questions that the index is still the one that was seeded."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import psutil

from memconform.client.client import ContractClient
from memconform.client.failures import CallError, ContractViolatedError
from memconform.contract.core import Brain, Version
from memconform.daemons.ports import listens
from memconform.daemons.resources import process_tree
from memconform.daemons.sdk_runner import Daemon
from memconform.errors import DaemonError
from memconform.ingest.counts import wait_until_indexed
from memconform.ingest.proof import AGAIN
from memconform.ingest.seeding import SeededBrain

DOUBTFUL = frozenset({"out_of_step", "connection_broken", "unreachable"})
"""Codes of failed calls after which the whole index is proven again: a part of the daemon may have
restarted without its data, or its answers may belong to other requests."""
_SAMPLE = 16
"""Random documents that each verification between questions probes, besides the given ones."""
_CHEAP = 100
"""Up to this many documents are all proven each time, because that takes one query."""
_TRIES = 3
_RETRY_SECONDS = 0.2
"""Pause before a retry: a daemon that is briefly busy has lost nothing."""
_SEE_BRAIN = "check whether another run uses the brain, or a part of the daemon restarted"


class IndexDoubtError(Exception):
    """Attempts since the last verification are not measurements; the index may have recovered."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class IndexChangedError(DaemonError):
    """The index is not the one that was seeded, so attempts in it are not measurements."""


class IndexUnansweredError(DaemonError):
    """The daemon did not answer a verification: attempts since the last one do not count."""


@dataclass(slots=True)
class IndexVerifier:
    """Verifies one brain between questions."""

    client: ContractClient
    daemon: Daemon
    counts: Brain
    """The brain's counts when the first question was asked."""
    seeded: SeededBrain | None
    """None for a brain that the harness did not seed, whose documents are unknown."""
    version: Version | None = None
    """What `/version` reported at first; None if the daemon has no such route."""
    proving: bool = True
    """Whether documents are probed, which takes time; counts are always compared."""
    _processes: frozenset[tuple[int, float]] = field(default=frozenset(), init=False)

    async def begin(self) -> None:
        """Record the processes that serve the brain."""
        self._processes = await asyncio.to_thread(self._current_processes)

    async def verify(self, paths: Collection[str] | None = None, *, full: bool = False) -> bool:
        """Compare the brain's counts, lease and processes, and probe random documents.

        Args:
            paths: documents that are always probed, some of them without a filter, as questions
                search; None if no question calls for it.
            full: probe as many documents as at the end of a run, and check the daemon's identity.

        Returns:
            Whether every document was probed.

        Raises:
            IndexDoubtError: if the index was, or may have been, incomplete in the meantime.
            IndexChangedError: if it is a different index.
            IndexUnansweredError: if the daemon no longer answers.
        """
        await self._retry(self._require_same_counts)
        replaced = await asyncio.to_thread(self._is_replaced)
        if full:
            await self._retry(self._require_same_run)
        if self.seeded is None or not self.proving:
            return False
        prover = self.seeded.prover
        full = full or replaced or len(self.seeded.documents) <= _CHEAP
        try:
            if full:
                await self._retry(lambda: prover.prove_again(paths or ()))
                self._processes = await asyncio.to_thread(self._current_processes)
            else:
                await self._retry(lambda: prover.prove_some(_SAMPLE, paths or ()))
            if paths is not None:
                await self._retry(lambda: prover.prove_unfiltered(paths))
        except DaemonError as error:
            if error.code != "not_searchable":
                raise
            raise IndexDoubtError(error.code, error.message) from error
        return len(self.seeded.documents) <= (AGAIN if full else _SAMPLE)

    async def recover(self, paths: Collection[str] = ()) -> None:
        """Wait until nothing is pending and prove the whole index again.

        Some of `paths` are also probed without a filter.

        Raises:
            IndexChangedError: if the index is no longer complete.
            IndexUnansweredError: if the daemon no longer answers.
        """
        try:
            await wait_until_indexed(self.client, self.counts.brain_id)
            await self.verify(paths, full=True)
            if self.seeded is not None and self.proving:
                await self._retry(self.seeded.prover.prove_all)
        except (IndexChangedError, IndexUnansweredError):
            raise
        except (IndexDoubtError, DaemonError) as error:
            raise _changed(self.counts.brain_id, error.message, code=error.code) from error
        except CallError as error:
            raise _failed(self.counts.brain_id, error) from error

    async def _require_same_counts(self) -> None:
        current = await self.client.brain(self.counts.brain_id)
        original = self.counts
        if current.pending:
            raise IndexDoubtError(
                "index_pending", f"{current.pending} documents became pending during the run"
            )
        before = (original.documents, original.chunks, original.vectors)
        now = (current.documents, current.chunks, current.vectors)
        if now != before:
            raise _changed(
                original.brain_id,
                "it had {} documents, {} chunks, {} vectors;".format(*before)
                + " now it has {}, {}, {}".format(*now),
            )
        leased = self.seeded is not None and self.seeded.record.leased
        if leased and current.description != original.description:
            raise _changed(original.brain_id, "another client has recreated it")

    async def _require_same_run(self) -> None:
        current = await self.client.version()
        if current is None or self.version is None:
            if not await asyncio.to_thread(self._is_listening):
                raise _changed(self.counts.brain_id, "its process no longer owns the daemon's port")
        elif current.run_id != self.version.run_id:
            raise _changed(
                self.counts.brain_id,
                f"it is now served by another daemon, run id {current.run_id!r}",
            )

    def _is_listening(self) -> bool:
        """Whether the daemon's process tree listens on its port, as far as that can be seen."""
        root = getattr(self.daemon, "process", None)
        host, port = (parts := urlsplit(self.daemon.base_url)).hostname, parts.port
        return root is None or host is None or port is None or listens(root.pid, host, port)

    async def _retry(self, attempt: Callable[[], Awaitable[object]]) -> None:
        """Call `attempt`; raises IndexUnansweredError if it fails several times."""
        for retries in reversed(range(_TRIES)):
            try:
                await attempt()
            except ContractViolatedError as error:
                raise IndexDoubtError(error.code, error.message) from error
            except CallError as error:
                if not retries and error.code == "unreachable":
                    raise IndexUnansweredError(
                        f"nothing listens at {self.daemon.base_url} any more",
                        code="daemon_gone",
                        hint="see the daemon's own log",
                    ) from error
                if not retries or error.code == "http_404":
                    raise _failed(self.counts.brain_id, error) from error
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    def _current_processes(self) -> frozenset[tuple[int, float]]:
        # A custom SdkRunner may yield a daemon without this attribute.
        root = getattr(self.daemon, "process", None)
        if root is None:
            return frozenset()
        processes = []
        for process in process_tree(root.pid):
            with suppress(psutil.Error):
                processes.append((process.pid, process.create_time()))
        return frozenset(processes)

    def _is_replaced(self) -> bool:
        """Whether a process that served at first has ended, and its memory with it."""
        return any(not _is_alive(pid, created) for pid, created in self._processes)


def _is_alive(pid: int, created: float) -> bool:
    try:
        process = psutil.Process(pid)
        return process.create_time() == created and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _failed(brain: str, error: CallError) -> DaemonError:
    """What it means that a call of a verification failed; the message has the code of the call."""
    reason = f"{error.code}: {error.message}"
    if error.code == "http_404":
        return _changed(brain, reason, excerpt=error.body)
    # Nobody knows what the index is now, and nothing is said of what was verified before.
    return IndexUnansweredError(
        f"brain {brain!r} could not be verified: {reason}",
        code="brain_changed",
        hint="see the daemon's log; --timeout allows it more time",
        excerpt=error.body,
    )


def _changed(
    brain: str, reason: str, *, code: str = "brain_changed", excerpt: str = ""
) -> IndexChangedError:
    return IndexChangedError(
        f"brain {brain!r} changed during the run: {reason}",
        code=code,
        hint=_SEE_BRAIN,
        excerpt=excerpt,
    )
