"""Calls to language models: the vendors' own clients against the scripted upstream's process."""

import asyncio
import gzip
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import pytest_asyncio

from memconform.daemons.upstream import scripted_upstream
from memconform.datasets.question import Question
from memconform.llm import session
from memconform.llm.budget import Ledger
from memconform.llm.cache import ReplyCache
from memconform.llm.chat import (
    BudgetSpentError,
    ChatRequest,
    Completion,
    LlmError,
    ModelUnusableError,
    NotCachedError,
    RequestRejectedError,
    ServiceDownError,
    Usage,
)
from memconform.llm.names import ModelName
from memconform.llm.prices import NANO
from memconform.llm.replies import InvalidReplyError
from memconform.llm.session import CallPolicy, LlmSession, Model
from memconform.printing.errors import render_error
from memconform.scoring.judge.prompt import judge_request, parse_reply
from tests.clients import client_of
from tests.conftest import WAIT_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

_NAMES = ("openai:gpt-4o-2024-08-06", "anthropic:claude-haiku-4-5", "ollama:llama3:8b")
_RIGHT = '{"reason": "same harbour", "verdict": "correct", "score": 1}'
_QUESTION = Question(id="q", question="Where is the boat?", answers=("The boat is in Brel.",))


@dataclass
class Upstream:
    url: str
    http: httpx.AsyncClient

    async def script(self, *replies: dict[str, Any]) -> None:
        """Answer with these, each once, and with the last one from then on."""
        rules = [{"reply": reply, "times": 1} for reply in replies[:-1]]
        rules += [{"reply": reply} for reply in replies[-1:]]
        answer = await self.http.put("/_control/script", json={"rules": rules})
        assert answer.status_code == 204, answer.text

    async def requests(self) -> list[dict[str, Any]]:
        answer = await self.http.get("/_control/requests")
        received: list[dict[str, Any]] = answer.json()["requests"]
        return received


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Upstream]:
    async with (
        scripted_upstream(tmp_path_factory.mktemp("upstream"), f"llm-{os.getpid()}") as daemon,
        client_of(daemon.base_url) as http,
    ):
        yield Upstream(daemon.base_url, http)


@pytest_asyncio.fixture(loop_scope="module")
async def upstream(process: Upstream) -> Upstream:
    await process.script({"text": _RIGHT})
    return process


Opened = Callable[..., Model]


@pytest_asyncio.fixture(loop_scope="module")
async def opened(upstream: Upstream, tmp_path: Path) -> AsyncIterator[Opened]:
    """Opens a model at the upstream, in a session of its own."""
    sessions: list[LlmSession] = []

    def make(
        name: str = _NAMES[0], *, budget: float | None = None, key: str = "k", **policy: Any
    ) -> Model:
        env = {
            "OPENAI_API_KEY": key,
            "OPENAI_BASE_URL": f"{upstream.url}/v1",
            "ANTHROPIC_API_KEY": key,
            "ANTHROPIC_BASE_URL": upstream.url,
            "OLLAMA_HOST": upstream.url.removeprefix("http://"),
        }
        session = LlmSession(
            Ledger(budget),
            policy=replace(CallPolicy(deadline_s=60), **policy),
            cache=ReplyCache(tmp_path / "cache"),
            env=env,
        )
        sessions.append(session)
        return session.model(ModelName.parse(name, env))

    yield make
    for each in sessions:
        await each.aclose()


def _request(answer: str = "It is in Brel.") -> ChatRequest:
    return judge_request(_QUESTION, answer)


@pytest.mark.parametrize("name", _NAMES)
async def test_each_vendors_client_asks_and_reports_what_the_service_counted(
    name: str, upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"text": _RIGHT, "usage": {"input": 200, "output": 30}})
    model = opened(name)
    reply = await model.ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.output) == (200, 30)
    assert reply.served_model == model.name.model
    price = model.traits.price
    assert price is not None
    assert reply.cost == round((200 * price.input + 30 * price.output) * NANO / 1e6)
    assert model.session.ledger.committed == reply.cost
    [request] = await upstream.requests()
    assert request["body"]["model"] == model.name.model
    assert request["body"]["temperature"] == 0


@pytest.mark.parametrize("name", _NAMES)
async def test_a_cached_call_asks_nothing_and_costs_nothing(
    name: str, upstream: Upstream, opened: Opened
) -> None:
    first = await opened(name).ask(_request(), parse_reply)
    model = opened(name, cache="only")
    again = await model.ask(_request(), parse_reply)
    assert (first.cached, again.cached, again.cost) == (False, True, 0)
    assert again.value == first.value
    assert model.session.ledger.committed == 0
    assert len(await upstream.requests()) == 1


async def test_cache_only_refuses_what_is_not_cached(upstream: Upstream, opened: Opened) -> None:
    with pytest.raises(NotCachedError):
        await opened(cache="only").ask(_request(), parse_reply)
    assert await upstream.requests() == []


async def test_another_prompt_version_or_model_is_another_call(
    upstream: Upstream, opened: Opened
) -> None:
    model = opened()
    await model.ask(_request(), parse_reply)
    changed = replace(_request(), prompt_version="judge-0")
    with pytest.raises(NotCachedError):
        await opened(cache="only").ask(changed, parse_reply)
    with pytest.raises(NotCachedError):
        await opened("openai:gpt-4.1-2025-04-14", cache="only").ask(_request(), parse_reply)
    assert len(await upstream.requests()) == 1


async def test_a_corrupt_cache_entry_is_a_miss(
    upstream: Upstream, opened: Opened, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await opened().ask(_request(), parse_reply)
    [entry] = (tmp_path / "cache").glob("??/*")
    whole = entry.read_bytes()
    for damaged in (whole[:-20], whole.replace(b"correct", b"corrupt"), b"", b"\xff" * 40):
        entry.write_bytes(damaged)
        reply = await opened().ask(_request(), parse_reply)
        assert not reply.cached
        assert reply.value.verdict == "correct"
        assert "a cached reply is damaged" in capsys.readouterr().out
    assert len(await upstream.requests()) == 5


async def test_a_cache_that_cannot_be_written_loses_no_reply(
    opened: Opened, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where the folder belongs")
    reply = await opened().ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"


@pytest.mark.parametrize("name", _NAMES[:2])
@pytest.mark.parametrize("status", [429, 500, 503, 529, 408])
async def test_a_failing_service_is_asked_again(
    status: int, name: str, upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"status": status}, {"text": _RIGHT})
    reply = await opened(name).ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"
    assert len(await upstream.requests()) == 2


async def test_retry_after_is_honoured(upstream: Upstream, opened: Opened) -> None:
    await upstream.script({"status": 429, "retry_after": 1.2}, {"text": _RIGHT})
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await opened().ask(_request(), parse_reply)
    assert loop.time() - begun >= 1.2  # short limit: a stall adds to it


async def test_a_retry_after_beyond_the_deadline_fails_at_once(
    upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"status": 429, "retry_after": 3600})
    async with asyncio.timeout(WAIT_SECONDS):
        with pytest.raises(LlmError, match="429"):
            await opened(deadline_s=600).ask(_request(), parse_reply)


async def test_a_storm_of_429_lowers_the_limit_and_every_call_ends_well(
    upstream: Upstream, opened: Opened
) -> None:
    await upstream.script(*[{"status": 429}] * 20, {"text": _RIGHT})
    model = opened(deadline_s=60)
    replies = await asyncio.gather(
        *(model.ask(_request(f"Brel, {number}"), parse_reply) for number in range(16))
    )
    assert all(reply.value.verdict == "correct" for reply in replies)
    assert model.provider.limiter.limit < 16


async def test_a_silent_service_is_asked_again(upstream: Upstream, opened: Opened) -> None:
    await upstream.script({"fault": "hang"}, {"text": _RIGHT})
    # short limit: half of it is waited out, and the reply that follows takes milliseconds.
    model = opened(deadline_s=24)
    reply = await model.ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"


@pytest.mark.parametrize("name", _NAMES[:2])
async def test_a_slow_import_of_a_vendors_library_takes_no_time_of_a_call(
    name: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took all 8 s that the first call had on a busy machine, and stopped all others."""
    model = opened(name)
    client = getattr(model.chat, "_client")  # noqa: B009 - of both vendors' classes
    begun, others_ran = threading.Event(), threading.Event()

    def slow(opened_at_once: Callable[[], Any] = client._opened) -> Any:
        begun.set()
        assert others_ran.wait(WAIT_SECONDS)
        return opened_at_once()

    monkeypatch.setattr(client, "_opened", slow)
    complete = model.chat.complete
    open_at_first: list[bool] = []

    async def observed(request: ChatRequest, seconds: float) -> Completion:
        open_at_first.append(client._client is not None)
        return await complete(request, seconds)

    monkeypatch.setattr(model.chat, "complete", observed)
    asked = asyncio.ensure_future(model.ask(_request(), parse_reply))
    assert await asyncio.to_thread(begun.wait, WAIT_SECONDS)
    others_ran.set()
    assert (await asked).value.verdict == "correct"
    assert open_at_first == [True]


@pytest.mark.parametrize("fault", ["cut", "bad_json"])
@pytest.mark.parametrize("name", _NAMES[:2])
async def test_a_cut_body_is_asked_for_again_and_stays_paid(
    name: str, fault: str, upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"text": _RIGHT, "fault": fault}, {"text": _RIGHT})
    model = opened(name)
    reply = await model.ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"
    assert model.traits.price is not None
    once = model.traits.price.cost(reply.usage) if reply.usage else 0
    # The service may have charged for the reply that was cut: its reservation is kept.
    assert model.session.ledger.committed == reply.cost > once


async def test_a_service_that_cannot_be_reached_is_named_soon(opened: Opened) -> None:
    model = opened()
    where = replace(model.endpoint, base_url="http://127.0.0.1:9/v1")
    unreachable = LlmSession(
        Ledger(), env={**model.session.env, "OPENAI_BASE_URL": str(where.base_url)}
    )
    with pytest.raises(ServiceDownError, match="cannot be reached"):
        await unreachable.model(model.name).ask(_request("elsewhere"), parse_reply)
    await unreachable.aclose()


async def test_five_calls_that_fail_to_the_end_mean_that_the_service_is_down(
    upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"status": 500})
    model = opened(deadline_s=0.4)  # short limit: every call fails
    ends = await asyncio.gather(
        *(model.ask(_request(f"{n}"), parse_reply) for n in range(5)), return_exceptions=True
    )
    assert sum(isinstance(end, ServiceDownError) for end in ends) == 1
    assert all(isinstance(end, LlmError) for end in ends)


_INVALID = {
    "prose around": f"Here it is: {_RIGHT}",
    "two fences": f"```json\n{_RIGHT}\n```\n```json\n{_RIGHT}\n```",
    "repeated key": '{"reason": "a", "verdict": "incorrect", "verdict": "correct", "score": 1}',
    "NaN": '{"reason": "a", "verdict": "correct", "score": NaN}',
    "1e999": '{"reason": "a", "verdict": "correct", "score": 1e999}',
    "out of range": '{"reason": "a", "verdict": "correct", "score": 3}',
    "3 out of 5": '{"reason": "a", "verdict": "correct", "score": "3 out of 5"}',
    "boolean score": '{"reason": "a", "verdict": "correct", "score": true}',
    "list": f"[{_RIGHT}]",
    "two objects": f"{_RIGHT}\n{_RIGHT}",
    "contradiction": '{"reason": "a", "verdict": "correct", "score": 0.2}',
    "unknown verdict": '{"reason": "a", "verdict": "mostly", "score": 0.7}',
    "another question": '{"id": "q7", "reason": "a", "verdict": "correct", "score": 1}',
    "no reason": '{"verdict": "correct", "score": 1}',
    "empty": "",
    "number": "1",
}


@pytest.mark.parametrize("text", _INVALID.values(), ids=_INVALID)
async def test_an_invalid_reply_is_repaired_once_and_then_an_error(
    text: str, upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"text": text}, {"text": _RIGHT})
    reply = await opened().ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"
    assert len(await upstream.requests()) == 2

    await upstream.script({"text": text})
    model = opened(cache="off")
    with pytest.raises(InvalidReplyError) as raised:
        await model.ask(_request(), parse_reply)
    assert len(await upstream.requests()) == 2
    # Both tries were paid for.
    assert raised.value.cost == model.session.ledger.committed > 0


def _openai_body(**choice: Any) -> dict[str, Any]:
    choices = [{"index": 0, **choice}] if choice else []
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}


_UNUSABLE = {
    "no choice": _openai_body(),
    "refusal": _openai_body(
        message={"role": "assistant", "content": None, "refusal": "no"}, finish_reason="stop"
    ),
    "cut at the limit": _openai_body(
        message={"role": "assistant", "content": _RIGHT}, finish_reason="length"
    ),
    "filtered": _openai_body(
        message={"role": "assistant", "content": _RIGHT}, finish_reason="content_filter"
    ),
    "no content": _openai_body(
        message={"role": "assistant", "content": None}, finish_reason="stop"
    ),
}


@pytest.mark.parametrize("body", _UNUSABLE.values(), ids=_UNUSABLE)
async def test_a_refused_empty_or_cut_reply_is_not_a_verdict(
    body: dict[str, Any], upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"body": body}, {"text": _RIGHT})
    reply = await opened().ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"
    await upstream.script({"body": body})
    with pytest.raises(InvalidReplyError):
        await opened(cache="off").ask(_request(), parse_reply)


@pytest.mark.parametrize("stop", ["refusal", "max_tokens"])
async def test_an_anthropic_reply_that_stopped_early_is_not_a_verdict(
    stop: str, upstream: Upstream, opened: Opened
) -> None:
    body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": _RIGHT}],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 3},
    }
    await upstream.script({"body": body})
    with pytest.raises(InvalidReplyError):
        await opened(_NAMES[1], cache="off").ask(_request(), parse_reply)


@pytest.mark.parametrize("name", _NAMES[:2])
@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, ModelUnusableError), (404, ModelUnusableError), (400, RequestRejectedError)],
)
async def test_a_wrong_key_model_or_length_is_one_request(
    status: int, kind: type[LlmError], name: str, upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"status": status})
    model = opened(name)
    with pytest.raises(kind):
        await model.ask(_request(), parse_reply)
    assert len(await upstream.requests()) == 1
    assert model.session.ledger.committed == 0


async def test_a_budget_holds_with_16_calls_in_flight(upstream: Upstream, opened: Opened) -> None:
    usage = {"input": 1000, "output": 100}
    await upstream.script({"text": _RIGHT, "usage": usage, "delay_ms": 50})
    model = opened(budget=0.05)
    ends = await asyncio.gather(
        *(model.ask(_request(f"{n}"), parse_reply) for n in range(100)), return_exceptions=True
    )
    paid = [end for end in ends if not isinstance(end, BaseException)]
    refused = [end for end in ends if isinstance(end, BudgetSpentError)]
    assert len(paid) + len(refused) == 100
    assert paid
    assert refused
    assert len(await upstream.requests()) == len(paid)
    committed = model.session.ledger.committed
    assert committed == sum(end.cost for end in paid)
    # Here each call took less than was reserved for it.
    assert committed <= 0.05 * NANO
    kept = opened(cache="only")
    for number, end in enumerate(ends):
        if not isinstance(end, BaseException):
            assert (await kept.ask(_request(f"{number}"), parse_reply)).cached


def _openai_choices(choices: Any, **more: Any) -> dict[str, Any]:
    return _openai_body() | {"choices": choices} | more


_ODD = {
    "choices are a number": _openai_choices(7),
    "choices are text": _openai_choices("many"),
    "choices are an object": _openai_choices({"a": 1}),
    "choice is a number": _openai_choices([1]),
    "choice is null": _openai_choices([None]),
    "message is text": _openai_choices([{"message": "hello", "finish_reason": "stop"}]),
    "content is a list": _openai_choices(
        [{"message": {"role": "assistant", "content": [1]}, "finish_reason": "stop"}]
    ),
    "deep": _openai_choices(json.loads("[" * 90 + "]" * 90)),
}


def _retry_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first wait for another try be longer than the deadline."""
    monkeypatch.setattr(session, "_FIRST_BACKOFF_S", 1e6)


@pytest.mark.parametrize("body", _ODD.values(), ids=_ODD)
async def test_a_reply_of_another_shape_is_asked_for_again_and_ends_no_run(
    body: object, upstream: Upstream, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    await upstream.script({"body": body}, {"text": _RIGHT})
    reply = await opened().ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"
    await upstream.script({"body": body})
    _retry_never(monkeypatch)
    with pytest.raises(LlmError) as raised:
        await opened(cache="off").ask(_request(), parse_reply)
    assert raised.value.code in ("llm_bad_reply", "llm_invalid_reply")


@pytest.mark.parametrize("content", [7, [{"type": "text"}], [{"type": "text", "text": None}]])
async def test_an_anthropic_reply_of_another_shape_ends_no_run(
    content: object, upstream: Upstream, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    _retry_never(monkeypatch)
    body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content}
    await upstream.script({"body": body | {"stop_reason": "end_turn", "usage": {}}})
    with pytest.raises(LlmError):
        await opened(_NAMES[1], cache="off").ask(_request(), parse_reply)


@pytest.mark.parametrize("count", [10**30, -1, 0, None, 1.5, [3]])
async def test_an_invalid_count_of_tokens_keeps_the_reservation(
    count: object, upstream: Upstream, opened: Opened
) -> None:
    choice = {"index": 0, "finish_reason": "stop"}
    message = {"role": "assistant", "content": _RIGHT}
    body = _openai_choices([choice | {"message": message}])
    body["usage"] = {"prompt_tokens": count, "completion_tokens": 1, "total_tokens": 1}
    await upstream.script({"body": body})
    model = opened(budget=1.0)
    reply = await model.ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"
    assert reply.usage is None
    assert model.session.ledger.committed == reply.cost > 0


async def test_reasoning_that_only_the_total_counts_is_charged(
    upstream: Upstream, opened: Opened
) -> None:
    choice = {"index": 0, "finish_reason": "stop"}
    body = _openai_choices([choice | {"message": {"role": "assistant", "content": _RIGHT}}])
    body["usage"] = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 510}
    await upstream.script({"body": body})
    reply = await opened().ask(_request(), parse_reply)
    assert reply.usage == Usage(100, 410)


async def test_an_account_without_credit_is_not_asked_again(
    upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"status": 402})
    with pytest.raises(ModelUnusableError, match="402"):
        await opened().ask(_request(), parse_reply)
    assert len(await upstream.requests()) == 1


async def test_equal_calls_at_the_same_time_are_made_and_paid_once(
    upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"text": _RIGHT, "delay_ms": 200})
    model = opened()
    replies = await asyncio.gather(*(model.ask(_request(), parse_reply) for _ in range(5)))
    assert len(await upstream.requests()) == 1
    assert sorted(reply.cached for reply in replies) == [False, True, True, True, True]
    assert sum(reply.cost for reply in replies) == model.session.ledger.committed


async def test_equal_calls_that_fail_are_each_told_so(upstream: Upstream, opened: Opened) -> None:
    await upstream.script({"status": 400, "delay_ms": 100})
    model = opened()
    ends = await asyncio.gather(
        *(model.ask(_request(), parse_reply) for _ in range(4)), return_exceptions=True
    )
    assert all(isinstance(end, RequestRejectedError) for end in ends)
    assert model.session.pending == {}


async def test_repetitions_are_samples_of_their_own_and_cached_by_number(
    upstream: Upstream, opened: Opened
) -> None:
    model = opened()
    for number in range(3):
        await model.ask(_request(), parse_reply, repetition=number)
    assert len(await upstream.requests()) == 3
    again = opened(cache="only")
    for number in range(3):
        assert (await again.ask(_request(), parse_reply, repetition=number)).cached


async def test_a_budget_is_used_up_with_many_calls_in_flight(
    upstream: Upstream, opened: Opened
) -> None:
    """16 reservations at once are many times what the calls take: a budget for 14 judged 2."""
    await upstream.script({"text": _RIGHT, "usage": {"input": 300, "output": 20}, "delay_ms": 30})
    model = opened(budget=0.02)
    ends = await asyncio.gather(
        *(model.ask(_request(f"{n}"), parse_reply) for n in range(40)), return_exceptions=True
    )
    paid = [end for end in ends if not isinstance(end, BaseException)]
    # $0.00095 a call; about $0.0065 is reserved for the last.
    assert len(paid) >= 13


async def _misbehaving(answer: bytes, more: bytes) -> tuple[asyncio.Server, str]:
    """A server that sends `answer`, and then `more` as long as somebody listens."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        try:
            while more:
                writer.write(more)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.mark.parametrize("encoding", ["", "Content-Encoding: gzip\r\n"])
async def test_an_endless_body_is_ended_soon(encoding: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{encoding}\r\n".encode()
    server, url = await _misbehaving(head + gzip.compress(b"["), b"x" * 65_536)
    session = LlmSession(
        Ledger(1.0),
        policy=CallPolicy(deadline_s=2, cache="off"),  # short limit: the body is endless
        env={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url},
    )
    before = psutil.Process().memory_info().rss
    with pytest.raises(LlmError):
        await session.model(ModelName.parse(_NAMES[0], {})).ask(_request(), parse_reply)
    assert psutil.Process().memory_info().rss - before < 100 << 20
    await session.aclose()
    server.close()


async def test_a_redirect_is_not_followed(upstream: Upstream) -> None:
    where = f"Location: {upstream.url}/v1/chat/completions\r\nContent-Length: 0\r\n\r\n"
    server, url = await _misbehaving(f"HTTP/1.1 307 Moved\r\n{where}".encode(), b"")
    session = LlmSession(
        Ledger(),
        policy=CallPolicy(deadline_s=60, cache="off"),
        env={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url},
    )
    with pytest.raises(ModelUnusableError, match="307"):
        await session.model(ModelName.parse(_NAMES[0], {})).ask(_request(), parse_reply)
    assert await upstream.requests() == []
    await session.aclose()
    server.close()


async def test_a_wrong_key_stops_the_calls_that_wait(upstream: Upstream, opened: Opened) -> None:
    await upstream.script({"status": 401, "delay_ms": 50})
    model = opened(concurrency=2)
    ends = await asyncio.gather(
        *(model.ask(_request(f"{n}"), parse_reply) for n in range(40)), return_exceptions=True
    )
    assert all(isinstance(end, ModelUnusableError) for end in ends)
    assert len(await upstream.requests()) <= 2


async def test_no_key_reaches_cache_errors_or_requests_bodies(
    upstream: Upstream, opened: Opened, tmp_path: Path
) -> None:
    key = "sk-canary-5f1c9e7a2b"
    await upstream.script({"text": f'{{"reason": "{key}", "verdict": "correct", "score": 1}}'})
    await opened(key=key).ask(_request(), parse_reply)
    kept = b"".join(file.read_bytes() for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert kept == b""
    body = _openai_choices([]) | {"model": key}
    body["choices"] = [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": _RIGHT},
        }
    ]
    await upstream.script({"body": body})
    await opened(key=key).ask(_request("c"), parse_reply)
    kept = b"".join(file.read_bytes() for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert kept
    assert key.encode() not in kept
    await upstream.script({"text": f"no verdict but {key}"})
    with pytest.raises(InvalidReplyError) as raised:
        await opened(key=key).ask(_request("b"), parse_reply)
    assert key not in str(render_error(raised.value))
    assert all(key not in json.dumps(r["body"]) for r in await upstream.requests())
