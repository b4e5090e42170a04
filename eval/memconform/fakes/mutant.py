"""Wraps a correct SDK so that its daemon has one fault; implements the same SdkRunner protocol."""

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
    """Wrap `runner` with `mutation`; an empty mutation breaks nothing but still adds the proxy.

    Raises:
        UsageError: `not_mutable` if this SDK cannot be broken in this way.
    """
    if isinstance(runner, ManifestRunner):
        return MutantRunner(runner, mutation)
    if isinstance(runner, UrlRunner) and urlsplit(runner.url).scheme == "http":
        if mutation != Mutation() and not mutation.is_of_exchanges:
            raise UsageError(
                f"{runner.name}: this mutation needs a daemon that the harness starts",
                code="not_mutable",
                hint="use its sdk.toml",
            )
        return MutantUrlRunner(runner, mutation)
    raise UsageError(
        f"{runner.name} cannot run behind a proxy",
        code="not_mutable",
        hint="use an SDK with an sdk.toml, or url:http://…",
    )


class MutantRunner(ManifestRunner):
    """Starts an SDK's daemon with a mutation of its source, its environment or its traffic."""

    def __init__(self, runner: ManifestRunner, mutation: Mutation) -> None:
        super().__init__(runner.manifest, runner.folder)
        self._mutation = mutation
        # Changes the runner, not its manifest, so that a mutant shares the build of the good SDK.
        if mutation.wants_proxy:
            self.serving = _behind_proxy(self.serving)
        if mutation.source:
            self.env = _with_patches(self.env, mutation.source)

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
    # The daemon's address behind the proxy: any port, or one that the proxy chooses.
    port = "0" if serve.port == "announced" else "@port@"
    address = {"{addr}": f"127.0.0.1:{port}", "{port}": port, "{host}": "127.0.0.1"}
    argv = [*_PROXY, "--mutation", "{state_dir}/../mutation.json", "--"]
    for part in serve.argv:
        for name, value in address.items():
            part = part.replace(name, value)  # noqa: PLW2901 - successive replacements in one text
        argv.append(part)
    return serve.model_copy(update={"argv": argv, "port": "announced"})


def _with_patches(env: Env, source: Sequence[SourceEdit]) -> Env:
    edits = json.dumps([edit.model_dump() for edit in source])
    patched = {"PYTHONPATH": str(_SOURCE_PATCH), "MEMCONFORM_SOURCE": edits}
    return env.model_copy(update={"set": env.set | patched})


class MutantUrlRunner(SdkRunner):
    """Runs the proxy in front of a daemon that the user has started."""

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
                daemon.base_url = await _read_address(process)
                yield daemon
            finally:
                await finish(_stop(process))

    def become(self, mutation: Mutation, folder: Path) -> None:
        """Have the proxy of a launch in `folder` break this from its next request on."""
        self._mutation = mutation
        _write(mutation, folder)


MutantSdk = MutantRunner | MutantUrlRunner


async def _stop(process: DaemonProcess) -> None:
    await process.stop()


async def _read_address(process: DaemonProcess) -> str:
    """Read the proxy's address; raises DaemonError if it does not announce one in time."""
    for _ in range(int(_START_SECONDS / 0.02)):
        line, end, _ = process.output(0).decode().rpartition("\n")
        if end:
            return line.rpartition(" ")[2]
        if not process.alive:
            break
        await asyncio.sleep(0.02)
    raise DaemonError(
        "the proxy did not start", code="proxy_failed", excerpt=process.tail(), hint="report a bug"
    )
