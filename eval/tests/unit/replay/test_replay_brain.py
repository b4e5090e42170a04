"""The shared brain of a replay: its documents, its facts and its file."""

import asyncio
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memconform import redaction
from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.errors import UsageError
from memconform.llm.accounting import Reply
from memconform.llm.chat import BudgetSpentError, ChatRequest, LlmError, Usage
from memconform.replay.documents import Fact, SharedBrain, fact_documents, session_document
from memconform.replay.extraction import (
    extract,
    extraction_request,
    heuristic_facts,
    parse_facts,
)
from memconform.replay.shared_brain import (
    BrainKey,
    BrainRecord,
    brain_path,
    make_brains_folder,
    read_brain,
    write_brain,
)


def _session(name: str, day: str = "2023/05/30 (Tue) 23:40", *texts: str) -> Session:
    turns = tuple(
        Turn(f"{name}_{n}", ("user", "assistant")[n % 2], text, n % 2 == 0)
        for n, text in enumerate(texts or ("I moved to Lyon. Do you know it?", "Yes."))
    )
    return Session(name, day, turns)


def _brain(*conversations: Conversation) -> SharedBrain:
    brain = SharedBrain()
    for conversation in conversations:
        brain.add(conversation)
    return brain


def _key(**update: Any) -> BrainKey:
    values = {
        "dataset_sha256": "0" * 64,
        "questions": ("q1",),
        "mode": "replay",
        "project": "lme",
        "extractor": "fake",
        "prompt": "facts-1",
    }
    return BrainKey.model_validate(values | update)


def test_a_session_of_two_questions_is_stored_once() -> None:
    brain = _brain(
        Conversation("q1", (_session("s1"), _session("s2"))), Conversation("q2", (_session("s1"),))
    )
    assert list(brain.sessions) == ["raw/lme/s1.md", "raw/lme/s2.md"]
    assert brain.paths == {"q1": ("raw/lme/s1.md", "raw/lme/s2.md"), "q2": ("raw/lme/s1.md",)}


def test_a_session_with_another_date_has_a_document_of_its_own() -> None:
    other = _session("s1", "2023/06/01 (Thu) 08:00")
    brain = _brain(
        Conversation("q1", (_session("s1"),)),
        Conversation("q2", (other,)),
        Conversation("q3", (other,)),
    )
    assert brain.paths["q2"] == brain.paths["q3"] == ("raw/lme/s1@20230601T0800.md",)
    [first, second] = brain.sessions.values()
    assert b"2023-05-30T23:40:00Z" in session_document(first).content
    assert b"2023-06-01T08:00:00Z" in session_document(second).content


@pytest.mark.parametrize(
    ("sessions", "code"),
    [
        ((_session("s1", "some day"),), "no_session_date"),
        ((_session("s1"), _session("s1", "2023/05/30 (Tue) 23:40", "Hi.")), "session_differs"),
    ],
)
def test_sessions_that_no_brain_can_hold_are_refused(
    sessions: tuple[Session, ...], code: str
) -> None:
    conversations = [Conversation(f"q{n}", (session,)) for n, session in enumerate(sessions)]
    with pytest.raises(UsageError) as caught:
        _brain(*conversations)
    assert caught.value.code == code


def test_documents_have_front_matter_and_a_block_a_turn() -> None:
    brain = _brain(Conversation("q1", (_session('a "b"\nc'),)))
    [placed] = brain.sessions.values()
    document = session_document(placed)
    assert document.path == "raw/lme/a%20%22b%22%0Ac.md"
    assert document.content.decode().split("\n") == [
        "---",
        'session_id: "a%20%22b%22%0Ac"',
        'session_date: "2023-05-30T23:40:00Z"',
        'date: "2023-05-30T23:40:00Z"',
        "---",
        "user: I moved to Lyon. Do you know it?",
        "",
        "assistant: Yes.",
        "",
    ]
    [fact] = fact_documents(placed, [Fact("The user moved.", "2023-05-30", ("home",))], "lme")
    assert fact.path == "memory/project/lme/a%20%22b%22%0Ac-001.md"
    assert b"tags: [home]\n" in fact.content
    assert fact.content.endswith(b"---\nThe user moved.\n")


def test_the_heuristic_takes_what_users_say_of_themselves() -> None:
    session = _session("s1", "2023/05/30", "I moved to Lyon. My cat came too! Is it far?", "I see.")
    assert heuristic_facts(session, date(2023, 5, 30)) == [
        Fact("I moved to Lyon.", "2023-05-30"),
        Fact("My cat came too!", "2023-05-30"),
    ]


_GOOD = {"text": "The user moved.", "day": "2023-05-30", "tags": ["New Home", "!", "new-home"]}


def test_facts_are_read_from_one_json_object() -> None:
    assert parse_facts(json.dumps({"facts": [_GOOD]})) == [
        Fact("The user moved.", "2023-05-30", ("new-home",))
    ]
    assert parse_facts('{"facts": []}') == []


@pytest.mark.parametrize(
    "reply",
    [
        "There are no facts.",
        'Here: {"facts": []}',
        '{"facts": [',
        '{"facts": {}}',
        '{"facts": [], "more": 1}',
        "[]",
        '{"facts": ["The user moved."]}',
        json.dumps({"facts": [_GOOD | {"text": " "}]}),
        json.dumps({"facts": [_GOOD | {"day": "2023-02-30"}]}),
        json.dumps({"facts": [_GOOD | {"day": "yesterday"}]}),
        json.dumps({"facts": [_GOOD | {"tags": "home"}]}),
        json.dumps({"facts": [_GOOD | {"tags": [1]}]}),
        json.dumps({"facts": [_GOOD | {"sure": True}]}),
        json.dumps({"facts": [_GOOD] * 101}),
    ],
)
def test_replies_of_another_form_are_no_facts(reply: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_facts(reply)


class _Model:
    """Answers each session as scripted; an exception is raised."""

    def __init__(self, reply: Callable[[str, int], str | LlmError]) -> None:
        self.reply = reply
        self.asked: list[tuple[str, int]] = []

    async def ask(
        self, request: ChatRequest, parse: Callable[[str], list[Fact]], *, repetition: int = 0
    ) -> Reply[list[Fact]]:
        await asyncio.sleep(0)
        content = request.messages[-1].content
        self.asked.append((content, repetition))
        reply = self.reply(content, repetition)
        if isinstance(reply, LlmError):
            raise reply
        try:
            value = parse(reply)
        except ValueError as error:
            raise LlmError(str(error), code="llm_invalid_reply") from error
        return Reply(value=value, served_model="m", cached=False, usage=Usage(1, 1), cost=1)


async def test_a_session_without_a_usable_reply_gets_the_facts_of_the_heuristic() -> None:
    brain = _brain(
        Conversation("q1", (_session("s1"), _session("s2", "2023/05/30", "I like tea.", "Ok.")))
    )
    model = _Model(lambda text, _: "no" if "tea" in text else json.dumps({"facts": [_GOOD]}))
    extraction = await extract(brain.sessions.values(), model, 2)  # type: ignore[arg-type]
    assert extraction.facts["raw/lme/s2.md"] == [Fact("I like tea.", "2023-05-30")]
    assert list(extraction.by_heuristic) == ["raw/lme/s2.md"]
    assert extraction.by_heuristic["raw/lme/s2.md"].code == "llm_invalid_reply"
    assert extraction.served == {"m": 1}
    assert sorted(repetition for _, repetition in model.asked) == [0, 0, 1]


async def test_a_second_sample_that_is_usable_is_the_models() -> None:
    brain = _brain(Conversation("q1", (_session("s1"),)))
    model = _Model(lambda _, number: json.dumps({"facts": [_GOOD]}) if number else "prose")
    extraction = await extract(brain.sessions.values(), model, 1)  # type: ignore[arg-type]
    assert not extraction.by_heuristic
    assert len(extraction.facts["raw/lme/s1.md"]) == 1


async def test_a_spent_budget_ends_the_extraction() -> None:
    sessions = tuple(_session(f"s{n}") for n in range(9))
    brain = _brain(Conversation("q1", sessions))
    model = _Model(lambda *_: BudgetSpentError("spent", code="budget_spent"))
    with pytest.raises(BudgetSpentError):
        await extract(brain.sessions.values(), model, 3)  # type: ignore[arg-type]


def test_the_prompt_holds_day_and_turns() -> None:
    request = extraction_request(_session("s1"), date(2023, 5, 30))
    content = request.messages[-1].content
    assert content.startswith("Day: 2023-05-30\n-----data ")
    assert "user: I moved to Lyon." in content


def _written(folder: Path, key: BrainKey) -> Path:
    brain = _brain(Conversation("q1", (_session("s1"), _session("s2"))))
    facts = {path: [Fact(f"From {path}.", "2023-05-30")] for path in brain.sessions}
    path = brain_path(folder, key)
    write_brain(path, BrainRecord(key=key, sessions=2, facts=2), brain, facts)
    return path


def test_a_brain_is_read_as_it_was_written(tmp_path: Path) -> None:
    key = _key()
    path = _written(tmp_path, key)
    brain = read_brain(path, key)
    assert brain is not None
    assert [document.path for document in brain.documents()] == [
        "raw/lme/s1.md",
        "memory/project/lme/s1-001.md",
        "raw/lme/s2.md",
        "memory/project/lme/s2-001.md",
    ]
    assert brain.size == 4
    first = path.read_bytes()
    _written(tmp_path, key)
    assert path.read_bytes() == first


def test_a_brain_without_facts_has_sessions_alone(tmp_path: Path) -> None:
    key = _key(mode="bulk", extractor=None, prompt=None)
    brain = read_brain(_written(tmp_path, key), key)
    assert brain is not None
    assert brain.size == 2


def test_no_brain_is_not_a_damaged_one(tmp_path: Path) -> None:
    assert read_brain(tmp_path / "none.jsonl", _key()) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"".join(data.splitlines(keepends=True)[:-1]),
        lambda data: data.replace(b"Lyon", b"Nice"),
        lambda data: b"".join(data.splitlines(keepends=True)[i] for i in (0, 2, 1, 3, 4, 5)),
        lambda data: b"".join(data.splitlines(keepends=True)[i] for i in (0, 1, 2, 3, 5)),
        lambda data: data + data.splitlines(keepends=True)[1],
        lambda data: data.replace(b'"project": "lme"', b'"project": "eml"'),
        lambda data: b"\xff" + data,
        lambda data: b"[]\n" + data,
    ],
)
def test_a_damaged_brain_is_refused(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """A brain cut by a killed run would have made every later answer wrong."""
    key = _key()
    path = _written(tmp_path, key)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    with pytest.raises(UsageError) as caught:
        read_brain(path, key)
    assert caught.value.code == "brain_damaged"


def test_a_brain_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path, _key())
    with pytest.raises(UsageError) as caught:
        read_brain(path, _key(questions=("q2",)))
    assert caught.value.code == "brain_damaged"


def test_a_key_that_is_a_word_of_a_session_does_not_change_the_brain(tmp_path: Path) -> None:
    """Masked, the daemons would hold other sessions than the questions are about."""
    redaction.hide("Lyon")
    key = _key()
    path = _written(tmp_path, key)
    assert b"Lyon" in path.read_bytes()
    brain = read_brain(path, key)
    assert brain is not None
    assert any(b"Lyon" in document.content for document in brain.documents())


def test_a_folder_that_cannot_be_made_is_refused_before_a_brain_is_paid_for(tmp_path: Path) -> None:
    """It was exit code 70, `results_unwritable`, after the extraction."""
    make_brains_folder(tmp_path / "brains")
    assert (tmp_path / "brains").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as raised:
        make_brains_folder(tmp_path / "file" / "brains")
    assert raised.value.code == "cache_unwritable"
