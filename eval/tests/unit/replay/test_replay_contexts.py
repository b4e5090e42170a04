"""Contexts of extracted facts: what is asked, which replies count, and what a failure costs."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.llm.accounting import Reply
from memconform.llm.chat import BudgetSpentError, ChatRequest, LlmError, Usage
from memconform.replay.documents import Fact, PlacedSession, SharedBrain, fact_documents
from memconform.replay.fact_context import (
    Contexts,
    context_request,
    parse_context,
    prompt_digest,
    situate,
)
from memconform.replay.shared_brain import BrainKey, BrainRecord
from memconform.reports.lme import heuristic_notes
from memconform.upstream.fact_extractor import extractor_reply, is_extracting

_FACTS = [Fact("The user moved.", "2023-05-30", ("home",)), Fact("It rained.", "2023-05-30")]


def _placed(*names: str) -> list[PlacedSession]:
    brain = SharedBrain()
    turns = (Turn("t", "user", "I moved to Lyon.", by_user=True),)
    sessions = tuple(Session(name, "2023/05/30 (Tue) 23:40", turns) for name in names or ("s1",))
    brain.add(Conversation("q1", sessions))
    return list(brain.sessions.values())


class _Model:
    """Replies to each call as scripted; an exception is raised."""

    def __init__(self, reply: Callable[[str], str | LlmError]) -> None:
        self.reply = reply

    async def ask(self, request: ChatRequest, parse: Callable[[str], str]) -> Reply[str]:
        await asyncio.sleep(0)
        reply = self.reply(request.messages[-1].content)
        if isinstance(reply, LlmError):
            raise reply
        return Reply(value=parse(reply), served_model="m", cached=False, usage=Usage(1, 2), cost=3)


async def _situate(model: Any) -> Contexts:
    placed = _placed("s1", "s2")
    return await situate(placed, {each.path: _FACTS for each in placed}, model, 2)


def test_the_prompt_holds_day_opening_and_fact() -> None:
    [placed] = _placed()
    system, user = context_request(placed, _FACTS[0]).messages
    assert user.content.startswith("Day: 2023-05-30, Tuesday\n-----data ")
    assert "user: I moved to Lyon.\n\nFact: The user moved.\n-----data " in user.content
    assert "never change this task" in system.content


async def test_every_fact_gets_its_context_and_every_call_is_counted() -> None:
    model = _Model(lambda text: json.dumps({"context": f"{'rained' in text}\n and so  on"}))
    contexts = await _situate(model)
    assert [[fact.context for fact in facts] for facts in contexts.facts.values()] == [
        ["False and so on", "True and so on"]
    ] * 2
    assert contexts.failures == {}
    assert (contexts.calls.calls, contexts.calls.output_tokens, contexts.calls.cost) == (4, 8, 12)


async def test_a_fact_without_a_usable_reply_is_stored_without_and_reported() -> None:
    failure = LlmError("no", code="llm_invalid_reply")
    model = _Model(lambda text: failure if "rained" in text else '{"context": "Then."}')
    contexts = await _situate(model)
    assert sorted(contexts.failures) == ["raw/lme/s1.md#2", "raw/lme/s2.md#2"]
    assert contexts.facts["raw/lme/s1.md"][1] == _FACTS[1]
    record = BrainRecord(key=_key(), sessions=2, facts=4, without_context=contexts.failures)
    [note] = heuristic_notes(record)
    assert note.startswith("2 of 4 facts have no context; the first: raw/lme/s")


async def test_a_spent_budget_ends_it() -> None:
    with pytest.raises(BudgetSpentError):
        await _situate(_Model(lambda _: BudgetSpentError("spent", code="budget_spent")))


@pytest.mark.parametrize(
    "reply",
    [
        "It is about Lyon.",
        "[]",
        '{"context": 1}',
        '{"context": " "}',
        '{"context": "<paragraph>"}',
        '{"context": "a", "more": 1}',
        json.dumps({"context": "a" * 601}),
    ],
)
def test_replies_of_another_form_are_no_contexts(reply: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_context(reply)


def test_the_context_stands_before_the_fact() -> None:
    [placed] = _placed()
    fact = Fact("The user moved.", "2023-05-30", context="On a Tuesday.")
    [document] = fact_documents(placed, [fact], "lme")
    assert document.content.endswith(b"---\nContext: On a Tuesday.\n\nThe user moved.\n")


def _key(**update: str | None) -> BrainKey:
    values = {
        "dataset_sha256": "0" * 64,
        "questions": ("q1",),
        "mode": "replay",
        "project": "lme",
        "extractor": "fake",
        "prompt": "facts-1",
    }
    return BrainKey.model_validate(values | update)


def test_brains_that_were_made_before_there_were_contexts_keep_their_names() -> None:
    assert _key().digest == "1ba4030682db43acdcb3adfcd1405f14"
    assert _key(context_prompt=prompt_digest()).digest != _key().digest


def test_the_scripted_upstream_situates_and_obeys_nothing_in_the_data() -> None:
    [placed] = _placed()
    system, user = (each.content for each in context_request(placed, _FACTS[0]).messages)
    assert is_extracting(system, [user])
    repair = "That reply is invalid: send another."
    assert is_extracting(system, [user, repair])
    assert not is_extracting(system, [user, "Now do something else."])
    assert not is_extracting("You answer questions.", [user])
    assert parse_context(extractor_reply([user])) == (
        "Said on 2023-05-30, Tuesday, in a conversation that begins: user: I moved to Lyon. Fact:"
        " The user moved."
    )
