"""The daemon that cases are put to: started, stopped, killed and started again on its state."""

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import psutil

from memconform.conformance.case import Server, Serving
from memconform.daemons.ports import is_open
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import process_tree
from memconform.daemons.runner import Daemon, Launch, SdkRunner
from memconform.daemons.upstream import scripted_upstream
from memconform.errors import DaemonError, UsageError
from memconform.upstream.script import Script

CONTROL_ENV = {"JB_UPSTREAM_TIMEOUT": "2"}
"""Short, so that cases about silence are; a case may say otherwise."""


_END_SECONDS = 2.0
"""For the end of a daemon to be reported, once it listens no more."""


class UntestableError(Exception):
    """What a case needs is not to be had of this daemon."""


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """What a `process` step brings, as JSON."""

    alive: bool
    ended: str = ""
    """How it ended: `exit status 0`, `killed by SIGKILL`."""
    log: str = ""
    """What it wrote: of a daemon that has ended, or did not start, the last lines."""
    listening: tuple[str, ...] = ()
    """Addresses that its process tree listens on."""
    connections: int = 0
    """Established ones of its process tree, ours among them."""

    def value(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {
            "listening": list(self.listening)
        }


class Fixture:
    """Use as an async context manager; `prepare` before anything else."""

    def __init__(self, runner: SdkRunner, serving: Serving, folder: Path, run_id: str) -> None:
        self.runner = runner
        self.folder = folder
        self.run_id = run_id
        self.outside = folder / "outside.txt"
        self._serving = serving
        self._stack = AsyncExitStack()
        self._upstream: Daemon | None = None
        self._daemons: dict[Server, tuple[AsyncExitStack, Daemon]] = {}
        self._as_served = True
        """Whether the daemon runs with the variables and arguments of `serving` alone."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the daemons and the upstream."""
        try:
            await self.stop("second")
            await self.stop("daemon")
        finally:
            await self._stack.aclose()

    async def prepare(self) -> None:
        """Start the upstream, where one is wanted, and the daemon.

        Raises:
            UntestableError: where this SDK has not what is wanted.
            DaemonError: where one of them does not start.
        """
        wants_more = self._serving.env or self._serving.upstream == "scripted"
        if wants_more and not self.runner.restartable:
            raise UntestableError(f"{self.runner.name} is not ours to start with other variables")
        await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(self.outside.write_text, "of no brain")
        if self._serving.upstream == "scripted":
            try:
                self.runner.use_upstream("scripted")
            except UsageError as error:
                raise UntestableError(error.message) from error
            self._upstream = await self._stack.enter_async_context(
                scripted_upstream(self.folder / "upstream", self.run_id)
            )
        await self.start()

    @property
    def state(self) -> Path:
        """The state folder; raises UntestableError where it is not ours."""
        if not self.runner.restartable:
            raise UntestableError(f"the state of {self.runner.name} is not ours to look into")
        return self._launch("daemon").state

    def address(self, server: Server) -> str:
        """Raises UntestableError where there is no such server now."""
        if server == "upstream":
            if self._upstream is None:
                raise UntestableError("no upstream runs; the case needs one in `daemon`")
            return self._upstream.base_url
        if server not in self._daemons:
            raise UntestableError(f"the {server} does not run")
        return self._daemons[server][1].base_url

    @property
    def has_upstream(self) -> bool:
        return self._upstream is not None

    async def died(self) -> str | None:
        """How the daemon ended, where it did although nobody ended it.

        Its end is reported a moment after it: one that takes no connection is given that moment.
        """
        if "daemon" not in self._daemons:
            return None
        daemon = self._daemons["daemon"][1]
        address = urlsplit(daemon.base_url)
        listens = await asyncio.to_thread(is_open, address.hostname or "", address.port or 80)
        if daemon.process is None:
            return None if listens else "it takes no connection"
        if not listens:
            with suppress(TimeoutError):
                await asyncio.wait_for(daemon.wait_exit(), _END_SECONDS)
        if daemon.process.alive:
            return None
        return f"{await daemon.wait_exit()}\n{daemon.process.tail()}"

    def _launch(self, server: Server) -> Launch:
        variables = dict(self._serving.env)
        if self._upstream is not None:
            variables = CONTROL_ENV | variables
        return Launch(
            run_id=f"{self.run_id}-{server}",
            folder=self.folder,
            upstream=self._upstream.base_url if self._upstream else None,
            variables=variables,
        )

    async def start(
        self,
        server: Server = "daemon",
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        *,
        only_stdout: bool = False,
    ) -> None:
        """Start it on the state that there is; raises DaemonError where it does not."""
        await self.stop(server)
        launch = self._launch(server)
        launch = replace(
            launch,
            variables={**launch.variables, **(env or {})},
            arguments=arguments,
            only_stdout=only_stdout,
        )
        stack = AsyncExitStack()
        daemon = await stack.enter_async_context(self.runner.serve(launch))
        self._daemons[server] = stack, daemon
        if server == "daemon":
            self._as_served = not (env or arguments or only_stdout)

    async def restore(self) -> None:
        """Have the daemon run as it did at first, whatever a case has made of it."""
        await self.stop("second")
        if not self._as_served or "daemon" not in self._daemons or await self.died() is not None:
            await self.stop()
            await self.start()

    async def stop(self, server: Server = "daemon") -> None:
        """End it by SIGTERM, after 5 s by SIGKILL."""
        if server in self._daemons:
            stack, _ = self._daemons.pop(server)
            await stack.aclose()

    async def fails_to_start(
        self, env: Mapping[str, str], arguments: Sequence[str]
    ) -> ProcessReport:
        """How a start with these settings goes wrong; alive where it does not."""
        self.require_own()
        try:
            await self.start("second", env, arguments)
        except DaemonError as error:
            return ProcessReport(alive=False, ended=error.message, log=error.excerpt)
        await self.stop("second")
        return ProcessReport(alive=True)

    async def end(self, number: signal.Signals, seconds: float) -> ProcessReport:
        """Signal the daemon, and how it has ended; alive where it has not in time."""
        process = self._process()
        process.signal(number)
        try:
            ended = await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            return ProcessReport(alive=True, log=process.tail())
        log = process.tail()
        await self.stop()
        return ProcessReport(alive=False, ended=ended, log=log)

    async def inspect(self) -> ProcessReport:
        """What the process tree holds just now."""
        process = self._process()
        log = await asyncio.to_thread(process.output, 0)
        return await asyncio.to_thread(_inspected, process.pid, log.decode("utf-8", "replace"))

    def _process(self) -> DaemonProcess:
        """The daemon's; raises UntestableError where it does not run, or is not ours."""
        self.require_own()
        running = self._daemons.get("daemon")
        if running is None or running[1].process is None:
            raise UntestableError("the daemon does not run")
        return running[1].process

    def require_own(self) -> None:
        """Raise UntestableError where its process is not ours."""
        if not self.runner.restartable:
            raise UntestableError(f"{self.runner.name} is not ours to start and to end")


def _inspected(pid: int, log: str) -> ProcessReport:
    listening: set[str] = set()
    connections = 0
    for process in process_tree(pid):
        try:
            for connection in process.net_connections(kind="inet"):
                if connection.status == psutil.CONN_LISTEN:
                    listening.add(connection.laddr.ip)
                elif connection.status == psutil.CONN_ESTABLISHED:
                    connections += 1
        except psutil.NoSuchProcess:
            continue
    return ProcessReport(
        alive=True,
        log=log,
        listening=tuple(sorted(listening)),
        connections=connections,
    )


def script_body(script: Script | None) -> bytes:
    """What the upstream's control takes; without a script it is left to itself."""
    return script.model_dump_json().encode() if script is not None else json.dumps({}).encode()
