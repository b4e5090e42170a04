"""Replies of compatible services: what of them is a verdict, and what is none."""

import json

import pytest

from memconform.llm import session
from memconform.llm.replies import InvalidReplyError
from memconform.scoring.judge.longmemeval import parse_yes_no
from memconform.scoring.judge.prompt import parse_reply
from tests.unit.model_services import (
    NAMES,
    OPENAI,
    RIGHT,
    WRONG,
    Sent,
    completion,
    in_turn,
    opened,
    request_for,
    served,
)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause but one that a service asks for."""
    monkeypatch.setattr(session, "_FIRST_BACKOFF_S", 0.0)


async def _verdict(content: str, name: str = OPENAI) -> str:
    """The verdict of a reply that needs no second call, or why it is none."""
    async with served(completion(content)) as service, opened(service, name) as model:
        try:
            reply = await model.ask(request_for(), parse_reply)
        except InvalidReplyError as error:
            assert len(service.requests) == 2
            return error.message
        assert len(service.requests) == 1
        return reply.value.verdict


_READ = {
    "plain": (RIGHT, "correct"),
    "fence": (f"```json\n{RIGHT}\n```", "correct"),
    "fence without a language": (f"```\n{WRONG}\n```\n", "incorrect"),
    "fence in one line": (f"```json {RIGHT}```", "correct"),
    "tildes": (f"~~~json\n{WRONG}\n~~~", "incorrect"),
    "think": (f"<think>\nThe two agree. So: correct.\n</think>\n\n{RIGHT}", "correct"),
    "thinks otherwise": (f'<think>{{"verdict": "correct"}}</think>{WRONG}', "incorrect"),
    "thinks a whole verdict": (f"<think>{RIGHT}</think>\n{WRONG}", "incorrect"),
    "think, then a fence": (f"<think>hm</think>\n```json\n{RIGHT}\n```", "correct"),
    "begun by the template": (f"They agree.\n</think>\n\n{WRONG}", "incorrect"),
    "thinking": (f"<thinking>a</thinking>{RIGHT}", "correct"),
}
_INVALID = {
    "two verdicts": (
        f"```json\n{RIGHT}\n```\n```json\n{WRONG}\n```",
        "ambiguous: it holds 2 JSON objects",
    ),
    "two of one verdict": (f"{RIGHT}\n{RIGHT}", "ambiguous: it holds 2"),
    "repeated key": (
        '{"reason": "a", "verdict": "incorrect", "verdict": "correct", "score": 1}',
        "ambiguous: the key 'verdict' occurs twice",
    ),
    "prose": (f"Sure! Here is my evaluation:\n\n{RIGHT}\n\nLet me know.", "prose around"),
    "a quoted verdict": (f"The answer says {RIGHT} about itself. I reject it.", "prose around"),
    "prose in a fence": (f"```\nVerdict:\n{RIGHT}\n```", "prose around"),
    "nested": (f'{{"verdict": {RIGHT}}}', "reason"),
    "a list": (f"[{RIGHT}]", "not a JSON object"),
    "an endless thought": (f"<think>It may be {RIGHT}", "reasoning alone"),
    "a thought alone": ("<think>They agree: correct.</think>", "reasoning alone"),
    "a fence in a fence": (f"```\n```json\n{RIGHT}\n```\n```", "prose around"),
    "cut": (RIGHT[:-1], "not one JSON object"),
}


@pytest.mark.parametrize("name", NAMES)
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
    async with served(completion(content)) as service, opened(service) as model:
        reply = await model.ask(request_for(), parse_yes_no)
        assert reply.value.verdict == verdict


async def test_what_is_done_to_replies_is_reported_once_and_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = in_turn(
        *(completion(f"<think>a</think>{RIGHT}"), completion(f"<think>a</think>{RIGHT}")),
        *(completion(f"Well: {RIGHT}"), completion(RIGHT)),
    )
    async with served(answer) as service, opened(service) as model:
        for number in range(3):
            await model.ask(request_for(f"{number}"), parse_reply)
        assert len(service.requests) == 4
    shown = capsys.readouterr().out
    assert shown.count("replies hold their reasoning") == 2
    assert "replies=2" in shown
    assert shown.count("replies are asked for twice: there is prose around the JSON object") == 1


async def test_text_in_parts_is_read_without_the_parts_that_are_reasoning() -> None:
    parts = [{"type": "thinking", "thinking": WRONG}, {"type": "text", "text": RIGHT}]
    assert await _verdict(parts) == "correct"  # type: ignore[arg-type] # as such a service sends


async def test_json_is_utf_8_whatever_its_header_says() -> None:
    body = json.dumps(completion(RIGHT.replace("same", "né à Brel")).body, ensure_ascii=False)
    latin = Sent(body, headers={"Content-Type": "application/json; charset=iso-8859-1"})
    async with served(latin) as service, opened(service) as model:
        assert (await model.ask(request_for(), parse_reply)).value.reason == "né à Brel"


async def test_a_fact_about_tags_of_reasoning_stays_whole() -> None:
    text = json.dumps({"reason": "<think>b</think> is a tag", "verdict": "correct", "score": 1})
    async with served(completion(text)) as service, opened(service) as model:
        assert (
            await model.ask(request_for(), parse_reply)
        ).value.reason == "<think>b</think> is a tag"


async def test_json_that_is_labelled_as_text_is_read() -> None:
    body = json.dumps(completion(RIGHT).body)
    plain = Sent(body, headers={"Content-Type": "text/plain"})
    async with served(plain) as service, opened(service) as model:
        assert (await model.ask(request_for(), parse_reply)).value.verdict == "correct"
