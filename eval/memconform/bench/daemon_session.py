"""A started daemon with a client of its own, watched until it is stopped."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memconform.client.client import ContractClient
from memconform.client.timing import Timeouts
from memconform.contract.core import Version
from memconform.contract.wire import RankBy
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.limits import explained
from memconform.daemons.runner import Daemon, Launch, SdkRunner
from memconform.daemons.upstream import served
from memconform.errors import DaemonError
from memconform.ingest.monitor import DaemonMonitor
from memconform.runs.preflight import read_version
from memconform.storage.folders import DaemonFolder


@dataclass(frozen=True, slots=True)
class DaemonSession:
    """A daemon that is ready."""

    launch: Launch
    daemon: Daemon
    client: ContractClient
    monitor: DaemonMonitor
    version: Version | None


@asynccontextmanager
async def daemon_session(
    runner: SdkRunner,
    launch: Launch,
    upstream: UpstreamKind,
    *,
    connections: int,
    timeouts: Timeouts,
    headers: Mapping[str, str],
    rank_by: RankBy | None = None,
) -> AsyncIterator[DaemonSession]:
    """Start a daemon in a new folder, and stop it on exit; its log stays, and its state does not.

    Raises:
        DaemonError: if it does not start, or leaves a process behind. One that is raised in the
            block, too, is `explained`.
        ResultsError: if the folder exists, or cannot be created (`results_unwritable`).
    """
    folder = DaemonFolder(launch.folder)
    try:
        async with (
            served(runner, launch, upstream) as daemon,
            ContractClient(
                daemon.base_url,
                timeouts=timeouts,
                connections=connections,
                headers=headers,
                dialect=runner.dialect,
                rank_by=rank_by,
            ) as client,
        ):
            version = await read_version(client)
            monitor = DaemonMonitor(daemon)
            try:
                yield DaemonSession(launch, daemon, client, monitor, version)
            finally:
                monitor.close()
    except DaemonError as error:
        # Now: without the daemon's state, the disk is no longer full.
        cause = explained(error, launch.folder)
        if cause is error:
            raise
        raise cause from error
    finally:
        folder.redact_log()
        folder.drop_state()
