"""Wraps a correct SDK so that its daemon has one fault; implements the same SdkRunner protocol."""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from memconform.conformance.mutation.mutation import Mutation, SourceEdit
from memconform.daemons.build import ensure_built
from memconform.daemons.manifest import Env, Manifest, Serve
from memconform.daemons.manifest_runner import ManagedDaemon, ManifestRunner
from memconform.daemons.ports import bracketed, loopback_host
from memconform.daemons.process import DaemonProcess
from memconform.daemons.sdk_runner import Daemon, Launch, Progress, SdkRunner
from memconform.daemons.tasks import finish
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import DaemonError, UsageError

_PROXY = (
    *("{python}", "-m", "memconform.conformance.mutation.proxy"),
    *("--addr", "{addr}", "--root", "{state_dir}"),
)
_SOURCE_PATCH = Path(__file__).with_name("source_patch")
_START_SECONDS = 10.0


def mutant_of(runner: SdkRunner, mutation: Mutation, builds: Path | None = None) -> "MutantSdk":
    """Wrap `runner` with `mutation`; an empty mutation breaks nothing but still adds the proxy.

    Args:
        runner: The unmodified SDK.
        mutation: What to break.
        builds: Holds patched sources and their build; needed for mutations of the source other
            than Python's. Runners of the same mutant share it.

    Raises:
        UsageError: `not_mutable` if this SDK cannot be broken in this way.
    """
    if isinstance(runner, ManifestRunner):
        return MutantRunner(runner, mutation, builds)
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

    def __init__(
        self, runner: ManifestRunner, mutation: Mutation, builds: Path | None = None
    ) -> None:
        super().__init__(runner.manifest, runner.folder)
        self._mutation = mutation
        self._builds = builds
        self._edits: Sequence[SourceEdit] = ()
        # Changes the runner, not its manifest, so that a mutant shares the build of the good SDK.
        if mutation.wants_proxy:
            self.serving = _behind_proxy(self.serving)
        if not mutation.source:
            return
        edits = mutation.source.get(runner.name)
        if edits is None:
            # An unmodified daemon must not pass for a mutant.
            raise UsageError(
                f"{runner.name}: this mutation is of the source of {', '.join(mutation.source)}",
                code="not_mutable",
                hint=f"give the mutant a `source` for {runner.name}",
            )
        if runner.language == "python":
            self.env = _with_patches(self.env, edits)
        else:
            self._edits = edits

    async def build(self, progress: Progress) -> None:
        if not self._edits:
            await super().build(progress)
            return
        if self._builds is None:
            raise ValueError("a patched source needs a folder to be built in")
        copy = await asyncio.to_thread(
            patched_copy, self.manifest, self.folder, self._edits, self._builds
        )
        self._build_dir = await ensure_built(
            self.manifest, copy, "patched", progress, cache=self._builds
        )
        self.folder = copy

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[ManagedDaemon]:
        await asyncio.to_thread(self.become, self._mutation, launch.folder)
        async with super().serve(launch) as daemon:
            yield daemon

    def become(self, mutation: Mutation, folder: Path) -> None:
        """Have the proxy of a launch in `folder` break this from its next request on."""
        self._mutation = mutation
        _write(mutation, folder)


def patched_copy(
    manifest: Manifest, folder: Path, edits: Sequence[SourceEdit], builds: Path
) -> Path:
    """Copy the inputs of an SDK's build into `builds`, unless there is a copy, and patch it.

    Raises:
        DaemonError: `not_mutable` if a text does not occur exactly once in its file, or if the
            manifest does not list the inputs of its build as files below its own folder.
    """
    copy = builds / "source"
    if copy.exists():
        return copy
    if manifest.build is None or any(glob.startswith("${") for glob in manifest.build.inputs):
        raise DaemonError(
            f"{manifest.name}: its source cannot be patched",
            code="not_mutable",
            hint="[build] inputs must name the sources, relative to the sdk.toml",
        )
    builds.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix="source-", dir=builds))
    for glob in manifest.build.inputs:
        for path in filter(Path.is_file, folder.glob(glob)):
            target = draft / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    for edit in edits:
        _patch(manifest.name, draft, edit)
    try:
        draft.rename(copy)
    except OSError:
        # Another daemon of the same mutant has made it.
        shutil.rmtree(draft)
    return copy


def _patch(name: str, folder: Path, edit: SourceEdit) -> None:
    path = folder / edit.file
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise DaemonError(
            f"{name}: {edit.file} is not an input of the build",
            code="not_mutable",
            hint="name a file that [build] inputs match, relative to the sdk.toml",
        )
    source = path.read_text(encoding="utf-8")
    if (count := source.count(edit.find)) != 1:
        raise DaemonError(
            f"{name}: {edit.file} has {count} times, and must have once: {edit.find!r}",
            code="not_mutable",
            hint="adapt `find` of the mutant to the source",
        )
    path.write_text(source.replace(edit.find, edit.put), encoding="utf-8")


def _write(mutation: Mutation, folder: Path) -> None:
    text = mutation.model_dump_json(by_alias=True, exclude_unset=True, exclude={"source"})
    (folder / "mutation.json").write_text(text)


def _behind_proxy(serve: Serve) -> Serve:
    # The daemon's address behind the proxy: any port, or one that the proxy chooses.
    port = "0" if serve.port == "announced" else "@port@"
    host = loopback_host()
    address = {"{addr}": f"{bracketed(host)}:{port}", "{port}": port, "{host}": host}
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
        self.readers, self.embedders = runner.readers, runner.embedders
        self.seed, self.dialect = runner.seed, runner.dialect

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[Daemon]:
        await asyncio.to_thread(self.become, self._mutation, launch.folder)
        async with self._runner.serve(launch) as daemon:
            parts = urlsplit(daemon.base_url)
            argv = [
                part.format(
                    python=sys.executable,
                    addr=f"{bracketed(loopback_host())}:0",
                    state_dir=launch.folder,
                )
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
