"""A good SDK with one thing broken: it comes in by the same door as a good one."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from memconform.daemons.manifest import Env, Serve
from memconform.daemons.manifest_runner import ManagedDaemon, ManifestRunner
from memconform.daemons.process import DaemonProcess, finish
from memconform.daemons.runner import Daemon, Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import DaemonError, UsageError
from memconform.fakes.mutation import Mutation, SourceEdit

_PROXY = ("{python}", "-m", "memconform.fakes.proxy", "--addr", "{addr}", "--root", "{state_dir}")
_SOURCE_PATCH = Path(__file__).with_name("source_patch")
_START_SECONDS = 10.0


def mutant_of(runner: SdkRunner, mutation: Mutation) -> "MutantSdk":
    """`runner` with `mutation`; an empty one breaks nothing, and yet is served by way of a proxy.

    Raises:
        UsageError: where this SDK cannot be broken so.
    """
    if isinstance(runner, ManifestRunner):
        return MutantRunner(runner, mutation)
    if isinstance(runner, UrlRunner) and urlsplit(runner.url).scheme == "http":
        if mutation != Mutation() and not mutation.is_of_exchanges:
            raise UsageError(
                f"{runner.name} is not ours to start", code="not_mutable", hint="use its sdk.toml"
            )
        return MutantUrlRunner(runner, mutation)
    raise UsageError(
        f"{runner.name} cannot be put behind a proxy",
        code="not_mutable",
        hint="mutants are made of what an sdk.toml describes, and of url:http://…",
    )


class MutantRunner(ManifestRunner):
    def __init__(self, runner: ManifestRunner, mutation: Mutation) -> None:
        super().__init__(runner.manifest, runner.folder)
        self._mutation = mutation
        # Not the manifest's own, for what is built does not depend on them.
        if mutation.wants_proxy:
            self.serving = _behind_proxy(self.serving)
        if mutation.source:
            self.env = _patched(self.env, mutation.source)

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[ManagedDaemon]:
        await asyncio.to_thread(self.become, self._mutation, launch.folder)
        async with super().serve(launch) as daemon:
            yield daemon

    def become(self, mutation: Mutation, folder: Path) -> None:
        """Have the proxy of a launch in `folder` break this from its next request on."""
        self._mutation = mutation
        _write(mutation, folder)


def _write(mutation: Mutation, folder: Path) -> None:
    text = mutation.model_dump_json(by_alias=True, exclude_unset=True, exclude={"source"})
    (folder / "mutation.json").write_text(text)


def _behind_proxy(serve: Serve) -> Serve:
    # The daemon's own address: any, or one that the proxy chooses for it.
    port = "0" if serve.port == "announced" else "@port@"
    own = {"{addr}": f"127.0.0.1:{port}", "{port}": port, "{host}": "127.0.0.1"}
    argv = [*_PROXY, "--mutation", "{state_dir}/../mutation.json", "--"]
    for part in serve.argv:
        for name, value in own.items():
            part = part.replace(name, value)  # noqa: PLW2901 - one text, changed in turn
        argv.append(part)
    return serve.model_copy(update={"argv": argv, "port": "announced"})


def _patched(env: Env, source: Sequence[SourceEdit]) -> Env:
    edits = json.dumps([edit.model_dump() for edit in source])
    patched = {"PYTHONPATH": str(_SOURCE_PATCH), "MEMCONFORM_SOURCE": edits}
    return env.model_copy(update={"set": env.set | patched})


class MutantUrlRunner(SdkRunner):
    """A daemon that somebody else has started, behind a proxy of ours."""

    managed = False

    def __init__(self, runner: UrlRunner, mutation: Mutation) -> None:
        self._runner = runner
        self._mutation = mutation
        self.name = runner.name
        self.profiles, self.modes = runner.profiles, runner.modes

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[Daemon]:
        await asyncio.to_thread(self.become, self._mutation, launch.folder)
        async with self._runner.serve(launch) as daemon:
            parts = urlsplit(daemon.base_url)
            argv = [
                part.format(python=sys.executable, addr="127.0.0.1:0", state_dir=launch.folder)
                for part in _PROXY
            ]
            argv += ["--mutation", str(launch.folder / "mutation.json")]
            argv += ["--to", f"{parts.hostname}:{parts.port or 80}"]
            log = launch.folder / "proxy.log"
            process = await DaemonProcess.start(
                argv, env=dict(os.environ), cwd=launch.folder, log=log
            )
            try:
                daemon.base_url = await _announced(process)
                yield daemon
            finally:
                await finish(_ended(process))

    def become(self, mutation: Mutation, folder: Path) -> None:
        """Have the proxy of a launch in `folder` break this from its next request on."""
        self._mutation = mutation
        _write(mutation, folder)


MutantSdk = MutantRunner | MutantUrlRunner


async def _ended(process: DaemonProcess) -> None:
    await process.stop()


async def _announced(process: DaemonProcess) -> str:
    """Where the proxy listens; raises DaemonError where it does not say so in time."""
    for _ in range(int(_START_SECONDS / 0.02)):
        line, end, _ = process.output(0).decode().rpartition("\n")
        if end:
            return line.rpartition(" ")[2]
        if not process.alive:
            break
        await asyncio.sleep(0.02)
    raise DaemonError(
        "the proxy does not start", code="proxy_failed", excerpt=process.tail(), hint="report it"
    )
