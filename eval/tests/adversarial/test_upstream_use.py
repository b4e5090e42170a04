"""A run that asked for the scripted upstream has no scores of another reader."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.contract.wire import Mode
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.manifest_runner import ManagedDaemon
from memconform.daemons.ports import Address
from memconform.daemons.resources import Resources, Sampler
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.printing.errors import render_error
from memconform.runs.events import RunFinished, RunHalted
from memconform.runs.plan import Plan
from memconform.runs.results import RunResult
from memconform.runs.schedule import execute
from tests.adversarial.inprocess import QUESTIONS, FaultyRun, plan_of, write_dataset
from tests.clients import client_of
from tests.fakes.hostile import HostileDaemon

READABLE = "Notes:\n\n[1] a.md\nThe lamp is green.\n\nQuestion: Which colour has the lamp?"


class _Runner(SdkRunner):
    """A correct daemon that asks the scripted upstream, or another one, only sometimes."""

    name = "asks"
    modes = (Mode.AUTO, Mode.BM25)

    def __init__(self, every: int, prompt: str = READABLE, elsewhere: tuple[str, ...] = ()) -> None:
        """`every`: ask the upstream for every n-th answer; 0 never."""
        self._every, self._prompt, self._elsewhere = every, prompt, elsewhere
        self._daemon = HostileDaemon(())
        self._asked = 0

    def use_upstream(self, kind: UpstreamKind) -> None:
        assert kind == "scripted"

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator["object"]:  # type: ignore[override]
        assert launch.upstream is not None
        connections = (launch.upstream.removeprefix("http://"), *self._elsewhere)
        async with (
            client_of(launch.upstream) as self._http,
            serving(self._answer, "127.0.0.1", 0) as port,
            UrlRunner(f"http://127.0.0.1:{port}").serve(launch) as daemon,
        ):
            daemon.resources = lambda: Resources(1, 1.0, connections)  # type: ignore[method-assign]
            yield daemon

    async def _answer(self, request: RawRequest, exchange: RawExchange) -> None:
        if request.path.endswith("/ask"):
            self._asked += 1
            if self._every and self._asked % self._every == 0:
                messages = [{"role": "user", "content": self._prompt}]
                body = {"model": "extractive", "messages": messages}
                await self._http.post("/v1/chat/completions", json=body)
        await self._daemon.answer(request, exchange)


def _plan(folder: Path, scenario: str = "ask-basic", concurrency: int = 1) -> Plan:
    plan = plan_of(FaultyRun((), scenario, concurrency), write_dataset(folder), folder)
    return replace(plan, settings=plan.settings.model_copy(update={"upstream": "scripted"}))


async def _run(plan: Plan, runner: _Runner) -> tuple[RunResult, list[str], Path]:
    halts: list[str] = []
    async for event in execute(plan, runner):
        if isinstance(event, RunHalted):
            halts.append(str(render_error(event.error)))
        if isinstance(event, RunFinished):
            result = RunResult.model_validate_json(event.result.read_bytes())
            return result, halts, event.result.with_name("journal.jsonl")
    raise AssertionError("the run ended without its result")


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_daemon_that_ignores_the_upstream_has_no_scores(
    tmp_path: Path, concurrency: int
) -> None:
    runner = _Runner(every=0, elsewhere=("127.0.0.1:11434", "203.0.113.9:443"))
    result, halts, _ = await _run(_plan(tmp_path, concurrency=concurrency), runner)
    assert result.incident is not None
    assert (result.incident.code, result.exit_code) == ("upstream_not_called", 3)
    assert (result.pass_rate, result.mean_score, result.passed) == (None, None, 0)
    assert not any(question.verdict.measured for question in result.questions)
    assert {q.error.code for q in result.questions if q.error} == {"upstream_not_called"}
    assert "127.0.0.1:11434, 203.0.113.9:443" in halts[0]
    assert result.upstream is not None
    assert (result.upstream.answered, result.upstream.asked) == (QUESTIONS, 0)
    assert result.upstream.elsewhere == ["127.0.0.1:11434", "203.0.113.9:443"]


async def test_a_resumed_run_does_not_adopt_answers_of_another_reader(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    _, _, journal = await _run(plan, _Runner(every=0))
    result, _, _ = await _run(replace(plan, resumed=journal), _Runner(every=1))
    assert result.incident is None
    assert result.upstream is not None
    assert result.upstream.answered == QUESTIONS
    assert result.passed > 0


async def test_a_daemon_that_asks_the_upstream_has_scores_and_no_warning(tmp_path: Path) -> None:
    result, halts, _ = await _run(_plan(tmp_path), _Runner(every=1))
    assert (result.incident, halts, result.passed > 0) == (None, [], True)
    assert result.upstream is not None
    assert (result.upstream.answered, result.upstream.refused) == (QUESTIONS, 0)
    assert result.upstream.asked >= QUESTIONS
    assert not any("upstream" in reason for reason in result.reasons)


async def test_answers_that_did_not_need_the_upstream_are_counted(tmp_path: Path) -> None:
    result, _, _ = await _run(_plan(tmp_path), _Runner(every=3))
    assert result.incident is None
    [reason] = [reason for reason in result.reasons if "upstream" in reason]
    assert f"the daemon gave {QUESTIONS}" in reason


async def test_connections_to_another_address_are_named(tmp_path: Path) -> None:
    result, _, _ = await _run(_plan(tmp_path), _Runner(every=1, elsewhere=("127.0.0.1:5432",)))
    assert result.incident is None
    [reason] = [reason for reason in result.reasons if "upstream" in reason]
    assert "127.0.0.1:5432" in reason


async def test_refused_prompts_are_quoted(tmp_path: Path) -> None:
    result, _, _ = await _run(_plan(tmp_path), _Runner(every=1, prompt="Lamp?\nKiln?"))
    [reason] = [reason for reason in result.reasons if "refused" in reason]
    assert "no marked question" in reason


async def test_a_search_needs_no_reader(tmp_path: Path) -> None:
    result, _, _ = await _run(_plan(tmp_path, "search-retrieve-only"), _Runner(every=0))
    assert (result.incident, result.passed > 0) == (None, True)


_AS_CHILD = 'exec 3<&0; "$0" "$@" <&3; true'
_CONNECTS = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
own = socket.create_connection(listener.getsockname())
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


async def test_the_sampler_sees_servers_that_a_child_connects_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        # A shell in between: the connection belongs to a descendant.
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", _AS_CHILD, sys.executable, "-c", _CONNECTS),
            str(port),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        own = int(await process.stdout.readline())
        with socket.create_connection(("127.0.0.1", own)):
            seen = {}
            for watches in (True, False):
                sampler = Sampler(process.pid, watches_connections=watches)
                sampler.sample()
                seen[watches] = sampler.result().connections
        process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 60)
    assert seen == {True: (f"127.0.0.1:{port}",), False: ()}


_CONNECTS_WHEN_TOLD = """
import socket, sys
print("ready", flush=True)
sys.stdin.readline()
kept = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("connected", flush=True)
sys.stdin.read()
"""


async def test_a_connection_between_two_samples_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run of four questions took less than a quarter of a second."""
    monkeypatch.setattr("memconform.daemons.resources._INTERVAL_SECONDS", 3600)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", _AS_CHILD, sys.executable, "-c", _CONNECTS_WHEN_TOLD, str(port)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        assert await process.stdout.readline() == b"ready\n"
        launch = Launch(run_id="x", folder=tmp_path, upstream="http://127.0.0.1:9", sampled=True)
        daemon = ManagedDaemon(
            Mock(), launch, Mock(guard_pid=process.pid), Address("127.0.0.1", 1), 0.0
        )
        first = daemon.resources()
        process.stdin.write(b"\n")
        assert await process.stdout.readline() == b"connected\n"
        second = daemon.resources()
        await daemon.close()
        process.stdin.close()
        await process.wait()
    assert first is not None
    assert second is not None
    assert (first.connections, second.connections) == ((), (f"127.0.0.1:{port}",))


def test_results_of_earlier_versions_have_no_upstream() -> None:
    field = RunResult.model_fields["upstream"]
    assert not field.is_required()
    assert json.dumps(field.default) == "null"
