"""Daemons behind proxies, kept from mutant to mutant: a start costs more than a case."""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from memconform.conformance.case import Serving
from memconform.conformance.fixture import Fixture
from memconform.conformance.suite import MakeRunner
from memconform.conformance.transport import certificates
from memconform.errors import DaemonError
from memconform.fakes.mutant import MutantSdk, mutant_of
from memconform.fakes.mutation import Mutation
from memconform.printing.logs import Logger

_log = Logger()


@dataclass(slots=True)
class _PooledDaemon:
    serving: str
    fixture: Fixture
    runner: MutantSdk
    brains: set[str] = field(default_factory=set)
    """Those that were there before: of a daemon that somebody else has started, the user's."""


class DaemonPool:
    """At most `most` idle ones. Close it, whatever happens."""

    def __init__(self, make_runner: MakeRunner, folder: Path, most: int) -> None:
        self._make_runner = make_runner
        self._folder = folder
        self._most = most
        self.session = f"mc-{secrets.token_hex(4)}"
        """Begins the ids of all runs: those of another session are none of ours to end."""
        self._idle: list[_PooledDaemon] = []
        self._count = 0

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        ended = await asyncio.gather(*(self._end(k) for k in idle), return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                _log.warning("a kept daemon ended badly", error=str(error))

    @asynccontextmanager
    async def lease(self, serving: Serving, mutation: Mutation) -> AsyncIterator[Fixture]:
        """A daemon without a brain of ours that breaks this until it is given back.

        Raises:
            DaemonError: where one does not start.
            UntestableError: where this SDK has not what is wanted.
        """
        kept = self._taken(serving.model_dump_json()) or await self._started(serving)
        try:
            await asyncio.to_thread(kept.runner.become, mutation, kept.fixture.folder)
            yield kept.fixture
        finally:
            await asyncio.to_thread(kept.runner.become, Mutation(), kept.fixture.folder)
            if await _emptied(kept):
                self._idle.append(kept)
            else:
                await self._end(kept)
            while len(self._idle) > self._most:
                await self._end(self._idle.pop(0))

    def _taken(self, serving: str) -> _PooledDaemon | None:
        for kept in reversed(self._idle):
            if kept.serving == serving:
                self._idle.remove(kept)
                return kept
        return None

    async def _started(self, serving: Serving) -> _PooledDaemon:
        self._count += 1
        runner = mutant_of(self._make_runner(), Mutation())
        folder = self._folder / f"kept-{self._count:03}"
        fixture = Fixture(runner, serving, folder, f"{self.session}-{folder.name}")
        kept = _PooledDaemon(serving.model_dump_json(), fixture, runner)
        try:
            await fixture.prepare()
            if not runner.restartable:
                async with _client(fixture) as http:
                    kept.brains = await _brains(http)
        except BaseException:
            await self._end(kept)
            raise
        return kept

    async def _end(self, kept: _PooledDaemon) -> None:
        try:
            await kept.fixture.close()
        finally:
            await asyncio.to_thread(shutil.rmtree, kept.fixture.folder, ignore_errors=True)


async def _emptied(kept: _PooledDaemon) -> bool:
    """Whether the daemon is as it was at first: alive, as it was started, without a new brain."""
    try:
        await kept.fixture.restore()
        async with _client(kept.fixture) as http:
            for brain in await _brains(http) - kept.brains:
                headers = {"X-Confirm-Delete": "yes"}
                answer = await http.delete(f"/v1/brains/{brain}", headers=headers)
                answer.raise_for_status()
    except (httpx.HTTPError, DaemonError, ValueError, KeyError, TypeError):
        return False
    return True


async def _brains(http: httpx.AsyncClient) -> set[str]:
    return {brain["brainId"] for brain in (await http.get("/v1/brains")).json()["items"]}


def _client(fixture: Fixture) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=fixture.address("daemon"), trust_env=False, timeout=10, verify=certificates()
    )
