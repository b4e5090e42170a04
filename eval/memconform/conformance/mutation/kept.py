"""Daemons behind proxies, kept from mutant to mutant: a start costs more than a case."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from memconform.conformance.case import Serving
from memconform.conformance.fixture import Fixture
from memconform.conformance.suite import BRAIN_PREFIX, MakeRunner
from memconform.conformance.transport import certificates
from memconform.errors import DaemonError
from memconform.fakes.mutant import MutantSdk, mutant_of
from memconform.fakes.mutation import Mutation


@dataclass(slots=True)
class _Kept:
    serving: str
    fixture: Fixture
    runner: MutantSdk


class KeptDaemons:
    """At most `most` idle ones; use as an async context manager."""

    def __init__(self, make_runner: MakeRunner, folder: Path, most: int) -> None:
        self._make_runner = make_runner
        self._folder = folder
        self._most = most
        self._idle: list[_Kept] = []
        self._count = 0

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(self._end(kept) for kept in idle))

    @asynccontextmanager
    async def mutated(self, serving: Serving, mutation: Mutation) -> AsyncIterator[Fixture]:
        """A daemon without a brain that breaks this until it is given back.

        Raises:
            DaemonError: where one does not start.
            UntestableError: where this SDK has not what is wanted.
        """
        kept = self._taken(serving.model_dump_json()) or await self._started(serving)
        sound = False
        try:
            await asyncio.to_thread(kept.runner.become, mutation, kept.fixture.folder)
            yield kept.fixture
            await asyncio.to_thread(kept.runner.become, Mutation(), kept.fixture.folder)
            sound = await _emptied(kept.fixture)
        finally:
            if sound:
                self._idle.append(kept)
            else:
                await self._end(kept)
            while len(self._idle) > self._most:
                await self._end(self._idle.pop(0))

    def _taken(self, serving: str) -> _Kept | None:
        for kept in reversed(self._idle):
            if kept.serving == serving:
                self._idle.remove(kept)
                return kept
        return None

    async def _started(self, serving: Serving) -> _Kept:
        self._count += 1
        runner = mutant_of(self._make_runner(), Mutation())
        folder = self._folder / f"kept-{self._count:03}"
        fixture = Fixture(runner, serving, folder, f"mc-{folder.name}")
        kept = _Kept(serving.model_dump_json(), fixture, runner)
        try:
            await fixture.prepare()
        except BaseException:
            await self._end(kept)
            raise
        return kept

    async def _end(self, kept: _Kept) -> None:
        try:
            await kept.fixture.close()
        finally:
            await asyncio.to_thread(shutil.rmtree, kept.fixture.folder, ignore_errors=True)


async def _emptied(fixture: Fixture) -> bool:
    """Whether the daemon is as it was at first: alive, as it was started, without our brains."""
    try:
        await fixture.restore()
        async with httpx.AsyncClient(
            base_url=fixture.address("daemon"), trust_env=False, timeout=10, verify=certificates()
        ) as http:
            for brain in (await http.get("/v1/brains")).json()["items"]:
                # No other is ours to delete: the daemon may be one that somebody else has started.
                if brain["brainId"].startswith(BRAIN_PREFIX):
                    line = f"/v1/brains/{brain['brainId']}"
                    answer = await http.delete(line, headers={"X-Confirm-Delete": "yes"})
                    answer.raise_for_status()
    except (httpx.HTTPError, DaemonError, ValueError, KeyError, TypeError):
        return False
    return True
