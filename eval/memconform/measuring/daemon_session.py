"""A started daemon with a client of its own, watched until it is stopped."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memconform.client.client import ContractClient
from memconform.client.failures import CallError
from memconform.client.timings import Timeouts
from memconform.contract.core import Version
from memconform.contract.wire import CONTRACT_VERSION, RankBy
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.limits import explained
from memconform.daemons.sdk_runner import Daemon, Launch, SdkRunner
from memconform.daemons.upstream import served
from memconform.errors import DaemonError
from memconform.ingest.monitor import DaemonMonitor
from memconform.storage.folders import DaemonFolder


@dataclass(slots=True)
class DaemonSession:
    """A daemon that is ready, whatever it answers."""

    launch: Launch
    daemon: Daemon
    client: ContractClient
    monitor: DaemonMonitor
    version: Version | None = None
    """None if it has no such route, and before it was read."""
    _is_read: bool = field(default=False, init=False)

    async def require_version(self) -> None:
        """Read the daemon's version, unless that was done; raises as `read_version`."""
        if not self._is_read:
            self.version = await read_version(self.client)
            self._is_read = True


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
    folder: DaemonFolder | None = None,
) -> AsyncIterator[DaemonSession]:
    """Start a daemon, and stop it on exit; its log stays, and its state does not.

    `folder` is the launch's folder if it exists already; None creates it.

    Raises:
        DaemonError: if it does not start, or leaves a process behind. One that is raised in the
            block, too, is `explained`.
        ResultsError: if the folder exists, or cannot be created (`results_unwritable`).
    """
    folder = folder or DaemonFolder(launch.folder)
    try:
        async with (
            served(runner, launch, upstream) as daemon,
            ContractClient(
                daemon.base_url,
                timeouts=timeouts.at_least(runner.call_timeout_s),
                connections=connections,
                headers=headers,
                dialect=runner.dialect,
                rank_by=rank_by,
            ) as client,
        ):
            monitor = DaemonMonitor(daemon)
            try:
                yield DaemonSession(launch, daemon, client, monitor)
            finally:
                monitor.close()
    except DaemonError as error:
        # Now: without the daemon's state, the disk is no longer full.
        cause = explained(error, launch.folder, managed=runner.managed)
        if cause is error:
            raise
        raise cause from error
    finally:
        # In this order: the state may fill the disk, and masking writes a copy of the log.
        folder.drop_state()
        folder.redact_log()


async def read_version(client: ContractClient) -> Version | None:
    """Read the daemon's version; None if its dialect has no such route.

    Raises:
        DaemonError: `no_version` if it cannot be read, `contract_version` for another contract.
    """
    try:
        version = await client.version()
    except CallError as error:
        raise DaemonError(
            f"cannot read the daemon's version: {error.message}",
            code="no_version",
            hint="GET /version must answer name, version and contract; for a daemon without it, set"
            " [dialect.routes] version = false; for one that already runs, url:…,dialect=NAME",
            excerpt=error.body,
        ) from error
    if version is not None and version.contract not in (None, CONTRACT_VERSION):
        raise DaemonError(
            f"the daemon implements contract {version.contract!r}, not {CONTRACT_VERSION!r}",
            code="contract_version",
            hint="use a version of memconform for that contract",
        )
    return version


def daemon_identity(runner: SdkRunner, upstream: UpstreamKind, *more: str) -> str:
    """A digest of what affects a daemon's rankings besides what it is asked."""
    key = (runner.build_hash(), upstream, sorted(runner.variables().items()), *more)
    return hashlib.sha256(repr(key).encode()).hexdigest()
