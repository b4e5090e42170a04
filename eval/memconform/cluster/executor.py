"""Has the shards of a command done on a Dask cluster, each once, and keeps what comes back.

Dask schedules: it gives a shard to a worker that is free, and to another one if that worker is
lost. Here is what it cannot know: which failures are those of a machine, and what was measured.
"""

import asyncio
import json
import logging
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import dask.config
from distributed import Client, Event, Future, KilledWorker, LocalCluster, Variable, as_completed
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError

from memconform.cluster.address import ClusterAddress
from memconform.cluster.relay import CallServer, served_calls
from memconform.cluster.task import (
    Bundle,
    Files,
    ShardResult,
    ShardTask,
    UnfitWorkerError,
    drop_abandoned,
    is_journal,
    journals,
    measure,
    shard_key,
    write_files,
)
from memconform.datasets.sharding import Shard
from memconform.errors import DaemonError, ExitCode, MemconformError
from memconform.storage.sink import replacing
from memconform.storage.temporary import remove_folder, temporary_folder

_DONE: Final = "shard.json"
_FOLDER: Final = "memconform-dask-"
_POLL_SECONDS: Final = 2.0
_SCHEDULER_SECONDS: Final = 30
"""How long a scheduler may take to answer, also one that is started anew."""
_STOP_SECONDS: Final = 20
_RESTARTS: Final = 5
_LOST: Final = (CommClosedError, FutureCancelledError, OSError, TimeoutError)
"""What is raised if the scheduler does not answer any more."""
_MEASURED: Final = (int(ExitCode.OK), int(ExitCode.FAILED), int(ExitCode.INCONCLUSIVE))
"""How a shard ends that has measured everything; the next command does any other one again."""


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@asynccontextmanager
async def connected(address: ClusterAddress) -> AsyncIterator[Client]:
    """A client of the cluster; workers of this machine are started, and ended with it.

    Raises:
        DaemonError: if the scheduler does not answer (`cluster_unreachable`).
    """
    # Whatever happens to the scheduler is reported once, by us.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if address.is_local:
        drop_abandoned(_FOLDER)
        with temporary_folder(f"{_FOLDER}{os.getpid()}-") as folder:
            # Where it keeps its locks.
            dask.config.set(temporary_directory=str(folder))
            with _interrupts_ignored():
                # Workers inherit it: a Ctrl-C in the terminal is this program's to handle.
                cluster = await LocalCluster(
                    n_workers=address.workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    memory_limit=0,
                    local_directory=str(folder),
                    silence_logs=50,
                    asynchronous=True,
                )
            async with cluster, Client(cluster, asynchronous=True) as client:
                yield client
        return
    try:
        client = await Client(
            f"tcp://{address.scheduler}", asynchronous=True, timeout=_SCHEDULER_SECONDS
        )
    except (OSError, TimeoutError) as error:
        raise DaemonError(
            f"no scheduler of Dask answers at {address.scheduler}: {error}",
            code="cluster_unreachable",
            hint="start one with `dask scheduler`, and workers with `dask worker --nthreads 1`",
        ) from error
    try:
        yield client
    finally:
        with suppress(OSError, TimeoutError):
            await client.close()


class ShardFolders:
    """What came back of each shard: one folder each, below that of the command."""

    def __init__(self, folder: Path, of: int) -> None:
        self._folder = folder / "shards"
        self._of = of

    def path(self, shard: Shard) -> Path:
        return self._folder / f"{shard.number:0{len(str(self._of))}}-of-{self._of}"

    def exit_code(self, shard: Shard) -> int | None:
        """How a shard ended; None if it has not."""
        with suppress(OSError, ValueError, KeyError):
            return int(json.loads((self.path(shard) / _DONE).read_text())["exit_code"])
        return None

    def reopen(self, shard: Shard) -> None:
        """Have a shard done again that has not measured everything, from what was journalled.

        Raises:
            ResultsError: if it cannot be written.
        """
        if self.exit_code(shard) not in (None, *_MEASURED):
            kept = self.journals(shard)
            remove_folder(self.path(shard))
            self.keep(shard, kept)

    def journals(self, shard: Shard) -> dict[str, bytes]:
        """What is known of a shard that has not ended."""
        return journals(self.path(shard))

    def keep(self, shard: Shard, files: Files) -> None:
        """Keep files of a shard; raises as `write_files`."""
        write_files(self.path(shard), files)

    def end(self, shard: Shard, result: ShardResult) -> None:
        """Keep what a shard has measured, and that it is done; raises as `write_files`."""
        self.keep(shard, result.files)
        with replacing(self.path(shard) / _DONE) as target:
            target.write_json({"exit_code": result.exit_code, "log": result.log})

    def log(self, shard: Shard) -> str:
        """The end of what a shard printed; empty if it has not ended."""
        with suppress(OSError, ValueError, KeyError):
            return str(json.loads((self.path(shard) / _DONE).read_text())["log"])
        return ""


class ShardExecutor:
    """Has shards done until each has ended."""

    def __init__(
        self,
        address: ClusterAddress,
        folders: ShardFolders,
        make_task: Callable[[Shard, str], ShardTask],
        bundle: Bundle | None,
        *,
        server: CallServer,
        originals: Mapping[str, str],
        report: Callable[[str], None],
    ) -> None:
        """
        Args:
            address: of the cluster.
            folders: what came back, also of an earlier command.
            make_task: makes the task of a shard, given the name of the run.
            bundle: the inputs; None if workers see the same files.
            server: answers the calls of the shards' commands.
            originals: by their names in the bundle, the paths that results should have of them.
            report: receives lines for the user.
        """
        self._address = address
        self._folders = folders
        self._make_task = make_task
        self._bundle = bundle
        self._server = server
        self._originals = originals
        self._report = report
        self._run = ""
        self._writing = asyncio.Lock()
        """Held while a shard's folder is written: what is polled is older than its result."""
        self._unfit: dict[Shard, dict[str, str]] = {}
        """By shard, workers that cannot do it, and why."""
        self._bound: dict[Shard, tuple[Future[Any], frozenset[str]]] = {}
        """By shard, the workers that it was given to because others cannot do it."""
        self._unbound = set[Shard]()
        """Shards whose future was cancelled because all of those workers have left."""
        self._submitted = count()

    async def run(self, shards: Sequence[Shard]) -> None:
        """Have shards done; each that ends is kept at once.

        If the iterating task is cancelled, the workers stop, and what was journalled is kept.

        Raises:
            DaemonError: if no worker can do a shard (`no_fit_worker`), workers die of it
                (`workers_lost`), or the scheduler does not answer any more (`cluster_unreachable`).
        """
        for shard in shards:
            self._folders.reopen(shard)
        left, restarts = len(shards), 0
        while restarts < _RESTARTS:
            pending = [shard for shard in shards if self._folders.exit_code(shard) is None]
            if not pending:
                return
            if len(pending) < left:
                left, restarts = len(pending), 0
            try:
                async with connected(self._address) as client:
                    await self._session(client, pending)
            except _LOST as error:
                self._report(f"the scheduler, or what it had, is lost: {error}; trying again")
                restarts += 1
            else:
                return
        raise DaemonError(
            f"the scheduler was lost {_RESTARTS} times, and no shard ended in between",
            code="cluster_unreachable",
            hint="what was measured is kept; the same command continues",
        )

    async def _session(self, client: Client, pending: Sequence[Shard]) -> None:
        # Another name than before: a scheduler that is back may remember who was to stop.
        self._run = secrets.token_hex(4)
        if not await client.nthreads():
            self._report("the cluster has no worker yet; waiting for one")
            while not await client.nthreads():  # noqa: ASYNC110 - Dask has no event for it
                await asyncio.sleep(_POLL_SECONDS)
        bundle = None
        if self._bundle is not None:
            # Once to each worker, whatever the number of its shards. To all: with the only one that
            # has it the scheduler would lose all shards, too.
            bundle = await client.scatter(self._bundle, hash=False, broadcast=True)
        progress: dict[Shard, Variable] = {}
        for shard in pending:
            progress[shard] = Variable(self._key(shard), client=client)
            await progress[shard].set(self._folders.journals(shard))
        async with served_calls(client, self._run, self._server):
            await self._shards(client, bundle, progress)

    async def _shards(
        self, client: Client, bundle: "Future[Any] | None", progress: dict[Shard, Variable]
    ) -> None:
        """Have shards done until each has ended."""
        futures = {await self._submit(client, shard, bundle): shard for shard in progress}
        poll = asyncio.create_task(self._keep_progress(client, progress))
        done = as_completed(futures)
        try:
            async for future in done:
                shard = futures.pop(future)
                again = await self._collect(client, shard, future, bundle)
                if again is not None:
                    futures[again] = shard
                    done.add(again)
                else:
                    progress.pop(shard).delete()
        except _LOST:
            # Nobody is there to be told; workers end what they do when they have lost it, too.
            raise
        except BaseException:
            # Also where one shard cannot be done: nobody would see what the others still do.
            await self._stop(client, progress, futures)
            raise
        finally:
            poll.cancel()
            await asyncio.gather(poll, return_exceptions=True)

    def _key(self, shard: Shard) -> str:
        return shard_key(self._run, shard)

    async def _submit(
        self, client: Client, shard: Shard, bundle: "Future[Any] | None"
    ) -> "Future[Any]":
        unfit = self._unfit.get(shard, {})
        workers = None
        if unfit:
            # As the scheduler knows them now: what the client knows is some seconds old.
            known = await client.nthreads()
            workers = [address for address in known if address not in unfit]
            if not workers:
                reasons = "; ".join(f"{worker}: {reason}" for worker, reason in unfit.items())
                raise DaemonError(
                    f"no worker can do shard {shard}",
                    code="no_fit_worker",
                    hint="mend a worker, or start another one; the same command continues. To begin"
                    f" the shard anew, delete {self._folders.path(shard)}",
                    excerpt=reasons,
                )
        task = self._make_task(shard, self._run)
        key = f"{task.key}-{next(self._submitted)}"
        future = client.submit(measure, task, bundle, key=key, pure=False, workers=workers)
        if workers:
            self._bound[shard] = (future, frozenset(workers))
        return future

    async def _collect(
        self, client: Client, shard: Shard, future: "Future[Any]", bundle: "Future[Any] | None"
    ) -> "Future[Any] | None":
        """Keep the result of a future; returns the next one if the shard must be done elsewhere."""
        try:
            result: ShardResult = await future
        except UnfitWorkerError as error:
            self._report(f"shard {shard} is done elsewhere than on {error.worker}: {error.reason}")
            self._unfit.setdefault(shard, {})[error.worker] = error.reason
            return await self._submit(client, shard, bundle)
        except FutureCancelledError:
            if shard not in self._unbound:
                raise
            self._unbound.discard(shard)
            return await self._submit(client, shard, bundle)
        except KilledWorker as error:
            raise DaemonError(
                f"workers died of shard {shard}: {error}",
                code="workers_lost",
                hint="see the workers' logs: memory is a likely cause; the same command continues",
            ) from error
        if result.exit_code is None:
            return None
        files = {
            name: self._with_originals(content, result.inputs)
            for name, content in result.files.items()
        }
        async with self._writing:
            await asyncio.to_thread(self._folders.end, shard, replace(result, files=files))
        self._report(f"shard {shard} ended with exit code {result.exit_code}")
        return None

    def _with_originals(self, content: bytes, inputs: str) -> bytes:
        """A file with the paths of this machine: later commands look for data where it says."""
        for name, original in self._originals.items() if inputs else ():
            there, here = (json.dumps(path)[1:-1] for path in (f"{inputs}/{name}", original))
            content = content.replace(there.encode(), here.encode())
        return content

    async def _keep_progress(self, client: Client, progress: dict[Shard, Variable]) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            with suppress(OSError, TimeoutError):
                await self._unbind(client, progress)
            try:
                await self._fetch(progress)
            except MemconformError as error:
                self._report(f"what the workers have measured cannot be kept: {error.message}")
                return

    async def _unbind(self, client: Client, progress: Mapping[Shard, Variable]) -> None:
        """Have shards given to new workers whose own ones have left."""
        bound = {shard: self._bound[shard] for shard in progress if shard in self._bound}
        if not bound:
            return
        known = set(await client.nthreads())
        for shard, (future, workers) in bound.items():
            if not workers & known and known - self._unfit[shard].keys():
                self._unbound.add(shard)
                del self._bound[shard]
                await future.cancel()

    async def _fetch(self, progress: dict[Shard, Variable]) -> None:
        for shard, variable in list(progress.items()):
            with suppress(OSError, TimeoutError):
                files = await variable.get(timeout=_SCHEDULER_SECONDS)
                async with self._writing:
                    if files and self._folders.exit_code(shard) is None:
                        await asyncio.to_thread(self._folders.keep, shard, files)

    async def _stop(
        self, client: Client, progress: dict[Shard, Variable], futures: Mapping[Future[Any], Shard]
    ) -> None:
        """Have the workers stop, keep what they had measured, and leave nothing there."""
        with suppress(OSError, TimeoutError, CommClosedError, FutureCancelledError):
            async with asyncio.timeout(_STOP_SECONDS):
                for shard in progress:
                    await Event(f"stop-{self._key(shard)}", client=client).set()
                # Those that have not begun end as soon as they do.
                ended = await asyncio.gather(*futures, return_exceptions=True)
            for shard, result in zip(futures.values(), ended, strict=True):
                if isinstance(result, ShardResult) and self._folders.exit_code(shard) is None:
                    kept = {n: c for n, c in result.files.items() if is_journal(n)}
                    async with self._writing:
                        await asyncio.to_thread(self._folders.keep, shard, kept)
        with suppress(OSError, TimeoutError, CommClosedError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self._fetch(progress)
                for variable in progress.values():
                    variable.delete()
