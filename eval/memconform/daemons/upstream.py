"""Starts the harness's own upstream, through the same door as every daemon."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from memconform.contract.wire import Profile
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.manifest import Capabilities, Env, Manifest, Serve
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.resources import Resources
from memconform.daemons.runner import Daemon, Launch, SdkRunner

_MANIFEST = Manifest(
    name="upstream",
    language="python",
    serve=Serve(
        argv=["{python}", "-m", "memconform.upstream", "{host}", "{port}"], port="announced"
    ),
    # Where it keeps the vectors that its model made.
    env=Env.model_validate({"pass": ["MEMCONFORM_CACHE", "XDG_CACHE_HOME"]}),
    # A manifest must claim something; nobody asks the upstream for it.
    capabilities=Capabilities(profiles=[Profile.CORE], modes=["auto"]),
)


@asynccontextmanager
async def scripted_upstream(folder: Path, run_id: str) -> AsyncIterator[Daemon]:
    """An upstream that runs until the block is left; `folder` takes its log.

    Raises:
        DaemonError: where it does not start.
    """
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    runner = ManifestRunner(_MANIFEST, folder)
    launch = Launch(run_id=f"{run_id}-upstream", folder=folder)
    async with runner.serve(launch) as upstream:
        yield upstream


class _WithUpstream:
    """A daemon that counts as dead when its upstream is: what it answers then is no measurement."""

    def __init__(self, daemon: Daemon, upstream: Daemon) -> None:
        self.base_url = daemon.base_url
        self.ready_ms = daemon.ready_ms
        self.process = daemon.process
        self.called = upstream.base_url
        self._daemon = daemon
        self._upstream = upstream
        self._ended: Daemon = daemon

    async def wait_exit(self) -> str:
        own = asyncio.ensure_future(self._daemon.wait_exit())
        others = asyncio.ensure_future(self._upstream.wait_exit())
        try:
            await asyncio.wait({own, others}, return_when=asyncio.FIRST_COMPLETED)
            if own.done():
                return own.result()
            self._ended = self._upstream
            return f"its upstream ended, {others.result()}"
        finally:
            own.cancel()
            others.cancel()

    def log_tail(self) -> str:
        return self._ended.log_tail()

    def resources(self) -> Resources | None:
        return self._daemon.resources()


def upstream_of(daemon: Daemon) -> str | None:
    """The address of the scripted upstream that a daemon calls, where `served` started one."""
    return daemon.called if isinstance(daemon, _WithUpstream) else None


@asynccontextmanager
async def served(
    runner: SdkRunner, launch: Launch, upstream: UpstreamKind
) -> AsyncIterator[Daemon]:
    """The daemon, and before it, where it is to call that, the scripted upstream."""
    if upstream != "scripted":
        async with runner.serve(launch) as daemon:
            yield daemon
        return
    async with (
        scripted_upstream(launch.folder / "upstream", launch.run_id) as called,
        runner.serve(replace(launch, upstream=called.base_url)) as daemon,
    ):
        yield _WithUpstream(daemon, called)
