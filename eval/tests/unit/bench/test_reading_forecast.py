"""The forecast of reading counts what the reader would ask, and no more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.answering.forecast import ReadingForecast, ReadingForecaster
from memconform.bench.answering.plan import AnswerTask, Arm
from memconform.bench.answering.records import ReaderSettings
from memconform.datasets.conversation_store import ConversationStore
from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.datasets.question import Question
from memconform.llm.cache import CachedReply, ReplyCache, cache_key
from memconform.llm.chat import ChatRequest
from memconform.llm.names import ModelName
from memconform.llm.prices import Prices
from memconform.llm.records import ModelSettings
from memconform.scoring.reader.names import Method
from memconform.scoring.reader.passages import Passage
from memconform.scoring.reader.prompts import DECLINES, OwnWording

_NAME = ModelName("openai", "gpt-4o-2024-08-06")
_TRAITS = Prices.load().traits(_NAME)
_QUESTION = Question(id="q", question="How many hives?", answers=("9",))
_SESSIONS = tuple(
    Session(name, f"2023/05/2{day}", (Turn(f"{name}_1", "user", text, by_user=True),))
    for day, (name, text) in enumerate((("a", "Nine hives."), ("b", "Tea.")))
)
_TASK = AnswerTask(_QUESTION, "h", ("a",))
_ORACLE, _ALL = Arm("oracle", control="oracle"), Arm("full-context", control="full-context")
_NONE, _NEVER = Arm("no-memory", control="no-memory"), Arm("never", control="always-abstain")


class _Store(ConversationStore):
    """One conversation."""

    def __getitem__(self, name: str) -> Conversation:
        assert name == "h"
        return Conversation("h", _SESSIONS)


Write = Callable[[ChatRequest, str], None]


@pytest.fixture
def cache(tmp_path: Path) -> ReplyCache:
    return ReplyCache(tmp_path)


@pytest.fixture
def write(cache: ReplyCache) -> Write:
    def keep(request: ChatRequest, text: str) -> None:
        cache.write(cache_key(_NAME, None, _TRAITS, request), CachedReply(text, "m"))

    return keep


def _passage(at: int) -> Passage:
    session = _SESSIONS[at]
    return Passage(session.id, session.id, session.date, session.turns, at * 1_000_000)


def _forecast(cache: ReplyCache, method: Method, *arms: Arm, **more: Any) -> ReadingForecast:
    wording = OwnWording(method, "text")
    settings = ReaderSettings(
        model=ModelSettings.of(_NAME, _TRAITS, None),
        prompts="own",
        prompt=wording.digest(),
        method=method,
        history="text",
        speakers="all",
        unit="session",
        top_k=1,
        context_tokens=8_000,
        budget_tokens=4_000,
        seed=0,
    )
    forecaster = ReadingForecaster(
        name=_NAME,
        traits=_TRAITS,
        address=None,
        wording=wording,
        settings=settings,
        level="session",
        cache=cache,
    )
    with _Store() as conversations:
        return forecaster.forecast(arms, more.get("tasks", [_TASK]), conversations)


def _counts(forecast: ReadingForecast) -> list[tuple[int, int]]:
    return [(row.calls, row.cached) for row in forecast.arms]


def test_an_empty_cache_leaves_everything_to_pay(cache: ReplyCache) -> None:
    forecast = _forecast(cache, "direct", _ORACLE, _ALL, _NONE, _NEVER)
    assert [row.role for row in forecast.arms] == ["oracle", "full-context", "no-memory"]
    assert _counts(forecast) == [(1, 0), (1, 0), (1, 0)]
    assert [answer for _, answer in forecast.answers] == [None, None, None, DECLINES]
    assert all(row.cost_usd for row in forecast.arms)


def test_a_cached_answer_is_not_paid_for_and_is_what_judges_read(
    cache: ReplyCache, write: Write
) -> None:
    write(OwnWording("direct", "text").answer_request("How many hives?", None, [_passage(0)]), "9")
    forecast = _forecast(cache, "direct", _ORACLE, _ALL)
    assert _counts(forecast) == [(1, 1), (1, 0)]
    assert [answer for _, answer in forecast.answers] == ["9", None]


@pytest.mark.parametrize(
    "text", ["Evidence:\n-----evidence 0", " ", "Error: 429 Too Many Requests"]
)
def test_a_cached_reply_that_the_reader_rejects_is_paid_for_again(
    cache: ReplyCache, write: Write, text: str
) -> None:
    request = OwnWording("direct", "text").answer_request("How many hives?", None, [_passage(0)])
    write(request, text)
    forecast = _forecast(cache, "direct", _ORACLE)
    assert _counts(forecast) == [(1, 0)]
    assert forecast.answers == [(_QUESTION, None)]


def test_a_call_of_an_earlier_arm_is_made_once(cache: ReplyCache) -> None:
    again = Arm("again", control="oracle")
    assert _counts(_forecast(cache, "direct", _ORACLE, again)) == [(1, 0), (1, 1)]


def test_an_answer_is_known_once_all_its_notes_are(cache: ReplyCache, write: Write) -> None:
    wording = OwnWording("con-separate", "text")
    notes = [wording.note_request("How many hives?", None, _passage(at)) for at in range(2)]
    assert _counts(_forecast(cache, "con-separate", _ALL)) == [(3, 0)]
    write(notes[0], "Nine hives.")
    assert _counts(_forecast(cache, "con-separate", _ALL)) == [(3, 1)]
    # Nothing in it: the answer is read from the first note alone.
    write(notes[1], "empty")
    assert _counts(_forecast(cache, "con-separate", _ALL)) == [(3, 2)]
    note = wording.apply_note(_passage(0), "Nine hives.")
    assert note is not None
    write(wording.answer_request("How many hives?", None, [note]), "9")
    forecast = _forecast(cache, "con-separate", _ALL)
    assert _counts(forecast) == [(3, 3)]
    assert forecast.answers == [(_QUESTION, "9")]
    # An echo of the prompt is no note.
    write(notes[1], "You read one earlier conversation of a user, and write down what of it bears")
    assert _counts(_forecast(cache, "con-separate", _ALL)) == [(3, 1)]


def test_what_cannot_be_answered_is_neither_read_nor_judged(cache: ReplyCache) -> None:
    unknown = AnswerTask(_QUESTION, "h", ())
    forecast = _forecast(cache, "direct", _ORACLE, _NONE, tasks=[unknown])
    assert _counts(forecast) == [(0, 0), (1, 0)]
    assert len(forecast.answers) == 1
