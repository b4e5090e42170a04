"""What compatible services answer, through the vendors' own clients."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from memconform.datasets.model import Question
from memconform.errors import ExitCode
from memconform.llm import calls, parameters
from memconform.llm.budget import Ledger
from memconform.llm.calls import CallPolicy, LlmSession, Model
from memconform.llm.chat import (
    HALTING_CODES,
    HaltingError,
    InvalidRepliesError,
    LlmError,
    ModelUnusableError,
    RequestRejectedError,
)
from memconform.llm.failures import ServiceError
from memconform.llm.names import ModelName
from memconform.llm.prices import Prices
from memconform.llm.replies import InvalidReplyError
from memconform.scoring.judge.longmemeval import parse_yes_no
from memconform.scoring.judge.prompt import judge_request, parse_reply
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.scorer import DaemonResponse

_OPENAI, _ANTHROPIC = "openai:gpt-4o-2024-08-06", "anthropic:claude-haiku-4-5"
_NAMES = (_OPENAI, _ANTHROPIC)
_RIGHT = '{"reason": "same", "verdict": "correct", "score": 1.0}'
_WRONG = '{"reason": "other city", "verdict": "incorrect", "score": 0.0}'
_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "input_tokens": 100, "output_tokens": 10}


@dataclass(frozen=True)
class _Sent:
    """A response of the script."""

    body: object = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        kind = "text/html" if text.startswith("<") else "application/json"
        headers = {"Content-Type": kind, **self.headers, "Content-Length": f"{len(text.encode())}"}
        lines = [f"HTTP/1.1 {self.status} X", *(f"{name}: {headers[name]}" for name in headers)]
        return "\r\n".join((*lines, "", text)).encode()


def _text(content: object, reason: str = "stop", **more: Any) -> _Sent:
    """A completion that both vendors' APIs could have sent."""
    message = {"role": "assistant", "content": content}
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    body = {
        "model": "m",
        "choices": [{"message": message, "finish_reason": reason}],
        "content": blocks,
        "stop_reason": {"stop": "end_turn", "length": "max_tokens"}.get(reason, reason),
        "usage": _USAGE,
    }
    return _Sent(body | more)


def _error(error: object, **more: Any) -> _Sent:
    return _Sent({"id": None, "choices": None, "usage": None, "error": error} | more)


Answer = Callable[[dict[str, Any]], _Sent]


@dataclass
class _Service:
    """A service that answers by a function of the request, or with these, the last one for ever."""

    answer: Answer
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = int(head.partition("content-length:")[2].partition("\r\n")[0])
                request = json.loads(await reader.readexactly(size))
                self.requests.append(request)
                writer.write(self.answer(request).encoded())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def _in_turn(*responses: _Sent) -> Answer:
    left = list(responses)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@asynccontextmanager
async def _served(answer: Answer | _Sent) -> AsyncIterator[_Service]:
    service = _Service(_in_turn(answer) if isinstance(answer, _Sent) else answer)
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield service
    finally:
        server.close()


@asynccontextmanager
async def _model(service: _Service, name: str = _OPENAI, **policy: Any) -> AsyncIterator[Model]:
    settings: dict[str, Any] = {"deadline_s": 60, "cache": "off"} | policy
    session = LlmSession(
        Ledger(5.0),
        policy=CallPolicy(**settings),
        env={
            "OPENAI_API_KEY": "k",
            "ANTHROPIC_API_KEY": "k",
            "OPENAI_BASE_URL": f"{service.url}/v1",
            "ANTHROPIC_BASE_URL": service.url,
        },
    )
    yield session.model(ModelName.parse(name, {}))
    await session.aclose()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No pause but one that a service asks for; nothing is remembered from another test."""
    monkeypatch.setattr(calls, "_FIRST_BACKOFF_S", 0.0)
    parameters._accepted.clear()
    yield
    parameters._accepted.clear()


def _request(answer: str = "Brel") -> Any:
    return judge_request(Question(id="q", question="Where?", answers=("Brel",)), answer)


async def _verdict(content: str, name: str = _OPENAI) -> str:
    """The verdict of a reply that needs no second call, or why it is none."""
    async with _served(_text(content)) as service, _model(service, name) as model:
        try:
            reply = await model.ask(_request(), parse_reply)
        except InvalidReplyError as error:
            assert len(service.requests) == 2
            return error.message
        assert len(service.requests) == 1
        return reply.value.verdict


_READ = {
    "plain": (_RIGHT, "correct"),
    "fence": (f"```json\n{_RIGHT}\n```", "correct"),
    "fence without a language": (f"```\n{_WRONG}\n```\n", "incorrect"),
    "fence in one line": (f"```json {_RIGHT}```", "correct"),
    "tildes": (f"~~~json\n{_WRONG}\n~~~", "incorrect"),
    "think": (f"<think>\nThe two agree. So: correct.\n</think>\n\n{_RIGHT}", "correct"),
    "thinks otherwise": (f'<think>{{"verdict": "correct"}}</think>{_WRONG}', "incorrect"),
    "thinks a whole verdict": (f"<think>{_RIGHT}</think>\n{_WRONG}", "incorrect"),
    "think, then a fence": (f"<think>hm</think>\n```json\n{_RIGHT}\n```", "correct"),
    "begun by the template": (f"They agree.\n</think>\n\n{_WRONG}", "incorrect"),
    "thinking": (f"<thinking>a</thinking>{_RIGHT}", "correct"),
}
_INVALID = {
    "two verdicts": (
        f"```json\n{_RIGHT}\n```\n```json\n{_WRONG}\n```",
        "ambiguous: it holds 2 JSON objects",
    ),
    "two of one verdict": (f"{_RIGHT}\n{_RIGHT}", "ambiguous: it holds 2"),
    "repeated key": (
        '{"reason": "a", "verdict": "incorrect", "verdict": "correct", "score": 1}',
        "ambiguous: the key 'verdict' occurs twice",
    ),
    "prose": (f"Sure! Here is my evaluation:\n\n{_RIGHT}\n\nLet me know.", "prose around"),
    "a quoted verdict": (f"The answer says {_RIGHT} about itself. I reject it.", "prose around"),
    "prose in a fence": (f"```\nVerdict:\n{_RIGHT}\n```", "prose around"),
    "nested": (f'{{"verdict": {_RIGHT}}}', "reason"),
    "a list": (f"[{_RIGHT}]", "not a JSON object"),
    "an endless thought": (f"<think>It may be {_RIGHT}", "reasoning alone"),
    "a thought alone": ("<think>They agree: correct.</think>", "reasoning alone"),
    "a fence in a fence": (f"```\n```json\n{_RIGHT}\n```\n```", "prose around"),
    "cut": (_RIGHT[:-1], "not one JSON object"),
}


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize(("content", "verdict"), _READ.values(), ids=_READ)
async def test_one_fence_and_the_reasoning_are_no_part_of_a_verdict(
    content: str, verdict: str, name: str
) -> None:
    assert await _verdict(content, name) == verdict


@pytest.mark.parametrize(("content", "fault"), _INVALID.values(), ids=_INVALID)
async def test_a_reply_that_may_be_read_in_two_ways_is_no_verdict(content: str, fault: str) -> None:
    assert fault in await _verdict(content)


@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        ("<think>yes? The date is wrong, so no.</think>no", "incorrect"),
        ("<think>no, no, no</think>\n\nYes.", "correct"),
        ("Is it? yes.\n</think>\nno", "incorrect"),
        ("```\nyes\n```", "correct"),
    ],
)
async def test_the_word_of_a_judge_is_not_looked_for_in_its_reasoning(
    content: str, verdict: str
) -> None:
    """By the letters `yes`, each of these would be accepted."""
    async with _served(_text(content)) as service, _model(service) as model:
        reply = await model.ask(_request(), parse_yes_no)
        assert reply.value.verdict == verdict


async def test_what_is_done_to_replies_is_reported_once_and_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = _in_turn(
        *(_text(f"<think>a</think>{_RIGHT}"), _text(f"<think>a</think>{_RIGHT}")),
        *(_text(f"Well: {_RIGHT}"), _text(_RIGHT)),
    )
    async with _served(answer) as service, _model(service) as model:
        for number in range(3):
            await model.ask(_request(f"{number}"), parse_reply)
        assert len(service.requests) == 4
    shown = capsys.readouterr().out
    assert shown.count("replies hold their reasoning") == 2
    assert "replies=2" in shown
    assert shown.count("replies are asked for twice: there is prose around the JSON object") == 1


async def test_text_in_parts_is_read_without_the_parts_that_are_reasoning() -> None:
    parts = [{"type": "thinking", "thinking": _WRONG}, {"type": "text", "text": _RIGHT}]
    assert await _verdict(parts) == "correct"  # type: ignore[arg-type] # as such a service sends


_REFUSALS = {
    "extra field": _Sent(
        {
            "object": "error",
            "message": {
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "max_completion_tokens"],
                        "msg": "Extra inputs are not permitted",
                    }
                ]
            },
        },
        422,
    ),
    "unrecognized": _Sent(
        {"error": {"message": "Unrecognized request argument: max_completion_tokens"}}, 400
    ),
    "unknown field": _Sent({"error": 'json: unknown field "max_completion_tokens"'}, 400),
    "text": _Sent("property 'max_completion_tokens' is unsupported", 400),
    "in a 200": _error({"code": 400, "message": "unknown parameter max_completion_tokens"}),
}


@pytest.mark.parametrize("refusal", _REFUSALS.values(), ids=_REFUSALS)
async def test_the_older_name_is_sent_to_a_service_that_refuses_the_newer_one(
    refusal: _Sent,
) -> None:
    def answer(request: dict[str, Any]) -> _Sent:
        return refusal if "max_completion_tokens" in request else _text(_RIGHT)

    async with _served(answer) as service, _model(service) as model:
        reply = await model.ask(_request(), parse_reply)
        assert [("max_tokens" in request) for request in service.requests] == [False, True]
        assert service.requests[1]["max_tokens"] == service.requests[0]["max_completion_tokens"]
        assert reply.cost == model.session.ledger.committed > 0
        # Remembered for the address, also for its other models.
        other = model.session.model(ModelName("openai", "gpt-4o-mini"))
        await model.ask(_request("another"), parse_reply)
        await other.ask(_request(), parse_reply)
        assert [("max_tokens" in request) for request in service.requests[2:]] == [True, True]


async def test_the_newer_name_is_sent_to_a_service_that_refuses_the_older_one() -> None:
    refusal = {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model."
        " Use 'max_completion_tokens' instead.",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }

    def answer(request: dict[str, Any]) -> _Sent:
        return _Sent({"error": refusal}, 400) if "max_tokens" in request else _text(_RIGHT)

    async with _served(answer) as service:
        env = {"OLLAMA_HOST": service.url}
        session = LlmSession(Ledger(), policy=CallPolicy(cache="off"), env=env)
        await session.model(ModelName("ollama", "m")).ask(_request(), parse_reply)
        assert [("max_tokens" in request) for request in service.requests] == [True, False]
        await session.aclose()


async def test_calls_that_are_refused_at_the_same_time_each_recover() -> None:
    def answer(request: dict[str, Any]) -> _Sent:
        return _REFUSALS["extra field"] if "max_completion_tokens" in request else _text(_RIGHT)

    async with _served(answer) as service, _model(service, concurrency=12) as model:
        replies = await asyncio.gather(
            *(model.ask(_request(f"{number}"), parse_reply) for number in range(12))
        )
        assert {reply.value.verdict for reply in replies} == {"correct"}
        accepted = [request for request in service.requests if "max_tokens" in request]
        assert len(accepted) == 12
        assert len(service.requests) > 12


async def test_models_of_one_address_that_refuse_different_names_are_each_remembered() -> None:
    def answer(request: dict[str, Any]) -> _Sent:
        refused = "max_tokens" if request["model"] == "gpt-4o-mini" else "max_completion_tokens"
        if refused not in request:
            return _text(_RIGHT)
        return _Sent({"detail": f"unknown parameter {refused}"}, 422)

    async with _served(answer) as service, _model(service) as model:
        other = model.session.model(ModelName("openai", "gpt-4o-mini"))
        for number in range(4):
            await model.ask(_request(f"{number}"), parse_reply)
            await other.ask(_request(f"{number}"), parse_reply)
        assert len(service.requests) == 10


@pytest.mark.parametrize(
    "message",
    [
        "max_completion_tokens is too large: 512. This model supports at most 256 tokens.",
        "This model's maximum context length is 10 tokens; reduce max_completion_tokens",
        "the prompt is not allowed",
    ],
)
async def test_a_limit_that_is_refused_for_its_value_is_not_sent_under_another_name(
    message: str,
) -> None:
    """A service that ignores the other name would answer without any limit."""
    async with (
        _served(_Sent({"error": {"message": message}}, 400)) as service,
        _model(service) as model,
    ):
        with pytest.raises(RequestRejectedError, match=message.split(";", maxsplit=1)[0]):
            await model.ask(_request(), parse_reply)
        assert len(service.requests) == 1
        assert model.session.ledger.committed == 0


_ECHO = {"temperature": 0, "max_tokens": 64, "max_completion_tokens": 64, "response_format": {}}
_EXTRA = {
    "type": "extra_forbidden",
    "loc": ["body", "max_completion_tokens"],
    "msg": "Extra inputs are not permitted",
}


async def test_a_refusal_that_repeats_the_request_refuses_none_of_its_parameters() -> None:
    """One long question ended all calls: its refusal held `temperature` and the schema."""
    sent = {"temperature": 0, "max_tokens": 64, "max_completion_tokens": 64, "response_format": {}}
    refusal = {"detail": [{"msg": "the messages are too many", "loc": ["body"], "input": sent}]}
    async with _served(_Sent(refusal, 422)) as service, _model(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(_request(), parse_reply)
        assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("refusal", "calls"),
    [
        ({"detail": [{"msg": "context length exceeded", "input": _ECHO}]}, 1),
        ({"error": {"message": "invalid role in messages", "input": _ECHO}}, 1),
        ({"object": "error", "message": {"detail": [_EXTRA]}}, 2),
    ],
)
async def test_a_parameter_is_refused_where_an_error_names_it_and_not_where_it_repeats_it(
    refusal: dict[str, Any], calls: int
) -> None:
    async with _served(_Sent(refusal, 422)) as service, _model(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(_request(), parse_reply)
        assert len(service.requests) == calls


_FLAGGED = "Your chosen model requires moderation and your input was flagged"


@pytest.mark.parametrize(
    "error",
    [
        {"code": 403, "message": f'{_FLAGGED} for "violence"'},
        {"code": 403, "message": "Forbidden", "metadata": {"flagged_input": "a knife"}},
    ],
)
@pytest.mark.parametrize("status", [200, 403])
async def test_a_moderated_request_ends_no_other_calls(error: dict[str, Any], status: int) -> None:
    """A gateway that moderates answers 403, as to a key that may not use the model."""
    async with _served(_Sent({"error": error}, status)) as service, _model(service) as model:
        for number in range(2):
            with pytest.raises(RequestRejectedError):
                await model.ask(_request(f"{number}"), parse_reply)
        assert len(service.requests) == 2


async def test_a_service_that_refuses_both_names_is_asked_twice() -> None:
    def answer(request: dict[str, Any]) -> _Sent:
        used = next(name for name in request if name.startswith("max_"))
        return _Sent({"detail": f"unknown parameter {used}"}, 422)

    async with _served(answer) as service, _model(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(_request(), parse_reply)
        assert len(service.requests) == 2


async def test_a_schema_that_is_refused_is_left_out_with_a_notice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(request: dict[str, Any]) -> _Sent:
        if "response_format" in request:
            return _Sent({"error": {"message": "x", "param": "response_format"}}, 400)
        if "max_completion_tokens" in request:
            return _REFUSALS["extra field"]
        return _text(_RIGHT)

    async with _served(answer) as service, _model(service) as model:
        for number in range(2):
            await model.ask(_request(f"{number}"), parse_reply)
        assert len(service.requests) == 4
    assert capsys.readouterr().out.count("refuses a JSON schema") == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (_OPENAI, "Unsupported value: 'temperature' does not support 0 with this model."),
        (_ANTHROPIC, "`temperature` is deprecated for this model."),
    ],
)
async def test_a_sampling_parameter_that_is_refused_ends_the_calls_and_names_the_setting(
    name: str, message: str
) -> None:
    """Left out, it would change what is measured; sent 500 times, it would be refused 500 times."""
    async with (
        _served(_Sent({"error": {"message": message}}, 400)) as service,
        _model(service, name) as model,
    ):
        with pytest.raises(ModelUnusableError, match="temperature") as raised:
            await model.ask(_request(), parse_reply)
        assert raised.value.hint is not None
        assert f'sampling of [models."{name}"]' in raised.value.hint
        assert len(service.requests) == 1


async def test_a_question_about_the_temperature_is_no_sampling_parameter() -> None:
    body = {"error": {"message": "the prompt about temperature was filtered"}}
    async with _served(_Sent(body, 400)) as service, _model(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(_request(), parse_reply)


_RATE = {"message": "Provider returned error", "metadata": {"raw": "Too Many Requests"}}
_TRANSIENT = {
    "429": _error(_RATE | {"code": 429}),
    "429 as text": _error(_RATE | {"code": "429"}),
    "a word": _error({"code": "rate_limit_exceeded", "message": "slow down"}),
    "Google's word": _error({"status": "RESOURCE_EXHAUSTED", "message": "quota"}),
    "by its text": _error(_RATE),
    "no choices at all": _Sent({"error": _RATE | {"code": 429}}),
    "empty choices": _error(_RATE | {"code": 429}, choices=[]),
    "text alone": _Sent({"error": "Too many requests, try again later"}),
    "vLLM's object": _Sent({"object": "error", "message": "busy", "code": 503}),
    "Anthropic's object": _Sent(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
    "in a choice": _Sent(
        {"choices": [{"message": {"content": _WRONG}, "error": _RATE | {"code": 502}}]}
    ),
    "a list of errors": _Sent({"success": False, "errors": [{"code": 1, "message": "timed out"}]}),
    "unknown": _error({"code": "x17", "message": "?"}),
}


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("response", _TRANSIENT.values(), ids=_TRANSIENT)
async def test_an_error_object_in_a_200_is_asked_again_by_its_own_code(
    response: _Sent, name: str
) -> None:
    answer = _in_turn(response, _text(_RIGHT))
    async with _served(answer) as service, _model(service, name) as model:
        reply = await model.ask(_request(), parse_reply)
        assert reply.value.verdict == "correct"
        assert len(service.requests) == 2


async def test_an_error_object_in_a_200_shows_its_text_and_costs_nothing() -> None:
    later = {"headers": {"Retry-After": "9000"}, "raw": "Too Many Requests"}
    error = _error({"message": "Provider returned error", "code": 429, "metadata": later})
    async with _served(error) as service, _model(service) as model:
        with pytest.raises(LlmError) as raised:
            await model.ask(_request(), parse_reply)
        shown = "answered 200 with the error 429: Provider returned error: Too Many Requests"
        assert shown in raised.value.message
        assert raised.value.code == "llm_throttled"
        assert raised.value.cost == model.session.ledger.committed == 0
        assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("error", "headers", "seconds"),
    [
        ({"metadata": {"headers": {"Retry-After": "7"}}}, {}, 7),
        ({"metadata": {"retry_after": 3}}, {}, 3),
        ({"retry_after_ms": 1500}, {}, 1.5),
        ({"details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}, {}, 34),
        ({}, {"retry-after": "9"}, 9),
        ({"metadata": {"headers": {"Retry-After": "7"}}}, {"retry-after": "2"}, 2),
        ({"metadata": {"headers": {"Retry-After": "soon"}}}, {}, None),
        ({"retry_after": -1}, {}, None),
        ("text", {}, None),
    ],
)
def test_the_pause_that_an_error_object_asks_for_is_made(
    error: object, headers: dict[str, str], seconds: float | None
) -> None:
    assert ServiceError.of_object(error, {"error": error}, headers).retry_after_s == seconds


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 401, "message": "no"}, ModelUnusableError),
        ({"code": "invalid_api_key", "message": "no"}, ModelUnusableError),
        ({"code": "insufficient_quota", "message": "no"}, ModelUnusableError),
        ({"message": "model 'x' not found, try pulling it first"}, ModelUnusableError),
        ({"code": "context_length_exceeded", "message": "no"}, RequestRejectedError),
        ({"type": "invalid_request_error", "message": "no"}, RequestRejectedError),
    ],
)
async def test_an_error_object_that_no_repetition_helps_is_one_request(
    error: object, kind: type[LlmError]
) -> None:
    async with _served(_error(error)) as service, _model(service) as model:
        with pytest.raises(kind):
            await model.ask(_request(), parse_reply)
        assert len(service.requests) == 1
        assert model.session.ledger.committed == 0


async def test_tokens_that_were_made_before_an_error_are_charged() -> None:
    broken = {"choices": [{"message": {"content": "{"}, "error": {"code": 500}}], "usage": _USAGE}
    answer = _in_turn(_Sent(broken), _text(_RIGHT))
    async with _served(answer) as service, _model(service) as model:
        reply = await model.ask(_request(), parse_reply)
        assert reply.usage is not None
        assert (reply.usage.input, reply.usage.output) == (200, 20)
        assert reply.cost == model.session.ledger.committed


async def test_tokens_of_a_stopped_completion_are_charged_although_nothing_helps() -> None:
    """Only errors that a repetition may help were charged for the tokens that they reported."""
    stopped = {"error": {"code": 400, "message": "content_filter"}, "usage": _USAGE}
    async with _served(_Sent(stopped)) as service, _model(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(_request(), parse_reply)
        assert model.session.ledger.committed > 0


_PAGES = {
    "html": _Sent("<html><body>Sign in</body></html>"),
    "html as JSON": _Sent("<html>Sign in</html>", headers={"Content-Type": "application/json"}),
    "text": _Sent("Ollama is running", headers={"Content-Type": "text/plain"}),
    "a list": _Sent("[1, 2]", headers={"Content-Type": "application/json"}),
    "an empty list": _Sent("[]", headers={"Content-Type": "application/json"}),
    "a number": _Sent("7", headers={"Content-Type": "application/json"}),
}


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("page", _PAGES.values(), ids=_PAGES)
async def test_a_page_in_place_of_a_model_service_ends_the_calls_with_its_address(
    page: _Sent, name: str
) -> None:
    """It was `'str' object has no attribute 'choices'`, until the deadline of each call."""
    async with _served(page) as service, _model(service, name) as model:
        for _ in range(3):
            with pytest.raises(ModelUnusableError) as raised:
                await model.ask(_request(), parse_reply)
        assert service.url in raised.value.message
        assert str(page.body)[:8] in raised.value.message
        assert raised.value.exit_code == ExitCode.USAGE
        assert len(service.requests) == 1
        assert model.session.ledger.committed == 0


async def test_a_page_between_replies_is_asked_again() -> None:
    """A gateway may show a page for a moment: the address has served the model before."""
    answer = _in_turn(_text(_RIGHT), _PAGES["html"], _text(_RIGHT))
    async with _served(answer) as service, _model(service) as model:
        await model.ask(_request(), parse_reply)
        reply = await model.ask(_request("another"), parse_reply)
        assert reply.value.verdict == "correct"


async def test_json_is_utf_8_whatever_its_header_says() -> None:
    body = json.dumps(_text(_RIGHT.replace("same", "né à Brel")).body, ensure_ascii=False)
    latin = _Sent(body, headers={"Content-Type": "application/json; charset=iso-8859-1"})
    async with _served(latin) as service, _model(service) as model:
        assert (await model.ask(_request(), parse_reply)).value.reason == "né à Brel"


async def test_a_fact_about_tags_of_reasoning_stays_whole() -> None:
    text = json.dumps({"reason": "<think>b</think> is a tag", "verdict": "correct", "score": 1})
    async with _served(_text(text)) as service, _model(service) as model:
        assert (
            await model.ask(_request(), parse_reply)
        ).value.reason == "<think>b</think> is a tag"


async def test_json_that_is_labelled_as_text_is_read() -> None:
    body = json.dumps(_text(_RIGHT).body)
    plain = _Sent(body, headers={"Content-Type": "text/plain"})
    async with _served(plain) as service, _model(service) as model:
        assert (await model.ask(_request(), parse_reply)).value.verdict == "correct"


async def _ask_many(model: Model, count: int) -> list[BaseException | object]:
    scorer = JudgeScorer([model])
    question = Question(id="q", question="Where?", answers=("Brel",))
    ends: list[BaseException | object] = []
    for number in range(count):
        try:
            answer = DaemonResponse(text=f"in Brel, {number}", kind="answer")
            ends.append(await scorer.score(question, answer))
        except HaltingError as error:
            ends.append(error)
    return ends


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("content", ["", "<think>First, the"])
async def test_a_model_that_spends_its_limit_on_reasoning_stops_after_five(
    content: str, name: str
) -> None:
    """500 questions would have cost 1,000 replies, and told nobody which setting to change."""
    async with _served(_text(content, "length")) as service, _model(service, name) as model:
        ends = await _ask_many(model, 9)
        assert [getattr(end, "status", "halted") for end in ends] == [
            *["judge_error"] * 4,
            *["halted"] * 5,
        ]
        assert len(service.requests) == 10
        first, halt = ends[0], ends[4]
        assert "min_output_tokens" in first.reason  # type: ignore[union-attr]
        assert isinstance(halt, InvalidRepliesError)
        assert halt.code in HALTING_CODES
        assert "min_output_tokens" in halt.message
        assert f'[models."{name}"]' in halt.message
        assert halt.exit_code == ExitCode.USAGE
        # What it cost is in the report.
        [vote] = halt.unfinished
        assert vote["cost_usd"] > 0
        total = sum(end.detail["judges"][0]["cost_usd"] for end in ends[:4])  # type: ignore[union-attr]
        total += vote["cost_usd"]
        assert round(total * 1e9) == model.session.ledger.committed


async def test_a_limit_that_reasoning_spent_may_come_as_a_rejection() -> None:
    message = (
        "Could not finish the message because max_tokens or model output limit was reached."
        " Please try again with higher max_tokens."
    )
    async with (
        _served(_Sent({"error": {"message": message}}, 400)) as service,
        _model(service) as model,
    ):
        with pytest.raises(InvalidReplyError, match="min_output_tokens") as raised:
            await model.ask(_request(), parse_reply)
        assert len(service.requests) == 2
        # The service reports no tokens, and may charge for those that it made.
        assert raised.value.cost == model.session.ledger.committed > 0


async def test_more_min_output_tokens_are_sent_as_the_limit(tmp_path: Any) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(
        'as_of = "2026-01-01"\n[models."openai:r"]\ninput = 1\noutput = 1\n'
        "min_output_tokens = 9000\n"
    )
    async with _served(_text(_RIGHT)) as service:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{service.url}/v1"}
        session = LlmSession(
            Ledger(), policy=CallPolicy(cache="off"), prices=Prices.load(file), env=env
        )
        await session.model(ModelName("openai", "r")).ask(_request(), parse_reply)
        assert service.requests[0]["max_completion_tokens"] == 9000
        await session.aclose()


async def test_a_valid_reply_in_between_lets_a_weak_judge_go_on() -> None:
    """A judge that fails three answers of ten has five such in a row once in 600."""
    bad = [_text("no JSON at all")] * 2
    answer = _in_turn(_text(_RIGHT), *bad * 19, _text(_RIGHT), *bad * 19, _text(_RIGHT))
    async with _served(answer) as service, _model(service) as model:
        ends = await _ask_many(model, 42)
        assert not any(isinstance(end, HaltingError) for end in ends)


async def test_the_same_fault_again_and_again_stops_a_model_that_once_was_valid() -> None:
    answer = _in_turn(_text(_RIGHT), _text("no JSON at all"))
    async with _served(answer) as service, _model(service) as model:
        ends = await _ask_many(model, 30)
        assert sum(isinstance(end, InvalidRepliesError) for end in ends) == 10
        assert len(service.requests) == 41


async def test_refusals_and_other_prompts_stop_nothing() -> None:
    """What a filter stops depends on the questions; another prompt may well be answered."""
    answer = _in_turn(_text("no", "content_filter"))
    async with _served(answer) as service, _model(service) as model:
        ends = await _ask_many(model, 8)
        assert not any(isinstance(end, HaltingError) for end in ends)
    async with _served(_text("yes")) as service, _model(service) as model:
        await _ask_many(model, 6)
        with pytest.raises(InvalidRepliesError):
            await model.ask(_request(), parse_reply)
        request = _request()
        other = type(request)(
            messages=request.messages, prompt_version="other", max_output_tokens=8
        )
        assert (await model.ask(other, parse_yes_no)).value.verdict == "correct"
