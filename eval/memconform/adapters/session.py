"""An adapter at work: its process, which can be started anew with the folder of the first one."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from memconform.adapters.connection import AdapterConnection, adapter_process
from memconform.adapters.program import AdapterProgram, filled
from memconform.daemons.environment import BASE, shell_variables
from memconform.daemons.resources import Sampler

BATCH = 50
"""Items of one call of `store`."""
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "ANONYMIZED_TELEMETRY": "False",
    # Nothing listens there: what a system sends elsewhere than to this machine fails at once.
    **dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"
    ),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
}


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

    @classmethod
    def of(
        cls, program: AdapterProgram, python: str, folder: Path, *, upstream: str, embed_model: str
    ) -> Self:
        """The session of a program in a folder, which gets its log and its state.

        Args:
            program: the adapter.
            python: what `AdapterProgram.install` returned.
            folder: an existing folder.
            upstream: address of the scripted upstream; empty without one.
            embed_model: name of the upstream's embedding model; empty without one.
        """
        manifest, state = program.manifest, folder / "state"
        state.mkdir(exist_ok=True)
        placeholders = {"upstream": upstream, "embed_model": embed_model}
        variables = filled(program.variables(scripted=bool(upstream)), placeholders)
        return cls(
            python=sys.executable if program.is_npm else python,
            form=program.form,
            command=program.command(python),
            log=folder / "adapter.log",
            state=state,
            env=shell_variables([*BASE]) | _OFFLINE | {"HOME": str(state.absolute())} | variables,
            settings=filled(manifest.settings, placeholders),
            limit=manifest.timeout_s,
        )

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
