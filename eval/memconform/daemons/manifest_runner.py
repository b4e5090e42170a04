"""Starts and stops the daemon that an `sdk.toml` describes."""

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from memconform.contract.wire import Mode
from memconform.daemons.build import build_hash, build_key, ensure_built
from memconform.daemons.environment import BASE, NETWORK, for_daemon, shell_variables
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.manifest import Manifest
from memconform.daemons.ports import (
    Address,
    bracketed,
    free_port,
    is_open,
    listener,
    listener_name,
    wait_closed,
)
from memconform.daemons.process import DaemonProcess
from memconform.daemons.readiness import await_ready
from memconform.daemons.resources import (
    RUN_ID_VARIABLE,
    Resources,
    Sampler,
    end_strays,
    is_unrelated,
)
from memconform.daemons.sdk_runner import Launch, Progress, SdkRunner
from memconform.daemons.tasks import finish
from memconform.errors import DaemonError, UsageError
from memconform.redaction import MASK, hide, hide_credentials, is_secret, without_credentials

_BIND_ATTEMPTS = 3
_BIND_FAILED = re.compile(r"(?i)address (?:is )?already in use|EADDRINUSE|cannot listen on")


class ManagedDaemon:
    """A running daemon that the harness started, and may restart on its state."""

    def __init__(
        self,
        runner: "ManifestRunner",
        launch: Launch,
        process: DaemonProcess,
        address: Address,
        ready_ms: float,
    ) -> None:
        self.base_url = address.url
        self.state = launch.state
        self.ready_ms: float | None = ready_ms
        self._runner = runner
        self._launch = replace(launch, port=address.port)
        self._host = address.host
        self._process = process
        self._restarting = asyncio.Lock()
        self._sampler = (
            Sampler(process.guard_pid, watches_connections=launch.upstream is not None)
            if launch.sampled
            else None
        )
        self._sampling = asyncio.create_task(self._sampler.run()) if self._sampler else None

    @property
    def process(self) -> DaemonProcess | None:
        return self._process

    async def wait_exit(self) -> str:
        """Wait until the daemon ends, other than by a restart; returns how it ended."""
        while True:
            process = self._process
            ended = await process.wait()
            async with self._restarting:
                if process is self._process:
                    return ended

    async def restart(self) -> None:
        """Stop the process and start another one on the same state and port.

        Raises:
            DaemonError: if the process leaves others behind, or the new one does not start.
        """
        async with self._restarting:
            await finish(self.end())
            self._process, _ = await self._runner.start_process(self._launch)
            if self._sampler is not None:
                self._sampler.follow(self._process.guard_pid)

    async def end(self) -> None:
        """Stop the process; raises DaemonError `daemon_left_over` if any process remains."""
        await self._runner.end_process(self._process, self._launch, self._host)

    def log_tail(self) -> str:
        """The last lines of its output."""
        return self._process.tail()

    def resources(self) -> Resources | None:
        """What it has used until now; None if it is not sampled."""
        if self._sampler is None:
            return None
        if self._sampling is not None and not self._sampling.done():
            # A run of a few questions fits between two samples, and so do its connections.
            self._sampler.sample()
        return self._sampler.result()

    async def close(self) -> None:
        """Take a last sample and stop sampling; the process keeps running."""
        if self._sampler is not None and self._sampling is not None:
            self._sampler.sample()
            self._sampling.cancel()
            with suppress(asyncio.CancelledError):
                await self._sampling


class ManifestRunner(SdkRunner):
    """Builds and serves the SDK of one manifest."""

    restartable = True

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        self.manifest = manifest
        self.folder = folder
        self.serving, self.env = manifest.serve, manifest.env
        self.describe(manifest, folder)
        self.scripted_modes = tuple(manifest.upstream.modes) if manifest.upstream else ()
        self.can_be_scripted = bool(manifest.upstream and manifest.upstream.scripted)
        self.takes_address = any("{addr}" in part for part in manifest.serve.argv)
        self._build_dir: Path | None = None
        self._overrides: dict[str, str] = {}

    def use_variables(self, variables: Mapping[str, str]) -> None:
        # Hide them now: the command line, which contains them, is written before a daemon starts.
        self._overrides = dict(variables)
        self._hide(self._overrides)

    def variables(self) -> dict[str, str]:
        return {
            name: MASK if self._is_secret(name) else without_credentials(value)
            for name, value in sorted(self._from_user().items())
        }

    def _is_secret(self, name: str) -> bool:
        """Whether the manifest declares a variable secret; if it does not say, the name decides."""
        passed = [variable for variable in self.env.pass_ if variable.name == name]
        declared = [variable.secret for variable in passed if variable.secret is not None]
        return any(declared) if declared else is_secret(name)

    def _hide(self, variables: dict[str, str]) -> None:
        for name, value in variables.items():
            if self._is_secret(name):
                hide(value, name)
            # A variable that is not declared secret may still hold a URL with a password.
            hide_credentials(value)

    def _from_user(self) -> dict[str, str]:
        names = [variable.name for variable in self.env.pass_]
        if self.upstream == "real" and self.manifest.upstream is not None:
            names += self.manifest.upstream.real
        return shell_variables(names) | self._overrides

    def use_upstream(self, kind: UpstreamKind) -> None:
        declared = self.manifest.upstream
        claimed = tuple(self.manifest.capabilities.modes)
        if declared is None or kind == "own":
            super().use_upstream(kind)
        elif kind == "scripted":
            self.modes = tuple(dict.fromkeys((*claimed, *declared.modes)))
        elif shell_variables(declared.real):
            # The modes depend on the user's services: none is claimed, all may be requested.
            self.modes, self.optional_modes = (), (*claimed, *declared.modes)
        else:
            raise UsageError(
                f"--upstream real: none of the variables {', '.join(declared.real)} is set",
                code="no_real_upstream",
                hint="set the provider's variables in your shell; sdks/CONTRACT.md lists them",
            )
        self.upstream = kind

    def use_modes(self, modes: Collection[Mode]) -> None:
        if self.seed.restart == "vectors" and set(modes) == {Mode.BM25}:
            self.seed = self.seed.model_copy(update={"restart": False})
            # No other claim can be verified without the restart, nor is it needed.
            self.modes = (Mode.BM25,)

    def build_hash(self) -> str:
        return build_hash(self.manifest, self.folder)

    async def build(self, progress: Progress) -> None:
        key = build_key(self.manifest, self.folder)
        self._build_dir = await ensure_built(self.manifest, self.folder, key, progress)

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[ManagedDaemon]:
        if self._build_dir is None:
            await self.build(lambda _: None)
        started = time.perf_counter()
        process, address = await self.start_process(launch)
        ready_ms = (time.perf_counter() - started) * 1e3
        daemon = ManagedDaemon(self, launch, process, address, ready_ms)
        try:
            yield daemon
        finally:
            await finish(_close_and_end(daemon))

    async def end_process(self, process: DaemonProcess, launch: Launch, host: str) -> None:
        """Stop a process that was served at `host` and the launch's port.

        Raises:
            DaemonError: `daemon_left_over` if any process of it remains.
        """
        await process.stop()
        port = launch.port
        # Strays remain if the guard cannot see orphans or was killed before it could end them.
        strays = [*process.left_over, *await asyncio.to_thread(end_strays, launch.run_id)]
        if strays:
            raise DaemonError(
                f"{self.name} was stopped but left {', '.join(strays)} running",
                code="daemon_left_over",
                hint="memconform ended them; a daemon must keep its children in its process group",
            )
        if await wait_closed(host, port, seconds=2):
            return
        # Another server may have taken the port already, if many start concurrently.
        owner = await asyncio.to_thread(listener, port)
        if owner is None:
            still_served = is_open(host, port)
        else:
            still_served = not is_unrelated(owner, launch.run_id, process.started_at)
        if still_served:
            raise DaemonError(
                f"{self.name} was stopped, but port {port} is still served"
                f" by {listener_name(port)}",
                code="daemon_left_over",
                hint="end that process manually",
            )

    async def _abandon(self, process: DaemonProcess, launch: Launch) -> None:
        await process.stop()
        await asyncio.to_thread(end_strays, launch.run_id)

    async def start_process(self, launch: Launch) -> tuple[DaemonProcess, Address]:
        """Start the daemon and wait until it is ready; retries on another port if one is lost.

        Raises:
            DaemonError: if it does not become ready.
        """
        if launch.port and is_open(launch.reachable_host, launch.port):
            raise DaemonError(
                f"port {launch.port} is in use by {listener_name(launch.port)}",
                code="port_taken",
                hint="choose another --port, or 0 for any free one",
            )
        for attempt in range(1, _BIND_ATTEMPTS + 1):
            announced = self.serving.port == "announced" and not launch.port
            port = 0 if announced else launch.port or free_port(launch.reachable_host)
            process = await self._spawn(launch, port)
            try:
                return process, await await_ready(
                    process, launch, port, name=self.name, ready=self.manifest.ready
                )
            except DaemonError as error:
                await finish(self._abandon(process, launch))
                # The owner of the port may answer before the daemon fails to bind it.
                port_lost = error.code == "daemon_not_ours" or _BIND_FAILED.search(error.excerpt)
                if not port_lost or launch.port or attempt == _BIND_ATTEMPTS:
                    raise
            except BaseException:
                await finish(self._abandon(process, launch))
                raise
        raise AssertionError("unreachable")

    async def _spawn(self, launch: Launch, port: int) -> DaemonProcess:
        state = launch.state
        state.mkdir(parents=True, exist_ok=True)
        values = {
            "host": launch.reachable_host,
            "port": str(port),
            "addr": f"{bracketed(launch.host)}:{port}",
            "state_dir": str(state.resolve()),
            "build_dir": str(self._build_dir),
            "python": sys.executable,
            "upstream": launch.upstream or "",
        }
        argv = [fill_placeholders(part, values) for part in self.serving.argv]
        argv += launch.arguments
        if launch.only_stdout:
            argv = ["sh", "-c", 'exec "$0" "$@" 2>/dev/null', *argv]
        process = await DaemonProcess.start(
            argv,
            env=self._environment(launch, values),
            cwd=self.folder,
            log=(launch.folder / "daemon.log").resolve(),
        )
        process.purpose["sdk"] = self.name
        return process

    def _environment(self, launch: Launch, values: dict[str, str]) -> dict[str, str]:
        """Build the environment from an allow-list: only declared shell variables are passed."""
        declared, upstream = self.env, self.manifest.upstream
        settings, from_user = dict(declared.set), self._from_user()
        if upstream is not None and self.upstream == "scripted":
            settings |= upstream.scripted
        if upstream is not None and self.upstream == "real":
            # A stub that replaced a variable the user forgot to set would go unnoticed.
            settings = {n: v for n, v in settings.items() if n not in upstream.scripted}
        env = shell_variables([*BASE, *(NETWORK if self.upstream == "real" else ())])
        env |= {name: fill_placeholders(value, values) for name, value in settings.items()}
        self._hide(from_user)
        env |= from_user | {
            name: fill_placeholders(v, values) for name, v in launch.variables.items()
        }
        for value in env.values():
            hide_credentials(value)
        return for_daemon(env) | {"JB_HOME": values["state_dir"], RUN_ID_VARIABLE: launch.run_id}


async def _close_and_end(daemon: ManagedDaemon) -> None:
    await daemon.close()
    await daemon.end()


def fill_placeholders(template: str, values: Mapping[str, str]) -> str:
    """Replace each `{name}` in an argument or a variable by its value."""
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template
