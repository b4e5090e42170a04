"""Starts the scripted upstream, through the same interface as any daemon."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from memconform.contract.wire import Profile
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.manifest import Capabilities, Env, Manifest, Serve
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import Resources
from memconform.daemons.sdk_runner import Daemon, Launch, RestartableDaemon, SdkRunner


@cache
def _manifest() -> Manifest:
    """How it starts; built on use, because few runs have it and its schema takes a while."""
    return Manifest(
        name="upstream",
        language="python",
        serve=Serve(
            argv=["{python}", "-m", "memconform.upstream", "{host}", "{port}"], port="announced"
        ),
        # Where it caches vectors, and where the weights of a model are.
        env=Env.model_validate({"pass": ["MEMCONFORM_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME"]}),
        # A manifest must claim something; nobody tests the upstream for it.
        capabilities=Capabilities(profiles=[Profile.CORE], modes=["auto"]),
    )


@asynccontextmanager
async def scripted_upstream(folder: Path, run_id: str) -> AsyncIterator[Daemon]:
    """Run an upstream until the block is left; its log goes to `folder`.

    Raises:
        DaemonError: if it does not start.
    """
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    runner = ManifestRunner(_manifest(), folder)
    launch = Launch(run_id=f"{run_id}-upstream", folder=folder)
    async with runner.serve(launch) as upstream:
        yield upstream


class _DaemonWithUpstream:
    """A daemon that counts as dead once its upstream is, because its answers no longer count."""

    def __init__(self, daemon: Daemon, upstream: Daemon) -> None:
        self.base_url = daemon.base_url
        self.ready_ms = daemon.ready_ms
        self.upstream_url = upstream.base_url
        self._daemon = daemon
        self._upstream = upstream
        self._ended: Daemon = daemon

    @property
    def process(self) -> DaemonProcess | None:
        return self._daemon.process

    @property
    def inner(self) -> Daemon:
        """The daemon itself."""
        return self._daemon

    async def wait_exit(self) -> str:
        daemon_exit = asyncio.ensure_future(self._daemon.wait_exit())
        upstream_exit = asyncio.ensure_future(self._upstream.wait_exit())
        try:
            await asyncio.wait({daemon_exit, upstream_exit}, return_when=asyncio.FIRST_COMPLETED)
            if daemon_exit.done():
                return daemon_exit.result()
            self._ended = self._upstream
            return f"its upstream ended, {upstream_exit.result()}"
        finally:
            daemon_exit.cancel()
            upstream_exit.cancel()

    def log_tail(self) -> str:
        return self._ended.log_tail()

    def resources(self) -> Resources | None:
        return self._daemon.resources()


def restartable(daemon: Daemon) -> RestartableDaemon | None:
    """The daemon, if it can be restarted on its state; else None."""
    inner = daemon.inner if isinstance(daemon, _DaemonWithUpstream) else daemon
    return inner if isinstance(inner, RestartableDaemon) else None


def upstream_of(daemon: Daemon) -> str | None:
    """The address of the scripted upstream that `served` started for a daemon, if any."""
    return daemon.upstream_url if isinstance(daemon, _DaemonWithUpstream) else None


@asynccontextmanager
async def served(
    runner: SdkRunner, launch: Launch, upstream: UpstreamKind
) -> AsyncIterator[Daemon]:
    """Serve a daemon, preceded by the scripted upstream if `upstream` asks for it.

    Raises:
        DaemonError: if either does not become ready.
    """
    if upstream != "scripted":
        async with runner.serve(launch) as daemon:
            yield daemon
        return
    async with (
        scripted_upstream(launch.folder / "upstream", launch.run_id) as scripted,
        runner.serve(replace(launch, upstream=scripted.base_url)) as daemon,
    ):
        yield _DaemonWithUpstream(daemon, scripted)
