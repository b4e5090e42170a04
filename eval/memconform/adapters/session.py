"""An adapter at work: its process, which can be started anew with the folder of the first one."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memconform.adapters.connection import AdapterConnection, adapter_process
from memconform.daemons.resources import Sampler


@dataclass(slots=True)
class AdapterSession:
    """The processes of an adapter, one at a time."""

    python: str
    form: Literal["system", "lines"]
    command: Sequence[str]
    """The absolute path of a module, or with `lines` what starts a program."""
    log: Path
    """The file to which each process adds its output."""
    state: Path
    """The folder that each process gets, and finds as the last one left it."""
    env: Mapping[str, str]
    settings: Mapping[str, str]
    limit: float
    """Seconds for each call."""
    connection: AdapterConnection = field(init=False)
    sampler: Sampler = field(init=False)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack, init=False)

    async def call(self, verb: str, *arguments: object) -> dict[str, Any]:
        """Make one call. Raises as `AdapterConnection.call`."""
        return await self.connection.call(verb, *arguments)

    async def restart(self) -> None:
        """End the process, and start another one.

        Raises:
            DaemonError: if it does not start.
        """
        await self.end()
        await self._begin()
        self.sampler.follow(self.connection.process.guard_pid)
        await self._load()

    async def end(self) -> None:
        """End the process, if there is one."""
        await self._stack.aclose()

    async def _begin(self) -> None:
        # Not the user's folder, where a system might find settings, such as a `.env`.
        process = adapter_process(
            self.python, self.log, env=self.env, cwd=self.state, limit=self.limit
        )
        self.connection = await self._stack.enter_async_context(process)

    async def _load(self) -> None:
        await self.call("load", self.form, list(self.command))
        await self.call("start", str(self.state.absolute()), dict(self.settings))

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the adapter until the block is left.

        Raises:
            DaemonError: if it does not start.
        """
        async with self._stack:
            await self._begin()
            self.sampler = Sampler(self.connection.process.guard_pid)
            sampling = asyncio.create_task(self.sampler.run())
            try:
                await self._load()
                yield
            finally:
                sampling.cancel()
