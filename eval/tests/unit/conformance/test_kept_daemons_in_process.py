"""`--keep` on daemons in this process: what stays on them, and how the waiting ends."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.cli.interrupts import cancel_on_signals
from memconform.cli.kept_daemons import KeptDaemon, wait_until_interrupted
from memconform.concurrency import Slots
from memconform.conformance.catalog import catalog
from memconform.conformance.kept_daemons import KeptDaemons
from memconform.conformance.results import Result
from memconform.conformance.suite import SdkFinished, conform
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner

_CASES = """
- id: has-counts
  title: A brain has counts
  rules: [core.brain.create]
  steps:
    - http: GET ${brain_url}
      expect:
        found: 200
- id: is-listed
  title: Health is reported
  rules: [core.health]
  steps:
    - http: GET /healthz
      expect:
        healthy: 200
"""


class _Daemon(SdkRunner):
    """Stores the ids of brains; a brain that is read lacks its counts."""

    name = "countless"
    modes = None

    def __init__(self, *, managed: bool) -> None:
        self.managed = managed
        self.brains: set[str] = set()

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator["object"]:  # type: ignore[override]
        async with (
            serving(self._answer, "127.0.0.1", 0) as port,
            UrlRunner(f"http://127.0.0.1:{port}").serve(launch) as daemon,
        ):
            yield daemon

    async def _answer(self, request: RawRequest, exchange: RawExchange) -> None:
        name = request.path.strip("/").split("/")[-1]
        brain: dict[str, Any] = {"brainId": name, "documents": 0, "chunks": 0, "vectors": 0}
        match request.method:
            case "GET" if name == "healthz":
                await exchange.json({"ok": True})
            case "POST":
                name = request.json()["brainId"]
                self.brains.add(name)
                await exchange.json(brain | {"brainId": name, "pending": 0}, 201)
            case "GET" if name in self.brains:
                await exchange.json(brain)
            case "DELETE":
                self.brains.discard(name)
                await exchange.raw(b"HTTP/1.1 204 X\r\n\r\n")
            case _:
                await exchange.problem(404, "not_found", "no such brain")


async def _conform(folder: Path, daemon: _Daemon, keep: KeptDaemons | None) -> SdkFinished:
    (folder / "cases").mkdir()
    (folder / "cases" / "cases.yaml").write_text(_CASES)
    events = conform(
        daemon.name,
        lambda: daemon,
        catalog(folder / "cases"),
        known=(),
        folder=folder / "daemons",
        run_id="run",
        slots=Slots(1),
        keep=keep,
    )
    return [event async for event in events if isinstance(event, SdkFinished)][-1]


@pytest.mark.parametrize("managed", [True, False])
async def test_the_brain_of_a_failed_case_stays_until_the_end(
    tmp_path: Path, *, managed: bool
) -> None:
    daemon = _Daemon(managed=managed)
    async with KeptDaemons() as kept:
        finished = await _conform(tmp_path, daemon, kept)
        case = next(c for c in finished.result.cases if c.case == "has-counts")
        check = next(c for c in case.checks if c.result is Result.FAIL)
        # The brain of the case that passed has been deleted.
        assert daemon.brains == {"mc-has-counts"}
        [(name, running)] = kept.daemons()
        assert name == "countless"
        url = f"{running.base_url}/v1/brains/mc-has-counts"
        assert url in check.curl
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(url)).status_code == 200
    # What memconform did not start stays, without the brains of the cases.
    assert daemon.brains == ({"mc-has-counts"} if managed else set())


async def test_without_keep_no_brain_stays(tmp_path: Path) -> None:
    daemon = _Daemon(managed=True)
    finished = await _conform(tmp_path, daemon, None)
    assert finished.result.counts()[Result.FAIL]
    assert daemon.brains == set()


async def _never() -> str:
    await asyncio.Event().wait()
    return ""


async def _at_once() -> str:
    return "exit status 3"


async def test_waiting_ends_with_the_last_daemon(capsys: pytest.CaptureFixture[str]) -> None:
    one = KeptDaemon("one", "http://127.0.0.1:1", _at_once, 7, lambda: "the last words\nof one")
    two = KeptDaemon("two", "http://127.0.0.1:2", _at_once)
    await wait_until_interrupted([one, two], ["a hint"])
    lines = capsys.readouterr().err.splitlines()
    assert lines[:4] == [
        "kept: one at http://127.0.0.1:1, process 7",
        "kept: two at http://127.0.0.1:2",
        "a hint",
        f"to stop: Ctrl-C, or kill {os.getpid()}",
    ]
    assert sorted(lines[4:]) == [
        "  | of one",
        "  | the last words",
        "ended: one at http://127.0.0.1:1, exit status 3",
        "ended: two at http://127.0.0.1:2, exit status 3",
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_waiting_and_nothing_else(number: signal.Signals) -> None:
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        cancel_on_signals()
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
        await wait_until_interrupted([KeptDaemon("one", "http://127.0.0.1:1", _never)])
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
    # The task goes on: it stops the daemons, and returns the exit code of the report.
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)
