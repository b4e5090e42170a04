"""Whether an index that is being asked is still the one that was seeded."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from memconform.client.client import ContractClient
from memconform.client.failures import CallError, ContractViolatedError
from memconform.contract.core import Brain
from memconform.daemons.resources import process_tree
from memconform.daemons.runner import Daemon
from memconform.errors import DaemonError
from memconform.ingest.proof import AGAIN
from memconform.ingest.seeding import Seeded, settled

DOUBTFUL = frozenset({"out_of_step", "connection_broken", "unreachable"})
"""Codes of failed calls after which the whole index is proven again: a part of the daemon may have
restarted without what it knew, or what it sent may belong to other requests."""
_DRAWN = 16
"""Documents that each verification between questions asks for, besides those it is given."""
_CHEAP = 100
"""So many documents are all proven each time: it takes one query."""
_TRIES = 3
_RETRY_SECONDS = 0.2
"""A daemon that is busy for a moment has lost nothing."""


class IndexDoubtError(Exception):
    """What was found since the last verification is no measurement; it may be whole again."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class IndexChangedError(DaemonError):
    """The index is not the one that was seeded: what was found in it is no measurement."""


@dataclass(slots=True)
class IndexVerifier:
    """Looks at one brain between questions."""

    client: ContractClient
    daemon: Daemon
    counts: Brain
    """As they were when the first question was put."""
    seeded: Seeded | None
    """None for a brain that the harness did not fill: nothing is known of its documents."""
    run_id: str | None = None
    """What `/version` said at first."""
    proving: bool = True
    """Whether documents are asked for, which takes time; counts are read all the same."""
    _processes: frozenset[tuple[int, float]] = field(default=frozenset(), init=False)

    async def begin(self) -> None:
        """Note which processes serve."""
        self._processes = await asyncio.to_thread(self._tree)

    async def verify(self, paths: Collection[str] | None = None, *, full: bool = False) -> bool:
        """Hold the brain to what it was: counts, lease, processes, and documents drawn anew.

        Args:
            paths: documents that are asked for in any case, some of them as questions are; None
                where no question gives reason to.
            full: ask for as many as at the end of a run, and for the daemon's identity.

        Returns:
            Whether every document was asked for.

        Raises:
            IndexDoubtError: where the index was, or may have been, incomplete meanwhile.
            IndexChangedError: where it is another one, or can no longer be asked.
        """
        await self._retried(self._require_same_counts)
        replaced = await asyncio.to_thread(self._replaced)
        if full:
            await self._retried(self._require_same_run)
        if self.seeded is None or not self.proving:
            return False
        prover = self.seeded.prover
        full = full or replaced or len(self.seeded.documents) <= _CHEAP
        try:
            if full:
                await self._retried(lambda: prover.prove_again(paths or ()))
                self._processes = await asyncio.to_thread(self._tree)
            else:
                await self._retried(lambda: prover.prove_some(_DRAWN, paths or ()))
            if paths is not None:
                await self._retried(lambda: prover.prove_openly(paths))
        except DaemonError as error:
            if error.code != "not_searchable":
                raise
            raise IndexDoubtError(error.code, error.message) from error
        return len(self.seeded.documents) <= (AGAIN if full else _DRAWN)

    async def recover(self, paths: Collection[str] = ()) -> None:
        """Wait until nothing is pending, and prove the whole index again, `paths` openly.

        Raises:
            IndexChangedError: where it is not whole any more.
        """
        try:
            await settled(self.client, self.counts.brain_id)
            await self.verify(paths, full=True)
            if self.seeded is not None and self.proving:
                await self._retried(self.seeded.prover.prove_all)
        except IndexChangedError:
            raise
        except (IndexDoubtError, DaemonError) as error:
            raise _changed(self.counts.brain_id, error.message, code=error.code) from error
        except CallError as error:
            raise _changed(self.counts.brain_id, error.message) from error

    async def _require_same_counts(self) -> None:
        now = await self.client.brain(self.counts.brain_id)
        was = self.counts
        if now.pending:
            raise IndexDoubtError(
                "index_pending", f"{now.pending} documents became pending while the brain was asked"
            )
        if (now.documents, now.chunks, now.vectors) != (was.documents, was.chunks, was.vectors):
            raise _changed(
                was.brain_id,
                f"{was.documents} documents, {was.chunks} chunks, {was.vectors} vectors went in,"
                f" now there are {now.documents}, {now.chunks}, {now.vectors}",
            )
        leased = self.seeded is not None and self.seeded.record.leased
        if leased and now.description != was.description:
            raise _changed(was.brain_id, "somebody else has created it anew")

    async def _require_same_run(self) -> None:
        version = await self.client.version()
        if version.run_id != self.run_id:
            raise _changed(self.counts.brain_id, f"another daemon serves it, {version.run_id!r}")

    async def _retried(self, attempt: Callable[[], Awaitable[object]]) -> None:
        """Raises IndexChangedError where the daemon does not answer in several tries."""
        for left in reversed(range(_TRIES)):
            try:
                await attempt()
            except ContractViolatedError as error:
                raise IndexDoubtError(error.code, error.message) from error
            except CallError as error:
                if not left and error.code == "unreachable":
                    raise IndexChangedError(
                        f"nobody listens at {self.daemon.base_url} any more",
                        code="daemon_gone",
                        hint="its own log says more",
                    ) from error
                if not left or error.code == "http_404":
                    raise _changed(self.counts.brain_id, error.message) from error
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    def _tree(self) -> frozenset[tuple[int, float]]:
        # A runner of the user's own may hand out a daemon without one.
        served = getattr(self.daemon, "process", None)
        if served is None:
            return frozenset()
        found = []
        for process in process_tree(served.pid):
            with suppress(psutil.Error):
                found.append((process.pid, process.create_time()))
        return frozenset(found)

    def _replaced(self) -> bool:
        """Whether a process that served at first is gone: what it knew went with it."""
        return any(not _lives(pid, began) for pid, began in self._processes)


def _lives(pid: int, began: float) -> bool:
    try:
        process = psutil.Process(pid)
        return process.create_time() == began and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _changed(brain: str, why: str, *, code: str = "brain_changed") -> IndexChangedError:
    return IndexChangedError(
        f"brain {brain!r} changed while it was asked: {why}",
        code=code,
        hint="is another run using the same brain of the same daemon? did a part of it restart?",
    )
