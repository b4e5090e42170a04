"""Parameters that services refuse: which one a refusal names, and what is sent instead."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from memconform.llm import session
from memconform.llm.budget import Ledger
from memconform.llm.chat import (
    ModelUnusableError,
    RequestRejectedError,
)
from memconform.llm.failures import ServiceError, failure_of
from memconform.llm.names import ModelName
from memconform.llm.prices import Prices
from memconform.llm.replies import InvalidReplyError
from memconform.llm.session import CallPolicy, LlmSession
from memconform.scoring.judge.prompt import parse_reply
from tests.unit.model_services import (
    ANTHROPIC,
    OPENAI,
    RIGHT,
    Sent,
    completion,
    error_object,
    opened,
    request_for,
    served,
)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause but one that a service asks for."""
    monkeypatch.setattr(session, "_FIRST_BACKOFF_S", 0.0)


_REFUSALS = {
    "extra field": Sent(
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
    "unrecognized": Sent(
        {"error": {"message": "Unrecognized request argument: max_completion_tokens"}}, 400
    ),
    "unknown field": Sent({"error": 'json: unknown field "max_completion_tokens"'}, 400),
    "text": Sent("property 'max_completion_tokens' is unsupported", 400),
    "in a 200": error_object({"code": 400, "message": "unknown parameter max_completion_tokens"}),
}


@pytest.mark.parametrize("refusal", _REFUSALS.values(), ids=_REFUSALS)
async def test_the_older_name_is_sent_to_a_service_that_refuses_the_newer_one(
    refusal: Sent,
) -> None:
    def answer(request: dict[str, Any]) -> Sent:
        return refusal if "max_completion_tokens" in request else completion(RIGHT)

    async with served(answer) as service, opened(service) as model:
        reply = await model.ask(request_for(), parse_reply)
        assert [("max_tokens" in request) for request in service.requests] == [False, True]
        assert service.requests[1]["max_tokens"] == service.requests[0]["max_completion_tokens"]
        assert reply.cost == model.session.ledger.committed > 0
        # Remembered for the address, also for its other models.
        other = model.session.model(ModelName("openai", "gpt-4o-mini"))
        await model.ask(request_for("another"), parse_reply)
        await other.ask(request_for(), parse_reply)
        assert [("max_tokens" in request) for request in service.requests[2:]] == [True, True]


async def test_the_newer_name_is_sent_to_a_service_that_refuses_the_older_one() -> None:
    refusal = {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model."
        " Use 'max_completion_tokens' instead.",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }

    def answer(request: dict[str, Any]) -> Sent:
        return Sent({"error": refusal}, 400) if "max_tokens" in request else completion(RIGHT)

    async with served(answer) as service:
        env = {"OLLAMA_HOST": service.url}
        session = LlmSession(Ledger(), policy=CallPolicy(cache="off"), env=env)
        await session.model(ModelName("ollama", "m")).ask(request_for(), parse_reply)
        assert [("max_tokens" in request) for request in service.requests] == [True, False]
        await session.aclose()


async def test_calls_that_are_refused_at_the_same_time_each_recover() -> None:
    def answer(request: dict[str, Any]) -> Sent:
        return _REFUSALS["extra field"] if "max_completion_tokens" in request else completion(RIGHT)

    async with served(answer) as service, opened(service, concurrency=12) as model:
        replies = await asyncio.gather(
            *(model.ask(request_for(f"{number}"), parse_reply) for number in range(12))
        )
        assert {reply.value.verdict for reply in replies} == {"correct"}
        accepted = [request for request in service.requests if "max_tokens" in request]
        assert len(accepted) == 12
        assert len(service.requests) > 12


async def test_models_of_one_address_that_refuse_different_names_are_each_remembered() -> None:
    def answer(request: dict[str, Any]) -> Sent:
        refused = "max_tokens" if request["model"] == "gpt-4o-mini" else "max_completion_tokens"
        if refused not in request:
            return completion(RIGHT)
        return Sent({"detail": f"unknown parameter {refused}"}, 422)

    async with served(answer) as service, opened(service) as model:
        other = model.session.model(ModelName("openai", "gpt-4o-mini"))
        for number in range(4):
            await model.ask(request_for(f"{number}"), parse_reply)
            await other.ask(request_for(f"{number}"), parse_reply)
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
        served(Sent({"error": {"message": message}}, 400)) as service,
        opened(service) as model,
    ):
        with pytest.raises(RequestRejectedError, match=message.split(";", maxsplit=1)[0]):
            await model.ask(request_for(), parse_reply)
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
    async with served(Sent(refusal, 422)) as service, opened(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(request_for(), parse_reply)
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
    async with served(Sent(refusal, 422)) as service, opened(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(request_for(), parse_reply)
        assert len(service.requests) == calls


async def test_a_service_that_refuses_both_names_is_asked_twice() -> None:
    def answer(request: dict[str, Any]) -> Sent:
        used = next(name for name in request if name.startswith("max_"))
        return Sent({"detail": f"unknown parameter {used}"}, 422)

    async with served(answer) as service, opened(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(request_for(), parse_reply)
        assert len(service.requests) == 2


async def test_a_schema_that_is_refused_is_left_out_with_a_notice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(request: dict[str, Any]) -> Sent:
        if "response_format" in request:
            return Sent({"error": {"message": "x", "param": "response_format"}}, 400)
        if "max_completion_tokens" in request:
            return _REFUSALS["extra field"]
        return completion(RIGHT)

    async with served(answer) as service, opened(service) as model:
        for number in range(2):
            await model.ask(request_for(f"{number}"), parse_reply)
        assert len(service.requests) == 4
    assert capsys.readouterr().out.count("refuses a JSON schema") == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (OPENAI, "Unsupported value: 'temperature' does not support 0 with this model."),
        (ANTHROPIC, "`temperature` is deprecated for this model."),
    ],
)
async def test_a_sampling_parameter_that_is_refused_ends_the_calls_and_names_the_setting(
    name: str, message: str
) -> None:
    """Left out, it would change what is measured; sent 500 times, it would be refused 500 times."""
    async with (
        served(Sent({"error": {"message": message}}, 400)) as service,
        opened(service, name) as model,
    ):
        with pytest.raises(ModelUnusableError, match="temperature") as raised:
            await model.ask(request_for(), parse_reply)
        assert raised.value.hint is not None
        assert f'sampling of [models."{name}"]' in raised.value.hint
        assert len(service.requests) == 1


async def test_a_question_about_the_temperature_is_no_sampling_parameter() -> None:
    body = {"error": {"message": "the prompt about temperature was filtered"}}
    async with served(Sent(body, 400)) as service, opened(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(request_for(), parse_reply)


async def test_a_limit_that_reasoning_spent_may_come_as_a_rejection() -> None:
    message = (
        "Could not finish the message because max_tokens or model output limit was reached."
        " Please try again with higher max_tokens."
    )
    async with (
        served(Sent({"error": {"message": message}}, 400)) as service,
        opened(service) as model,
    ):
        with pytest.raises(InvalidReplyError, match="min_output_tokens") as raised:
            await model.ask(request_for(), parse_reply)
        assert len(service.requests) == 2
        # The service reports no tokens, and may charge for those that it made.
        assert raised.value.cost == model.session.ledger.committed > 0


async def test_more_min_output_tokens_are_sent_as_the_limit(tmp_path: Any) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(
        'as_of = "2026-01-01"\n[models."openai:r"]\ninput = 1\noutput = 1\n'
        "min_output_tokens = 9000\n"
    )
    async with served(completion(RIGHT)) as service:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{service.url}/v1"}
        session = LlmSession(
            Ledger(), policy=CallPolicy(cache="off"), prices=Prices.load(file), env=env
        )
        await session.model(ModelName("openai", "r")).ask(request_for(), parse_reply)
        assert service.requests[0]["max_completion_tokens"] == 9000
        await session.aclose()


_PROMPT = "Is 'temperature' a \"max_completion_tokens\"?"
_SENT = {
    "model": "m",
    "temperature": 0,
    "max_completion_tokens": 64,
    "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": True}},
    "messages": [{"role": "user", "content": _PROMPT}],
}
_LOGGED = f"ChatRequest(model='m', temperature=0, messages=[Message(content={_PROMPT!r})])"
_BAD = "the last message has no role"
_REPEATING: dict[str, Any] = {
    "under another key": {"error": {"message": _BAD, "original": _SENT}},
    "beside the error": {"error": {"message": _BAD}, "debug": {"call": _SENT}},
    "in a key that says what is wrong": {"error": {"message": _BAD, "details": _SENT}},
    "a part of it": {
        "message": _BAD,
        "params": {k: v for k, v in _SENT.items() if k != "messages"},
    },
    "the messages alone": {"message": _BAD, "conversation": _SENT["messages"]},
    "the prompt alone": {"message": _BAD, "text": _PROMPT},
    "the schema alone": {"message": _BAD, "expected": _SENT["response_format"]},
    "in a list": {"detail": [{"msg": _BAD, "value": _SENT}]},
    "as JSON in a text": {"message": f"{_BAD}: {json.dumps(_SENT)}"},
    "as JSON under a key": {"message": _BAD, "raw": json.dumps(_SENT)},
    "as JSON in JSON": {"message": _BAD, "raw": json.dumps({"sent": json.dumps(_SENT)})},
    "as Python in a text": {"message": f"{_BAD}: {_SENT!r}, see the manual"},
    "as an object in a text": {"detail": f"{_BAD} in {_LOGGED}"},
    "cut off": {"message": f"{_BAD}: {json.dumps(_SENT)[:-9]}"},
    "as text": f"{_BAD}: {json.dumps(_SENT)}",
}


@pytest.mark.parametrize("body", _REPEATING.values(), ids=_REPEATING)
async def test_a_request_that_is_repeated_under_any_key_refuses_nothing(body: object) -> None:
    """Such a refusal of one question ended all calls, as if `temperature` was refused."""
    async with served(Sent(body, 400)) as service, opened(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(request_for(_PROMPT), parse_reply)
        assert len(service.requests) == 1


_NAMING: dict[str, Any] = {
    "in the text, before the request": {
        "message": f"unknown parameter max_completion_tokens: {json.dumps(_SENT)}"
    },
    "beside the request": {"error": {"param": "max_completion_tokens"}, "original": _SENT},
    "by field": {"errors": {"max_completion_tokens": ["Extra inputs are not permitted"]}},
    "by field, at the top": {"max_completion_tokens": ["This field is unknown."]},
    "by field, with an object": {"error": {"max_completion_tokens": {"_errors": ["no"]}}},
    "zod's keys": {"issues": [{"code": "unrecognized_keys", "keys": ["max_completion_tokens"]}]},
    "RFC 9457": {"title": "Bad", "invalid-params": [{"name": "max_completion_tokens"}]},
    "JSON:API": {"errors": [{"source": {"pointer": "/max_completion_tokens"}, "title": "no"}]},
    "in a cause": {"error": {"message": "no", "cause": {"unsupported": "max_completion_tokens"}}},
    "webargs": {"code": 422, "errors": {"json": {"max_completion_tokens": ["Unknown field."]}}},
    "by field of the body": {"errors": {"body": {"max_completion_tokens": ["Unknown field"]}}},
    "joi": {"validation": {"body": {"source": "body", "keys": ["max_completion_tokens"]}}},
    "valibot": {"nested": {"max_completion_tokens": ["Invalid"]}},
    "a key of its own": {"request_error": "unknown parameter max_completion_tokens"},
    "a list of its own": {"payload_errors": ["max_completion_tokens unknown"]},
    "an explanation": {"explanation": "unknown field max_completion_tokens"},
    "LiteLLM": {
        "error": {
            "message": 'OpenAIException - {"error": {"message": "Unsupported parameter:'
            ' \'max_completion_tokens\'"}, "model": "m"}. Received Model Group=m'
        }
    },
    "OpenRouter": {
        "error": {
            "message": "Provider returned error",
            "metadata": {
                "raw": json.dumps(
                    {"model": "m", "error": {"message": "no parameter max_completion_tokens"}}
                )
            },
        }
    },
    "Python in a text": {
        "message": "1 validation error: "
        + repr([_EXTRA | {"loc": ("body", "max_completion_tokens"), "input": _SENT}])
    },
    "beside a prompt that speaks of limits": {
        "detail": [{**_EXTRA, "input": [{"content": "Is max_tokens too large, at most 5?"}]}]
    },
}


@pytest.mark.parametrize("body", _NAMING.values(), ids=_NAMING)
async def test_a_parameter_that_a_refusal_names_in_any_place_is_found(body: object) -> None:
    def answer(request: dict[str, Any]) -> Sent:
        return Sent(body, 400) if "max_completion_tokens" in request else completion(RIGHT)

    async with served(answer) as service, opened(service) as model:
        await model.ask(request_for("Is max_tokens too large, at most 5?"), parse_reply)
        assert len(service.requests) == 2


_QUESTION = "Which 'temperature' did Ana set?"


@pytest.mark.parametrize(
    "error",
    [
        {"message": f"The prompt was blocked by the safety filter: {_QUESTION}"},
        {"message": "blocked", "details": {"reason": f"matched text: {_QUESTION}"}},
        {"message": f"not allowed: {_QUESTION}"},
        {"message": f'not allowed: "role": "user", "content": {json.dumps(_QUESTION)}'},
        {"message": "Content policy violation", "matches": ["'temperature'"]},
        {"message": "no", "innererror": {"code": "ResponsibleAIPolicy", "at": "'temperature'"}},
    ],
)
async def test_a_refusal_that_quotes_a_question_ends_no_other_calls(error: dict[str, Any]) -> None:
    """A question about 'temperature' ended all calls, as if the parameter was refused."""

    def answer(request: dict[str, Any]) -> Sent:
        if _QUESTION in json.dumps(request["messages"]):
            return Sent({"error": error}, 400)
        return completion(RIGHT)

    async with served(answer) as service, opened(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(request_for(_QUESTION), parse_reply)
        await model.ask(request_for(), parse_reply)
        assert len(service.requests) == 2


async def test_a_sampling_parameter_is_refused_also_beside_a_question_about_it() -> None:
    message = f"Unsupported value: 'temperature' does not support 0: {_QUESTION}"
    async with (
        served(Sent({"error": {"message": message}}, 400)) as service,
        opened(service) as model,
    ):
        with pytest.raises(ModelUnusableError, match="temperature"):
            await model.ask(request_for(_QUESTION), parse_reply)


@pytest.mark.parametrize("depth", [100, 700, 5_000])
@pytest.mark.parametrize("key", ["details", "message"])
def test_a_refusal_that_is_nested_deeply_is_an_error_of_its_call(depth: int, key: str) -> None:
    """A RecursionError ended the judge's whole work."""
    nested: object = 1
    for _ in range(depth):
        nested = [nested]
    body = {"error": {key: nested}}
    response = SimpleNamespace(headers={})
    error = SimpleNamespace(body=body, status_code=400, response=response)
    failure = failure_of(ModelName.parse(OPENAI, {}), ServiceError.of_status(error))
    assert isinstance(failure, RequestRejectedError)


async def test_a_limit_that_is_refused_for_its_value_by_field_keeps_its_name() -> None:
    body = {"max_completion_tokens": ["must be at most 16"]}
    async with served(Sent(body, 400)) as service, opened(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(request_for(), parse_reply)
        assert len(service.requests) == 1


async def test_what_one_service_refused_is_not_held_against_the_next_in_its_place() -> None:
    """It was remembered for the whole process, by the address alone."""

    def refuses(request: dict[str, Any]) -> Sent:
        if "max_completion_tokens" in request:
            return _REFUSALS["extra field"]
        return completion(RIGHT)

    async with served(refuses) as service:
        async with opened(service) as model:
            await model.ask(request_for(), parse_reply)
        service.answer = lambda _: completion(RIGHT)
        async with opened(service) as model:
            await model.ask(request_for(), parse_reply)
        assert "max_completion_tokens" in service.requests[-1]
