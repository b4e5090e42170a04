"""A pool of daemons behind proxies, reused by mutants: a start takes longer than a case."""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from memconform.conformance.case import DaemonSettings
from memconform.conformance.fixture import Fixture
from memconform.conformance.job_runner import MakeRunner
from memconform.conformance.mutation.mutant_runner import MutantSdk, mutant_of
from memconform.conformance.mutation.mutation import Mutation
from memconform.errors import DaemonError
from memconform.printing.logs import Logger
from memconform.tls import tls_context

_log = Logger()


@dataclass(slots=True)
class _PooledDaemon:
    settings: str
    """The settings as JSON."""
    fixture: Fixture
    runner: MutantSdk
    brains: set[str] = field(default_factory=set)
    """Brains to keep: the user's, on a daemon that memconform did not start."""


class DaemonPool:
    """Keeps up to `max_idle` idle daemons. Always close it."""

    def __init__(self, make_runner: MakeRunner, folder: Path, max_idle: int) -> None:
        self._make_runner = make_runner
        self._folder = folder
        self._max_idle = max_idle
        self.session = f"mc-{secrets.token_hex(4)}"
        """Prefix of all run ids, so that only daemons of this session are ever stopped."""
        self._idle: list[_PooledDaemon] = []
        self._count = 0

    async def close(self) -> None:
        """Stop all idle daemons; failures are logged."""
        idle, self._idle = self._idle, []
        results = await asyncio.gather(*(self._stop(d) for d in idle), return_exceptions=True)
        for error in results:
            if isinstance(error, Exception):
                _log.warning("a pooled daemon failed to stop", error=str(error))

    @asynccontextmanager
    async def lease(self, settings: DaemonSettings, mutation: Mutation) -> AsyncIterator[Fixture]:
        """Lend a daemon, without brains of earlier cases, that has this mutation until returned.

        Raises:
            DaemonError: if a new one has to be started, and does not start.
            UntestableError: if this SDK does not support the settings.
        """
        daemon = self._take(settings.model_dump_json()) or await self._start(settings)
        try:
            await asyncio.to_thread(daemon.runner.become, mutation, daemon.fixture.folder)
            yield daemon.fixture
        finally:
            await asyncio.to_thread(daemon.runner.become, Mutation(), daemon.fixture.folder)
            if await _restore(daemon):
                self._idle.append(daemon)
            else:
                await self._stop(daemon)
            while len(self._idle) > self._max_idle:
                await self._stop(self._idle.pop(0))

    def _take(self, settings: str) -> _PooledDaemon | None:
        for daemon in reversed(self._idle):
            if daemon.settings == settings:
                self._idle.remove(daemon)
                return daemon
        return None

    async def _start(self, settings: DaemonSettings) -> _PooledDaemon:
        self._count += 1
        runner = mutant_of(self._make_runner(), Mutation())
        folder = self._folder / f"pooled-{self._count:03}"
        run_id = f"{self.session}-{folder.name}"
        # A control would use up `skip` and `times` of a mutation.
        fixture = Fixture(runner, settings, folder, run_id, has_controls=False)
        daemon = _PooledDaemon(settings.model_dump_json(), fixture, runner)
        try:
            await fixture.prepare()
            if not runner.restartable:
                async with _http_client(fixture) as http:
                    daemon.brains = await _brain_ids(http)
        except BaseException:
            await self._stop(daemon)
            raise
        return daemon

    async def _stop(self, daemon: _PooledDaemon) -> None:
        try:
            await daemon.fixture.close()
        finally:
            await asyncio.to_thread(shutil.rmtree, daemon.fixture.folder, ignore_errors=True)


async def _restore(daemon: _PooledDaemon) -> bool:
    """Restore the daemon: running, with its own settings, without brains of cases.

    Returns:
        Whether that succeeded.
    """
    try:
        await daemon.fixture.restore()
        async with _http_client(daemon.fixture) as http:
            for brain in await _brain_ids(http) - daemon.brains:
                headers = {"X-Confirm-Delete": "yes"}
                response = await http.delete(f"/v1/brains/{brain}", headers=headers)
                response.raise_for_status()
    except (httpx.HTTPError, DaemonError, ValueError, KeyError, TypeError):
        return False
    return True


async def _brain_ids(http: httpx.AsyncClient) -> set[str]:
    return {brain["brainId"] for brain in (await http.get("/v1/brains")).json()["items"]}


def _http_client(fixture: Fixture) -> httpx.AsyncClient:
    address = fixture.address("daemon")
    return httpx.AsyncClient(
        base_url=address, trust_env=False, timeout=10, verify=tls_context(address)
    )
