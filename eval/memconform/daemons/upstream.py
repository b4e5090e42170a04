"""Starts the harness's own upstream, through the same door as every daemon."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from memconform.contract.wire import Profile
from memconform.daemons.manifest import Capabilities, Manifest, Serve
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.runner import Daemon, Launch, SdkRunner, UpstreamKind

_MANIFEST = Manifest(
    name="upstream",
    language="python",
    serve=Serve(
        argv=["{python}", "-m", "memconform.upstream", "{host}", "{port}"], port="announced"
    ),
    # A manifest must claim something; nobody asks the upstream for it.
    capabilities=Capabilities(profiles=[Profile.CORE], modes=["auto"]),
)


@asynccontextmanager
async def scripted_upstream(folder: Path, run_id: str) -> AsyncIterator[str]:
    """The address of an upstream that runs until the block is left; `folder` takes its log.

    Raises:
        DaemonError: where it does not start.
    """
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    runner = ManifestRunner(_MANIFEST, folder)
    launch = Launch(run_id=f"{run_id}-upstream", folder=folder)
    async with runner.serve(launch) as upstream:
        yield upstream.base_url


@asynccontextmanager
async def served(
    runner: SdkRunner, launch: Launch, upstream: UpstreamKind
) -> AsyncIterator[Daemon]:
    """The daemon, and before it, where it is to call that, the scripted upstream."""
    async with AsyncExitStack() as stack:
        if upstream == "scripted":
            starting = scripted_upstream(launch.folder / "upstream", launch.run_id)
            launch = replace(launch, upstream=await stack.enter_async_context(starting))
        yield await stack.enter_async_context(runner.serve(launch))
