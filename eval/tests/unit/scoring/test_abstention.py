"""What counts as abstaining, in the order of docs/JUDGES.md, for every scorer."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.datasets.answer_keys import read_answer_key
from memconform.datasets.expected_text import holds_expected
from memconform.datasets.question import Question
from memconform.datasets.question_row import QuestionRow
from memconform.llm.accounting import Reply
from memconform.llm.chat import ChatRequest, Usage
from memconform.llm.session import Model
from memconform.replay.answers import matches_exactly
from memconform.scoring.abstention import (
    PHRASES,
    abstains,
    abstains_rightly,
    contains_phrase,
)
from memconform.scoring.exact import ExactScorer
from memconform.scoring.judge.official_prompts import OfficialRubric
from memconform.scoring.judge.prompt import JudgeReply
from memconform.scoring.judge.rubric import Rubric
from memconform.scoring.judge.rubrics import OWN_RUBRICS
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.scorer import DaemonResponse
from memconform.scoring.statuses import QuestionStatus
from memconform.upstream import lexical_judge
from tests.conftest import CHECKOUT

_DATA = Path(os.environ.get("MEMCONFORM_DATA", CHECKOUT.parent / "shared" / "data"))
_FILES = {
    "locomo": _DATA / "locomo" / "locomo10.json",
    "longmemeval": _DATA / "longmemeval" / "longmemeval_oracle.json",
}
_WMB = _DATA / "wmb100k" / "datasets" / "all_questions.json"

real = pytest.mark.skipif(not _DATA.is_dir(), reason="the public files are not in $MEMCONFORM_DATA")

_RUBRICS: list[Rubric] = [*OWN_RUBRICS.values(), OfficialRubric({})]

_PLAIN = Question(id="q", question="What is its scale?", answers=("1/48",))


_KIT = replace(_PLAIN, answers=("Maker not mentioned; its scale is 1/48.",))


def _question(**row: object) -> Question:
    return QuestionRow.model_validate({"id": "q", "question": "what?", **row}).to_question()


async def _status(question: Question, answer: str) -> QuestionStatus:
    response = DaemonResponse(text=answer, kind="answer")
    return (await ExactScorer().score(question, response)).status


@pytest.mark.parametrize(
    "answer",
    [
        "No information available.",
        "NOT MENTIONED",
        '"Not mentioned."',
        "**No information available**",
        "`Not mentioned`",
        "No\u200b information available\u2026",
        "I'm sorry, but there is no information available.",
        "I\u2019m sorry. No information available.",
        "Sorry: not mentioned in the conversation.",
        "Unfortunately, no information is available in the given notes.",
        "Based on the provided context, no information available.",
        "**Answer:** Not mentioned",
        "No information available. Not mentioned.",
    ],
)
def test_an_answer_that_is_nothing_but_a_phrase_abstains(answer: str) -> None:
    assert abstains(_PLAIN, answer)


@pytest.mark.parametrize(
    "answer",
    [
        "1/48; the maker is not mentioned.",
        "Not mentioned: 1/48",
        "No information available, but perhaps 1/48.",
        "I'm sorry. The scale is 1/48. Not mentioned.",
        "Bo was not mentioned by Ana",
        "No",
        "Sorry.",
        "n/a",
        "...",
        "",
    ],
)
def test_any_other_answer_abstains_from_nothing(answer: str) -> None:
    assert not abstains(_PLAIN, answer)


@pytest.mark.parametrize(
    ("marker", "answer", "expected"),
    [
        ("N/A", " n/a.", True),
        ("N/A", "'N/A'", True),
        ("N/A", "N/A, perhaps", False),
        ("-", "-", True),
        ("-", "", False),
        ("-", "...", False),
        ("I do not know; ask Bo.", "i do not know; ask bo", True),
    ],
)
def test_the_marker_of_a_dataset_abstains(marker: str, answer: str, expected: bool) -> None:  # noqa: FBT001
    assert abstains(replace(_PLAIN, abstain_marker=marker), answer) is expected


@pytest.mark.parametrize(
    ("row", "answer", "status"),
    [
        # The two of cases/marker.jsonl, in other words: the reference has the phrase.
        (
            {"reference_answer": "Maker not mentioned; 1/48.", "expected_substrings": ["1/48"]},
            "Maker not mentioned; 1/48.",
            "correct",
        ),
        ({"expected_substrings": ["1/48"]}, "1/48, maker not mentioned", "correct"),
        ({"expected_substrings": ["1/48"]}, "The maker is not mentioned", "incorrect"),
        ({"expected_substrings": ["1/48"]}, "Not mentioned.", "abstained"),
        # The reference abstains, or only has the phrase.
        (
            {"reference_answer": "Not mentioned.", "expected_substrings": ["not mentioned"]},
            "Not mentioned.",
            "correct",
        ),
        (
            {"reference_answer": "Scale not mentioned; 1/48", "expected_substrings": ["1/48"]},
            "not mentioned",
            "incorrect",
        ),
        ({"expected_substrings": ["not mentioned"]}, "Not mentioned.", "correct"),
        # A part of the phrase is no answer: nine references of LoCoMo are "No".
        ({"expected_substrings": ["No"]}, "No information available.", "abstained"),
        ({"expected_substrings": ["No"]}, "No.", "correct"),
        ({"expected_substrings": ["none"], "abstain_marker": "None"}, "None", "correct"),
        ({"expected_substrings": ["snow"], "abstain_marker": "No"}, "no", "abstained"),
        # Questions to abstain from.
        ({"abstain": True}, "I'm sorry, there is no information available.", "correct"),
        ({"abstain": True}, "It is not mentioned whether 1/48 or 1/72; 1/48.", "incorrect"),
        ({"abstain": True, "abstain_marker": "N/A"}, "N/A", "correct"),
        (
            {"abstain": True, "reference_answer": "You spoke of a cat, and of no hamster."},
            "you spoke of a cat, and of no hamster",
            "correct",
        ),
        (
            {"abstain": True, "reference_answer": "That was not mentioned to me."},
            "Not mentioned.",
            "correct",
        ),
    ],
)
async def test_expected_strings_and_references_are_compared_first(
    row: dict[str, object], answer: str, status: str
) -> None:
    assert await _status(_question(**row), answer) == status


class _OfflineJudge:
    """The scripted judge, which counts what it is asked."""

    name = "fake"
    asked = 0

    async def ask(
        self, request: ChatRequest, parse: Callable[[str], JudgeReply], *, repetition: int
    ) -> Reply[JudgeReply]:
        del repetition
        self.asked += 1
        value = parse(lexical_judge.judge(request.messages[-1].content))
        return Reply(value=value, served_model="", cached=False, usage=Usage(1, 1), cost=0)


@pytest.mark.parametrize(
    ("question", "answer", "status"),
    [
        (_KIT, "Maker not mentioned; its scale is 1/48.", "correct"),
        (_KIT, "Not mentioned.", "incorrect"),
        (_PLAIN, "Not mentioned.", "abstained"),
        (_PLAIN, "The scale is not mentioned on the box.", "incorrect"),
        (replace(_PLAIN, abstain_marker="N/A"), "n/a", "abstained"),
        (Question(id="u", question="Who?", abstain=True), "Not mentioned.", "correct"),
        (Question(id="u", question="Who?", abstain=True), "Ana.", "incorrect"),
        (Question(id="u", question="Who?", abstain=True, abstain_marker="-"), "-", "correct"),
    ],
)
async def test_with_a_judge_the_judge_says(question: Question, answer: str, status: str) -> None:
    judge = _OfflineJudge()
    scorer = JudgeScorer([cast("Model", judge)])
    score = await scorer.score(question, DaemonResponse(text=answer, kind="answer"))
    assert (score.status, judge.asked) == (status, 1)


_WORDS = st.sampled_from([*PHRASES, *map(str.upper, PHRASES), "1/48", "No", "n/a", ".", ","])
_TEXTS = st.lists(_WORDS | st.text(max_size=5), min_size=1, max_size=5).map(" ".join)


@given(_TEXTS.filter(str.strip), st.data())
async def test_the_repeated_reference_is_right_if_it_has_the_expected_string(
    reference: str, data: st.DataObject
) -> None:
    """Two answers equal to their reference scored 0, though the expected string was in them."""
    start = data.draw(st.integers(0, len(reference) - 1))
    end = data.draw(st.integers(start + 1, len(reference)))
    question = Question(
        id="q",
        question="?",
        answers=(reference,),
        expected_substrings=(reference[start:end],),
        abstain_marker=data.draw(st.sampled_from([None, "n/a", "-", reference])),
    )
    if holds_expected(question, reference):
        assert await _status(question, reference) is QuestionStatus.CORRECT
    assert not abstains(question, reference)
    unknown = replace(question, abstain=True, expected_substrings=())
    assert await _status(unknown, reference) is QuestionStatus.CORRECT


@real
@pytest.mark.parametrize("suite", ["locomo", "longmemeval"])
async def test_no_reference_of_the_public_files_abstains_when_it_is_repeated(suite: str) -> None:
    questions = read_answer_key(_FILES[suite], suite).questions.values()  # type: ignore[arg-type] # of both suites
    with_phrase = []
    for question in questions:
        for answer in question.answers:
            if contains_phrase(answer):
                with_phrase.append(question.id)
            expecting = replace(question, expected_substrings=(answer,))
            assert await _status(expecting, answer) is QuestionStatus.CORRECT, question.id
            assert matches_exactly(question, answer), question.id
            assert all(rubric.settle(question, answer) is None for rubric in _RUBRICS), question.id
    # docs/JUDGES.md says which.
    assert with_phrase == {"locomo": [], "longmemeval": ["gpt4_59c863d7"]}[suite]


@real
def test_no_answer_of_wmb_100k_abstains() -> None:
    rows: list[dict[str, Any]] = json.loads(_WMB.read_text(encoding="utf-8"))
    texts = [text for row in rows for text in (row["gold_answer"], *row["required_memories"])]
    assert len(texts) == 6_727
    assert [text for text in texts if contains_phrase(text) or abstains(_PLAIN, text)] == []


def test_the_rule_of_locomo_is_the_one_of_its_code() -> None:
    assert contains_phrase("Sorry: that was NOT MENTIONED anywhere, so 1/48")
    assert contains_phrase("There is No Information Available on it")
    assert not contains_phrase("There is no information on it")


_TRIP = Question(id="q", question="When did Dr. Smith go on the trip with Caroline?", abstain=True)


@pytest.mark.parametrize(
    "answer",
    [
        "There is no information available about Caroline's trip.",
        "The trip is not mentioned in the conversation.",
        "It was not mentioned.",
        "There was no information available.",
        "No, not mentioned.",
        "No information available (in the memories).",
        "Not mentioned in the provided conversation history.",
        "I'm sorry, but Dr. Smith's trip is not mentioned.",
    ],
)
def test_declining_in_the_words_of_the_question_is_right_where_there_is_no_answer(
    answer: str,
) -> None:
    """Each was wrong, which looked like a low score."""
    assert abstains_rightly(_TRIP, answer)


@pytest.mark.parametrize(
    "answer",
    [
        "It is not mentioned. She went to Rome.",
        "The year is not mentioned, but she went to Rome.",
        "She went to Rome, the year is not mentioned.",
        "Rome (the year is not mentioned).",
        "The trip is not mentioned - she went to Rome.",
        "It is not mentioned and she went to Rome.",
        "In 2023, which is not mentioned.",
        "No information available before 12 May.",
        "She went on the trip with Caroline.",
        "The trip is notmentioned.",
        "5, not mentioned.",
        "\u516d, not mentioned.",
    ],
)
def test_an_answer_that_says_more_than_its_question_is_no_abstention(answer: str) -> None:
    """A sentence with the phrase counted as right, whatever else it answered."""
    assert not abstains_rightly(_TRIP, answer)


def test_a_phrase_and_words_of_the_question_are_no_abstention_of_other_questions() -> None:
    assert not abstains(replace(_TRIP, abstain=False), "The trip is not mentioned.")
