"""A reference daemon and the scripted upstream behind it, started by the harness's own code."""

import asyncio
import json
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from httpx_sse import EventSource

from memconform.daemons.discovery import find_runner
from memconform.daemons.sdk_runner import Launch
from memconform.daemons.upstream import scripted_upstream
from memconform.errors import ExitCode
from tests.clients import client_of
from tests.conftest import WAIT_SECONDS
from tests.program import PROGRAM

CHECKOUT = Path(__file__).parents[3]

TIMEOUT_S = 6.0
"""The upstream timeout that the daemons are started with; two retries of the vendors' clients wait
up to 1.5 s together."""


@dataclass
class Served:
    daemon: httpx.AsyncClient
    upstream: httpx.AsyncClient

    async def script(self, *rules: dict[str, Any]) -> None:
        answer = await self.upstream.put("/_control/script", json={"rules": rules})
        assert answer.status_code == 204, answer.text

    async def requests(self, kind: str) -> list[dict[str, Any]]:
        records = (await self.upstream.get("/_control/requests")).json()
        assert records["dropped"] == 0
        return [record for record in records["requests"] if record["kind"] == kind]

    async def ask(self, question: str, **more: object) -> list[tuple[str, dict[str, Any]]]:
        """All events of an answer."""
        body = {"question": question, **more}
        async with self.daemon.stream("POST", "/v1/brains/b/ask", json=body) as response:
            assert response.status_code == 200, await response.aread()
            return [
                (event.event, json.loads(event.data))
                async for event in EventSource(response).aiter_sse()
            ]


@asynccontextmanager
async def served(sdk: str, folder: Path, **variables: str) -> AsyncIterator[Served]:
    """The daemon, pointed at an upstream, with some of its variables set otherwise."""
    runner = find_runner(sdk, CHECKOUT)
    runner.use_upstream("scripted")
    runner.use_variables({"JB_UPSTREAM_TIMEOUT": str(TIMEOUT_S), **variables})
    await runner.build(lambda _: None)
    run_id = f"test-{secrets.token_hex(4)}"
    async with scripted_upstream(folder / "upstream", f"{run_id}-upstream") as called:
        launch = Launch(run_id=run_id, folder=folder, upstream=called.base_url)
        async with (
            runner.serve(launch) as daemon,
            client_of(daemon.base_url) as http,
            client_of(called.base_url) as upstream,
        ):
            yield Served(http, upstream)


_CONFIRMED = {"X-Confirm-Delete": "yes"}

_SCRIPTED = {
    "JB_LLM_PROVIDER": "openai",
    "JB_EMBED_PROVIDER": "openai",
    "JB_RERANK_PROVIDER": "http",
}
"""What the reference daemons are told of the scripted upstream without a variable of a test."""


class SharedDaemons:
    """Each daemon with each of its environments once; a brain and a script are a test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: dict[tuple[str, frozenset[tuple[str, str]]], asyncio.Future[Served]] = {}
        self._end = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def served(self, sdk: str, **variables: str) -> AsyncIterator[Served]:
        """A daemon without the brain `b`, and its upstream without a script or a request."""
        own = variables.items() - _SCRIPTED.items()
        key = (sdk, frozenset(own))
        if key not in self._started:
            self._started[key] = asyncio.get_running_loop().create_future()
            self._tasks.append(asyncio.create_task(self._keep(self._started[key], sdk, dict(own))))
        server = await self._started[key]
        gone = await server.daemon.delete("/v1/brains/b", headers=_CONFIRMED)
        assert gone.status_code in (204, 404), gone.text
        await server.script()
        yield server

    async def _keep(
        self, started: asyncio.Future[Served], sdk: str, variables: dict[str, str]
    ) -> None:
        # Entered and left by one task, which no test is.
        folder = self._folder / f"{sdk}-{len(self._tasks)}"
        folder.mkdir()
        try:
            async with served(sdk, folder, **variables) as server:
                started.set_result(server)
                await self._end.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    async def close(self) -> None:
        self._end.set()
        await asyncio.gather(*self._tasks)


@contextmanager
def upstream_by_hand(environment: dict[str, str], *flags: str | Path) -> Iterator[str]:
    """The address of an upstream that the program serves."""
    process = subprocess.Popen(
        [PROGRAM, "upstream", "--addr", "127.0.0.1:0", *flags],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        yield line.split()[-1]
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode in (0, ExitCode.INTERRUPTED)
