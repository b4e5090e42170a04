"""Calls to language models: the vendors' own clients against the scripted upstream's process."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from memconform.daemons.upstream import scripted_upstream
from memconform.datasets.model import Question
from memconform.llm.budget import Ledger
from memconform.llm.cache import ReplyCache
from memconform.llm.calls import CallPolicy, InvalidReplyError, LlmSession, Model
from memconform.llm.chat import (
    BudgetSpentError,
    ChatRequest,
    LlmError,
    ModelUnusableError,
    NotCachedError,
    RequestRejectedError,
    ServiceDownError,
)
from memconform.llm.names import ModelName
from memconform.llm.prices import NANO
from memconform.scoring.judge.prompt import judge_request, parse_reply

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
        scripted_upstream(tmp_path_factory.mktemp("upstream"), "llm") as daemon,
        httpx.AsyncClient(base_url=daemon.base_url) as http,
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
            policy=replace(CallPolicy(deadline_s=8), **policy),
            cache=ReplyCache(tmp_path / "cache"),
            env=env,
        )
        sessions.append(session)
        return session.model(ModelName.parse(name, env))

    yield make
    for session in sessions:
        await session.aclose()


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


async def test_another_prompt_version_model_or_address_is_another_call(
    upstream: Upstream, opened: Opened
) -> None:
    model = opened()
    await model.ask(_request(), parse_reply)
    changed = replace(_request(), prompt_version="judge-0")
    with pytest.raises(NotCachedError):
        await opened(cache="only").ask(changed, parse_reply)
    with pytest.raises(NotCachedError):
        await opened(_NAMES[2], cache="only").ask(_request(), parse_reply)
    assert len(await upstream.requests()) == 1


async def test_a_corrupt_cache_entry_is_a_miss(
    upstream: Upstream, opened: Opened, tmp_path: Path
) -> None:
    await opened().ask(_request(), parse_reply)
    [entry] = (tmp_path / "cache").glob("??/*")
    whole = entry.read_bytes()
    for damaged in (whole[:-20], whole.replace(b"correct", b"corrupt"), b"", b"\xff" * 40):
        entry.write_bytes(damaged)
        reply = await opened().ask(_request(), parse_reply)
        assert not reply.cached
        assert reply.value.verdict == "correct"
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
    assert loop.time() - begun >= 1.2


async def test_a_retry_after_beyond_the_deadline_fails_at_once(
    upstream: Upstream, opened: Opened
) -> None:
    await upstream.script({"status": 429, "retry_after": 3600})
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(LlmError, match="429"):
        await opened().ask(_request(), parse_reply)
    assert loop.time() - begun < 5


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
    model = opened(deadline_s=3)
    reply = await model.ask(_request(), parse_reply)
    assert reply.value.verdict == "correct"


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
    model = opened(deadline_s=0.4)
    ends = await asyncio.gather(
        *(model.ask(_request(f"{n}"), parse_reply) for n in range(5)), return_exceptions=True
    )
    assert sum(isinstance(end, ServiceDownError) for end in ends) == 1
    assert all(isinstance(end, LlmError) for end in ends)


_INVALID = {
    "prose around": f"Here it is: {_RIGHT}",
    "fenced": f"```json\n{_RIGHT}\n```",
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


async def test_no_key_reaches_cache_errors_or_requests_bodies(
    upstream: Upstream, opened: Opened, tmp_path: Path
) -> None:
    key = "sk-canary-5f1c9e7a2b"
    await upstream.script({"text": f'{{"reason": "{key}", "verdict": "correct", "score": 1}}'})
    await opened(key=key).ask(_request(), parse_reply)
    kept = b"".join(file.read_bytes() for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert kept
    assert key.encode() not in kept
    await upstream.script({"status": 401, "body": None})
    with pytest.raises(ModelUnusableError) as raised:
        await opened(key=key).ask(_request("b"), parse_reply)
    assert key not in str(raised.value.render())
    assert all(key not in json.dumps(r["body"]) for r in await upstream.requests())
