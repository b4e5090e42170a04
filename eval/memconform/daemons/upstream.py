"""Starts the harness's own upstream, through the same door as every daemon."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memconform.contract.wire import Profile
from memconform.daemons.manifest import Capabilities, Manifest, Serve
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.runner import Launch

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
