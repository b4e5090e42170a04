"""Serves the daemon that an sdk.toml describes."""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
from pydantic import ValidationError

from memconform.contract.core import Health, Version
from memconform.contract.wire import Mode
from memconform.daemons.build import build_hash, ensure_built
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.manifest import Manifest
from memconform.daemons.ports import (
    free_port,
    is_open,
    listener,
    listener_name,
    listens,
    wait_closed,
)
from memconform.daemons.process import OUTPUT_BYTES, DaemonProcess, finish
from memconform.daemons.resources import (
    RUN_ID_VARIABLE,
    Resources,
    Sampler,
    end_strays,
    is_stranger,
)
from memconform.daemons.runner import Launch, Progress, SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.redaction import MASK, hide, hide_credentials, is_secret, without_credentials

_BIND_ATTEMPTS = 3
_POLL_SECONDS = 0.02
_ANNOUNCEMENT_BYTES = 512
"""More than an announcement has, so that one which comes in two pieces is found."""
_ANNOUNCED = re.compile(rb"listening on https?://\S*:(\d{1,5})/?\s")
_BIND_FAILED = re.compile(r"(?i)address (?:is )?already in use|EADDRINUSE|cannot listen on")

# What a program needs to run at all; anything else from the user's shell must be named.
_BASE_ENV = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE")


class ManagedDaemon:
    def __init__(
        self, base_url: str, process: DaemonProcess, ready_ms: float, sampler: Sampler | None
    ) -> None:
        self.base_url = base_url
        self.ready_ms: float | None = ready_ms
        self.process: DaemonProcess | None = process
        self._process = process
        self._sampler = sampler
        self._sampling = asyncio.create_task(sampler.run()) if sampler is not None else None

    async def wait_exit(self) -> str:
        return await self._process.wait()

    def log_tail(self) -> str:
        return self._process.tail()

    def resources(self) -> Resources | None:
        return self._sampler.result() if self._sampler is not None else None

    async def close(self) -> None:
        if self._sampler is not None and self._sampling is not None:
            self._sampler.sample()
            self._sampling.cancel()
            with suppress(asyncio.CancelledError):
                await self._sampling


class ManifestRunner(SdkRunner):
    restartable = True

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        self.manifest = manifest
        self.folder = folder
        self.serving, self.env = manifest.serve, manifest.env
        self.name = manifest.name
        self.language = manifest.language
        self.profiles = tuple(manifest.capabilities.profiles)
        self.modes: tuple[Mode, ...] | None = tuple(manifest.capabilities.modes)
        self.scripted_modes = tuple(manifest.upstream.modes) if manifest.upstream else ()
        self.known_failures = folder / manifest.known.file if manifest.known else None
        self.seed_via = manifest.seed.via
        self._build_dir: Path | None = None
        self._upstream: UpstreamKind = "own"
        self._given: dict[str, str] = {}

    def use_variables(self, given: Mapping[str, str]) -> None:
        # At once: the command line, which holds them too, is written before a daemon starts.
        self._given = dict(given)
        self._hide(self._given)

    def variables(self) -> dict[str, str]:
        return {
            name: MASK if self._is_secret(name) else without_credentials(value)
            for name, value in sorted(self._from_user().items())
        }

    def _is_secret(self, name: str) -> bool:
        """Whether the manifest says so, or else the variable's name."""
        declared = [each.secret for each in self.env.pass_ if each.name == name]
        said = [secret for secret in declared if secret is not None]
        return any(said) if said else is_secret(name)

    def _hide(self, variables: dict[str, str]) -> None:
        for name, value in variables.items():
            if self._is_secret(name):
                hide(value)
            # What the manifest calls no secret may hold a password all the same.
            hide_credentials(value)

    def _from_user(self) -> dict[str, str]:
        names = [each.name for each in self.env.pass_]
        if self._upstream == "real" and self.manifest.upstream is not None:
            names += self.manifest.upstream.real
        return self._shell(names) | self._given

    def use_upstream(self, kind: UpstreamKind) -> None:
        declared = self.manifest.upstream
        claimed = tuple(self.manifest.capabilities.modes)
        if declared is None or kind == "own":
            super().use_upstream(kind)
        elif kind == "scripted":
            self.modes = tuple(dict.fromkeys((*claimed, *declared.modes)))
        elif self._shell(declared.real):
            # What is served is up to the user's services: nothing is claimed, all may be asked.
            self.modes, self.optional_modes = (), (*claimed, *declared.modes)
        else:
            raise UsageError(
                f"--upstream real: none of {', '.join(declared.real)} is set",
                code="no_real_upstream",
                hint="set the provider's variables in your shell; sdks/CONTRACT.md lists them",
            )
        self._upstream = kind

    @staticmethod
    def _shell(names: list[str]) -> dict[str, str]:
        return {name: os.environ[name] for name in names if os.environ.get(name)}

    def build_hash(self) -> str:
        return build_hash(self.manifest, self.folder)

    async def build(self, progress: Progress) -> None:
        key = self.build_hash()
        self._build_dir = await ensure_built(self.manifest, self.folder, key, progress)

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[ManagedDaemon]:
        if self._build_dir is None:
            await self.build(lambda _: None)
        started = time.perf_counter()
        process, port = await self._start(launch)
        daemon = ManagedDaemon(
            f"http://{_bracketed(launch.host)}:{port}",
            process,
            (time.perf_counter() - started) * 1e3,
            Sampler(process.pid) if launch.sampled else None,
        )
        try:
            yield daemon
        finally:
            await finish(self._end(daemon, process, launch, port))

    async def _end(
        self, daemon: ManagedDaemon, process: DaemonProcess, launch: Launch, port: int
    ) -> None:
        """Stop the daemon; raises DaemonError where anything of it stays."""
        await daemon.close()
        await process.stop()
        # The second where the guard cannot see orphans, or was killed before it could end them.
        strays = [*process.left_over, *await asyncio.to_thread(end_strays, launch.run_id)]
        if strays:
            raise DaemonError(
                f"{self.name} was stopped, and left {', '.join(strays)} running",
                code="daemon_left_over",
                hint="they were ended; a daemon keeps its children in its process group",
            )
        if await wait_closed(launch.host, port, seconds=2):
            return
        # A port that is free is soon another's, where many servers start beside this one.
        serving = await asyncio.to_thread(listener, port)
        if serving is None:
            left = is_open(launch.host, port)
        else:
            left = not is_stranger(serving, launch.run_id, process.started_at)
        if left:
            raise DaemonError(
                f"{self.name} was stopped, but port {port} is still served"
                f" by {listener_name(port)}",
                code="daemon_left_over",
                hint="end that process by hand",
            )

    async def _abandon(self, process: DaemonProcess, launch: Launch) -> None:
        await process.stop()
        await asyncio.to_thread(end_strays, launch.run_id)

    async def _start(self, launch: Launch) -> tuple[DaemonProcess, int]:
        """Start and wait until ready; a port lost to another process is replaced."""
        if launch.port and is_open(launch.host, launch.port):
            raise DaemonError(
                f"port {launch.port} is taken by {listener_name(launch.port)}",
                code="port_taken",
                hint="choose another --port, or 0 for any free one",
            )
        for attempt in range(1, _BIND_ATTEMPTS + 1):
            announced = self.serving.port == "announced" and not launch.port
            port = 0 if announced else launch.port or free_port(launch.host)
            process = await self._spawn(launch, port)
            try:
                return process, await self._await_ready(process, launch, port)
            except DaemonError as error:
                await finish(self._abandon(process, launch))
                # Who has the port may answer before the daemon has found that it cannot have it.
                lost = error.code == "daemon_not_ours" or _BIND_FAILED.search(error.excerpt)
                if not lost or launch.port or attempt == _BIND_ATTEMPTS:
                    raise
            except BaseException:
                await finish(self._abandon(process, launch))
                raise
        raise AssertionError("unreachable")

    async def _spawn(self, launch: Launch, port: int) -> DaemonProcess:
        state = launch.state
        state.mkdir(parents=True, exist_ok=True)
        values = {
            "host": launch.host,
            "port": str(port),
            "addr": f"{_bracketed(launch.host)}:{port}",
            "state_dir": str(state.resolve()),
            "build_dir": str(self._build_dir),
            "python": sys.executable,
            "upstream": launch.upstream or "",
        }
        argv = [_filled(part, values) for part in self.serving.argv]
        argv += launch.arguments
        if launch.only_stdout:
            argv = ["sh", "-c", 'exec "$0" "$@" 2>/dev/null', *argv]
        return await DaemonProcess.start(
            argv,
            env=self._environment(launch, values),
            cwd=self.folder,
            log=(launch.folder / "daemon.log").resolve(),
        )

    def _environment(self, launch: Launch, values: dict[str, str]) -> dict[str, str]:
        """An allow-list: keys of the user's shell reach a daemon only where the manifest says."""
        declared, upstream = self.env, self.manifest.upstream
        settings, given = dict(declared.set), self._from_user()
        if upstream is not None and self._upstream == "scripted":
            settings |= upstream.scripted
        if upstream is not None and self._upstream == "real":
            # A fake that stood in for what the user forgot to name would go unseen.
            settings = {n: v for n, v in settings.items() if n not in upstream.scripted}
        env = self._shell(list(_BASE_ENV))
        env |= {name: _filled(value, values) for name, value in settings.items()}
        self._hide(given)
        env |= given | {name: _filled(v, values) for name, v in launch.variables.items()}
        return env | {"JB_HOME": values["state_dir"], RUN_ID_VARIABLE: launch.run_id}

    async def _await_ready(self, process: DaemonProcess, launch: Launch, port: int) -> int:
        """The port, once the daemon is healthy there and provably ours."""
        ready = self.manifest.ready
        ended = asyncio.ensure_future(process.wait())
        polling = asyncio.ensure_future(self._poll(process, launch, port))
        try:
            await asyncio.wait(
                {ended, polling}, timeout=ready.timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if polling.done():
                return polling.result()
            if ended.done():
                why, code = f"ended before it was ready: {ended.result()}", "daemon_exited"
            else:
                why = f"is not healthy {ready.timeout_s:g} s after its start"
                code = "daemon_not_ready"
            raise DaemonError(
                f"{self.name} {why}",
                code=code,
                hint=f"its whole output is in {process.log}",
                excerpt=process.tail(),
            )
        finally:
            ended.cancel()
            polling.cancel()
            await asyncio.gather(ended, polling, return_exceptions=True)

    async def _poll(self, process: DaemonProcess, launch: Launch, port: int) -> int:
        read, window = 0, b""
        while not port:
            new = process.output(read)
            read += len(new)
            window = window[-_ANNOUNCEMENT_BYTES:] + new
            port = _announced_port(window)
            if not port:
                # With more to read there is no time to lose, or a chatty daemon stays ahead.
                await asyncio.sleep(0 if len(new) >= OUTPUT_BYTES else _POLL_SECONDS)
        base_url = f"http://{_bracketed(launch.host)}:{port}"
        # Without TLS there is nothing to verify, and to load what verifies takes 25 ms.
        async with httpx.AsyncClient(
            base_url=base_url,
            trust_env=False,
            timeout=2,
            verify=False,  # noqa: S501 - as above
        ) as http:
            while True:
                with suppress(httpx.HTTPError):
                    answer = await http.get(self.manifest.ready.path)
                    if answer.status_code == 200 and not _denies_health(answer):
                        await self._require_own_process(http, process, launch, port)
                        return port
                await asyncio.sleep(_POLL_SECONDS)

    async def _require_own_process(
        self, http: httpx.AsyncClient, process: DaemonProcess, launch: Launch, port: int
    ) -> None:
        """A healthy answer proves nothing while it may come from somebody else's daemon."""
        if listens(process.pid, port):
            return
        with suppress(httpx.HTTPError, ValidationError):
            version = Version.model_validate_json((await http.get("/version")).content)
            if version.run_id == launch.run_id:
                return
        raise DaemonError(
            f"port {port} answers, but it is {listener_name(port)} and not the {self.name} daemon",
            code="daemon_not_ours",
            hint="choose another --port, or 0 for any free one",
            excerpt=process.tail(),
        )


def _denies_health(answer: httpx.Response) -> bool:
    """Whether the body says `ok: false`; a path of the daemon's own may say nothing of it."""
    try:
        return not Health.model_validate_json(answer.content).ok
    except ValidationError:
        return False


def _announced_port(output: bytes) -> int:
    """The port that the daemon says it listens on; 0 before it has said one that there is."""
    match = _ANNOUNCED.search(output)
    port = int(match[1]) if match else 0
    return port if port <= 65535 else 0


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _filled(template: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template
