"""Runs the daemon under test: starts, stops, kills and restarts it on its state."""

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx

from memconform.client.timings import time_limit
from memconform.conformance.case import DaemonSettings, Server
from memconform.conformance.process_report import ProcessReport, inspect_tree, limit_files
from memconform.conformance.valid_requests import Controls
from memconform.contract.names import EMBEDDER_MODES, Profile
from memconform.daemons.ports import is_open
from memconform.daemons.process import DaemonProcess
from memconform.daemons.sdk_runner import Daemon, Launch, SdkRunner
from memconform.daemons.upstream import scripted_upstream
from memconform.errors import DaemonError, UsageError
from memconform.tls import tls_context
from memconform.upstream.script import Script

CONTROL_ENV = {"JB_UPSTREAM_TIMEOUT": "2"}
"""A short timeout, so that cases about a silent upstream are fast; a case may override it."""

_HEALTH_SECONDS = 5.0
"""How long a daemon that left a request unanswered may take for its health; busy ones took 2 s."""

_SUSPICION_SECONDS = 0.2

_END_SECONDS = 2.0
"""How long the exit of a daemon may take to be reported after its port has closed."""


class UntestableError(Exception):
    """The daemon cannot provide what a case needs; `cause` names it without the SDK's name."""

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or message


def _upstream_hint(runner: SdkRunner) -> str:
    """Say what to add to an sdk.toml without [upstream], and nothing that it already says."""
    hints = ["add [upstream.scripted] to the sdk.toml"]
    if Profile.ASK in runner.profiles and runner.readers is None:
        hints.append('readers = ["fake"] if the daemon has no other reader')
    modes = runner.modes or ()
    if runner.embedders is None and not EMBEDDER_MODES.isdisjoint(modes):
        hints.append('embedders = ["fake"] if it has no other embedder')
    first, *claims = hints
    return f"{first}, or to [capabilities] {' and '.join(claims)}" if claims else first


NOT_MANAGED = "memconform did not start the daemon"


class Fixture:
    """A daemon, its upstream and its state folder. Use as an async context manager.

    Call `prepare` before anything else.
    """

    def __init__(
        self,
        runner: SdkRunner,
        settings: DaemonSettings,
        folder: Path,
        run_id: str,
        *,
        has_controls: bool = True,
        keeps_brains: bool = False,
    ) -> None:
        """Create it; nothing is started.

        Args:
            runner: Starts the daemon.
            settings: What the daemon needs.
            folder: Holds its state and log.
            run_id: Prefix of the daemon's run id.
            has_controls: Whether rejections are compared with valid requests; see `Controls`.
            keeps_brains: Whether the brains of failed cases are not deleted.
        """
        self.runner = runner
        self.controls = (
            Controls(settings.env, by_path=runner.seed.via in ("documents", "disk"))
            if has_controls
            else None
        )
        # The daemon has another working directory, and cases name files in this folder.
        self.folder = folder.absolute()
        self.run_id = run_id
        self.outside = self.folder / "outside.txt"
        self.keeps_brains = keeps_brains
        self.kept_brains: dict[str, str] = {}
        """Brains of failed cases that were not deleted, by case."""
        self.last_case = ""
        """The case that used the daemon last."""
        self.addresses: set[str] = set()
        """The base URLs at which the daemon has been served."""
        self._settings = settings
        self._stack = AsyncExitStack()
        self._upstream: Daemon | None = None
        self._daemons: dict[Server, tuple[AsyncExitStack, Daemon]] = {}
        self._has_own_settings = True
        """Whether the daemon runs with the variables and arguments of `settings` alone."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop the daemons and the upstream."""
        try:
            await self.stop("second")
            await self.stop("daemon")
        finally:
            await self._stack.aclose()

    async def prepare(self) -> None:
        """Start the daemon and, if the settings need one, the upstream.

        Raises:
            UntestableError: if this SDK does not support the settings.
            DaemonError: if the daemon or the upstream does not start.
        """
        needs_settings = self._settings.env or self._settings.upstream == "scripted"
        if needs_settings and not self.runner.restartable:
            raise UntestableError(
                f"{self.runner.name} was not started by memconform: its settings cannot be changed",
                f"{NOT_MANAGED}, so its settings cannot be changed",
            )
        await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(self.outside.write_text, "of no brain")
        if self._settings.upstream == "scripted":
            try:
                self.runner.use_upstream("scripted")
            except UsageError as error:
                cause = f"the daemon cannot call a scripted upstream: {error.code}"
                hint = _upstream_hint(self.runner)
                raise UntestableError(f"{error.message}: {hint}", cause) from error
            self._upstream = await self._stack.enter_async_context(
                scripted_upstream(self.folder / "upstream", self.run_id)
            )
        await self.start()

    @property
    def state(self) -> Path:
        """The daemon's state folder.

        Raises:
            UntestableError: if the daemon was not started by memconform.
        """
        if not self.runner.restartable:
            raise UntestableError(
                f"{self.runner.name} was not started by memconform: its state folder is unknown",
                f"{NOT_MANAGED}, so its state folder is unknown",
            )
        return self._launch("daemon").state

    def address(self, server: Server) -> str:
        """Return the base URL of a server.

        Raises:
            UntestableError: if it is not running.
        """
        if server == "upstream":
            if self._upstream is None:
                raise UntestableError(
                    "no upstream is running; the case needs `daemon: {upstream: scripted}`"
                )
            return self._upstream.base_url
        if server not in self._daemons:
            raise UntestableError(f"the {server} is not running")
        return self._daemons[server][1].base_url

    @property
    def daemon(self) -> Daemon:
        """The running daemon.

        Raises:
            UntestableError: if it is not running.
        """
        self.address("daemon")
        return self._daemons["daemon"][1]

    @property
    def has_upstream(self) -> bool:
        """Whether a scripted upstream is running."""
        return self._upstream is not None

    async def unexpected_exit(self, *, suspected: bool = False) -> str | None:
        """Return how the daemon exited, with the end of its log, if no step stopped it; else None.

        An exit is reported a moment after it happens: if the port is closed, wait for the report.
        `suspected` waits a little even if it is open, because a connection has broken: a process
        that is killed closes its connections one after another.
        """
        if "daemon" not in self._daemons:
            return None
        daemon = self._daemons["daemon"][1]
        address = urlsplit(daemon.base_url)
        is_listening = await asyncio.to_thread(is_open, address.hostname or "", address.port or 80)
        if daemon.process is None:
            return None if is_listening else "it accepts no connections"
        if not is_listening or suspected:
            seconds = _SUSPICION_SECONDS if is_listening else _END_SECONDS
            with suppress(TimeoutError):
                async with time_limit(seconds):
                    await daemon.wait_exit()
        if daemon.process.alive:
            return None
        return f"{await daemon.wait_exit()}\n{daemon.process.tail()}"

    def _launch(self, server: Server) -> Launch:
        variables = self._translated(self._settings.env)
        if self._upstream is not None:
            variables = CONTROL_ENV | variables
        return Launch(
            run_id=f"{self.run_id}-{server}",
            folder=self.folder,
            upstream=self._upstream.base_url if self._upstream else None,
            variables=variables,
        )

    def _translated(self, env: Mapping[str, str]) -> dict[str, str]:
        """Variables of the contract, as the daemon's dialect has them."""
        dialect = self.runner.dialect
        if dialect is None:
            return dict(env)
        settings = [dialect.setting(name, value) for name, value in env.items()]
        return dict(setting for setting in settings if setting is not None)

    async def start(
        self,
        server: Server = "daemon",
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        *,
        only_stdout: bool = False,
        without_host: bool = False,
    ) -> None:
        """Start a daemon on the existing state, after stopping the one that runs.

        `env` takes precedence over all other variables.

        Raises:
            DaemonError: if it does not start.
            UntestableError: if it cannot be started `without_host`.
        """
        if without_host and not self.runner.takes_address:
            raise UntestableError(
                f"{self.runner.name} is not started with an address; [serve] argv has no {{addr}}"
            )
        await self.stop(server)
        launch = self._launch(server)
        launch = replace(
            launch,
            host="" if without_host else launch.host,
            variables={**launch.variables, **self._translated(env or {})},
            arguments=arguments,
            only_stdout=only_stdout,
        )
        stack = AsyncExitStack()
        daemon = await stack.enter_async_context(self.runner.serve(launch))
        self._daemons[server] = stack, daemon
        if server == "daemon":
            self.addresses.add(daemon.base_url)
            self._has_own_settings = not (env or arguments or only_stdout or without_host)

    async def answers(self) -> bool:
        """Whether the daemon answers a request for its health within a moment."""
        with suppress(httpx.HTTPError, UntestableError):
            address = self.address("daemon")
            async with httpx.AsyncClient(
                trust_env=False, timeout=_HEALTH_SECONDS, verify=tls_context(address)
            ) as http:
                await http.get(f"{address}/healthz")
            return True
        return False

    async def restart(self) -> None:
        """Start the daemon anew, with its own settings.

        Raises:
            DaemonError: if it does not start.
        """
        await self.stop("second")
        await self.stop()
        await self.start()

    async def restore(self) -> None:
        """Make the daemon run with its own settings again, whatever a case did to it.

        Raises:
            DaemonError: if it has to be started, and does not start.
        """
        await self.stop("second")
        if (
            not self._has_own_settings
            or "daemon" not in self._daemons
            or await self.unexpected_exit() is not None
        ):
            await self.restart()

    async def stop(self, server: Server = "daemon") -> None:
        """Stop a daemon, if it runs, with SIGTERM, or with SIGKILL after 5 s."""
        if server in self._daemons:
            stack, daemon = self._daemons.pop(server)
            if daemon.process is not None and self.last_case:
                daemon.process.purpose["last_case"] = self.last_case
            await stack.aclose()

    async def fails_to_start(
        self, env: Mapping[str, str], arguments: Sequence[str]
    ) -> ProcessReport:
        """Start a second daemon with these settings, and report how it failed, or that it did not.

        Raises:
            UntestableError: if the daemon was not started by memconform.
        """
        self.require_managed()
        try:
            await self.start("second", env, arguments)
        except DaemonError as error:
            return ProcessReport(alive=False, ended=error.message, log=error.excerpt)
        await self.stop("second")
        return ProcessReport(alive=True)

    async def end(self, number: signal.Signals, seconds: float) -> ProcessReport:
        """Send a signal to the daemon and wait up to `seconds` for it to exit.

        Returns:
            How it exited, or `alive` if it did not in time.

        Raises:
            UntestableError: if the daemon is not running, or was not started by memconform.
        """
        process = self._process()
        process.signal(number)
        try:
            async with asyncio.timeout(seconds):
                ended = await process.wait()
        except TimeoutError:
            return ProcessReport(alive=True, log=process.tail())
        log = process.tail()
        await self.stop()
        return ProcessReport(alive=False, ended=ended, log=log)

    async def limit_files(self, *, full: bool) -> None:
        """Let the daemon's files grow as if the disk were full, or freely again.

        Raises:
            UntestableError: if the daemon is not running, or was not started by memconform.
        """
        await asyncio.to_thread(limit_files, self._process().pid, full=full)

    async def inspect(self) -> ProcessReport:
        """Report the log, listening addresses and connections of the running process tree.

        Raises:
            UntestableError: if the daemon is not running, or was not started by memconform.
        """
        process = self._process()
        log = await asyncio.to_thread(process.output, 0)
        return await asyncio.to_thread(inspect_tree, process.pid, log.decode("utf-8", "replace"))

    def _process(self) -> DaemonProcess:
        """Return the daemon's process.

        Raises:
            UntestableError: if it is not running, or was not started by memconform.
        """
        self.require_managed()
        running = self._daemons.get("daemon")
        if running is None or running[1].process is None:
            raise UntestableError("the daemon is not running")
        return running[1].process

    def require_managed(self) -> None:
        """Raise UntestableError unless memconform started the daemon."""
        if not self.runner.restartable:
            raise UntestableError(
                f"{self.runner.name} was not started by memconform: its process is unknown",
                f"{NOT_MANAGED}, so its process is unknown",
            )


def script_body(script: Script | None) -> bytes:
    """Encode a script for the upstream's control endpoint; None sets an empty script."""
    return script.model_dump_json().encode() if script is not None else json.dumps({}).encode()
