"""Errors of compatible services: error objects and pages, their cost, and what is asked again."""

from typing import Any

import pytest

from memconform.errors import ExitCode
from memconform.llm import session
from memconform.llm.chat import (
    LlmError,
    ModelUnusableError,
    RequestRejectedError,
)
from memconform.llm.failures import ServiceError
from memconform.scoring.judge.prompt import parse_reply
from tests.unit.model_services import (
    NAMES,
    RIGHT,
    USAGE,
    WRONG,
    Sent,
    completion,
    error_object,
    in_turn,
    opened,
    request_for,
    served,
)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause but one that a service asks for."""
    monkeypatch.setattr(session, "_FIRST_BACKOFF_S", 0.0)


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
    async with served(Sent({"error": error}, status)) as service, opened(service) as model:
        for number in range(2):
            with pytest.raises(RequestRejectedError):
                await model.ask(request_for(f"{number}"), parse_reply)
        assert len(service.requests) == 2


_RATE = {"message": "Provider returned error", "metadata": {"raw": "Too Many Requests"}}
_TRANSIENT = {
    "429": error_object(_RATE | {"code": 429}),
    "429 as text": error_object(_RATE | {"code": "429"}),
    "a word": error_object({"code": "rate_limit_exceeded", "message": "slow down"}),
    "Google's word": error_object({"status": "RESOURCE_EXHAUSTED", "message": "quota"}),
    "by its text": error_object(_RATE),
    "no choices at all": Sent({"error": _RATE | {"code": 429}}),
    "empty choices": error_object(_RATE | {"code": 429}, choices=[]),
    "text alone": Sent({"error": "Too many requests, try again later"}),
    "vLLM's object": Sent({"object": "error", "message": "busy", "code": 503}),
    "Anthropic's object": Sent(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
    "in a choice": Sent(
        {"choices": [{"message": {"content": WRONG}, "error": _RATE | {"code": 502}}]}
    ),
    "a list of errors": Sent({"success": False, "errors": [{"code": 1, "message": "timed out"}]}),
    "unknown": error_object({"code": "x17", "message": "?"}),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("response", _TRANSIENT.values(), ids=_TRANSIENT)
async def test_an_error_object_in_a_200_is_asked_again_by_its_own_code(
    response: Sent, name: str
) -> None:
    answer = in_turn(response, completion(RIGHT))
    async with served(answer) as service, opened(service, name) as model:
        reply = await model.ask(request_for(), parse_reply)
        assert reply.value.verdict == "correct"
        assert len(service.requests) == 2


async def test_an_error_object_in_a_200_shows_its_text_and_costs_nothing() -> None:
    later = {"headers": {"Retry-After": "9000"}, "raw": "Too Many Requests"}
    error = error_object({"message": "Provider returned error", "code": 429, "metadata": later})
    async with served(error) as service, opened(service) as model:
        with pytest.raises(LlmError) as raised:
            await model.ask(request_for(), parse_reply)
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
    async with served(error_object(error)) as service, opened(service) as model:
        with pytest.raises(kind):
            await model.ask(request_for(), parse_reply)
        assert len(service.requests) == 1
        assert model.session.ledger.committed == 0


async def test_tokens_that_were_made_before_an_error_are_charged() -> None:
    broken = {"choices": [{"message": {"content": "{"}, "error": {"code": 500}}], "usage": USAGE}
    answer = in_turn(Sent(broken), completion(RIGHT))
    async with served(answer) as service, opened(service) as model:
        reply = await model.ask(request_for(), parse_reply)
        assert reply.usage is not None
        assert (reply.usage.input, reply.usage.output) == (200, 20)
        assert reply.cost == model.session.ledger.committed


async def test_tokens_of_a_stopped_completion_are_charged_although_nothing_helps() -> None:
    """Only errors that a repetition may help were charged for the tokens that they reported."""
    stopped = {"error": {"code": 400, "message": "content_filter"}, "usage": USAGE}
    async with served(Sent(stopped)) as service, opened(service) as model:
        with pytest.raises(RequestRejectedError):
            await model.ask(request_for(), parse_reply)
        assert model.session.ledger.committed > 0


_PAGES = {
    "html": Sent("<html><body>Sign in</body></html>"),
    "html as JSON": Sent("<html>Sign in</html>", headers={"Content-Type": "application/json"}),
    "text": Sent("Ollama is running", headers={"Content-Type": "text/plain"}),
    "a list": Sent("[1, 2]", headers={"Content-Type": "application/json"}),
    "an empty list": Sent("[]", headers={"Content-Type": "application/json"}),
    "a number": Sent("7", headers={"Content-Type": "application/json"}),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("page", _PAGES.values(), ids=_PAGES)
async def test_a_page_in_place_of_a_model_service_ends_the_calls_with_its_address(
    page: Sent, name: str
) -> None:
    """It was `'str' object has no attribute 'choices'`, until the deadline of each call."""
    async with served(page) as service, opened(service, name) as model:
        for _ in range(3):
            with pytest.raises(ModelUnusableError) as raised:
                await model.ask(request_for(), parse_reply)
        assert service.url in raised.value.message
        assert str(page.body)[:8] in raised.value.message
        assert raised.value.exit_code == ExitCode.USAGE
        assert len(service.requests) == 1
        assert model.session.ledger.committed == 0


async def test_a_page_between_replies_is_asked_again() -> None:
    """A gateway may show a page for a moment: the address has served the model before."""
    answer = in_turn(completion(RIGHT), _PAGES["html"], completion(RIGHT))
    async with served(answer) as service, opened(service) as model:
        await model.ask(request_for(), parse_reply)
        reply = await model.ask(request_for("another"), parse_reply)
        assert reply.value.verdict == "correct"
