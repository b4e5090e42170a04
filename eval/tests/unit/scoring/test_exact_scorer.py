import pytest

from memconform.datasets.expected_text import holds_expected
from memconform.datasets.question import Question, TextKind
from memconform.datasets.question_row import QuestionRow
from memconform.errors import UsageError
from memconform.scoring.exact import ExactScorer
from memconform.scoring.scorer import DaemonResponse
from memconform.scoring.statuses import QuestionStatus


def _question(**row: object) -> Question:
    return QuestionRow.model_validate({"id": "q", "question": "what?", **row}).to_question()


@pytest.mark.parametrize(
    ("row", "text", "score"),
    [
        ({"expected_substrings": ["Canberra"]}, "It is CANBERRA.", 1),
        ({"expected_substrings": ["Canberra"]}, "It is Sydney.", 0),
        ({"expected_substrings": ["Canberra"], "case_sensitive": True}, "canberra", 0),
        ({"expected_substrings": ["one", "two"]}, "two", 1),
        ({"expected_substrings": ["one", "two"], "match": "all"}, "two", 0),
        ({"expected_substrings": ["one", "two"], "match": "all"}, "two or one", 1),
        ({"expected_substrings": ["Au"]}, "August", 1),
        ({"expected_substrings": ["Au"], "word": True}, "August", 0),
        ({"expected_substrings": ["Au"], "word": True}, "It is au.", 1),
        ({"expected_substrings": ["10 %"], "word": True}, "about 10 %, then", 1),
        ({"expected_substrings": ["10"], "word": True}, "about 100", 0),
        ({"expected_substrings": ["a.c"], "word": True}, "abc", 0),
        ({"expected_substrings": ["Caf\u00e9"]}, "the cafe\u0301", 1),
        ({"expected_substrings": ["STRASSE"]}, "Hauptstra\u00dfe", 1),
        ({"expected_substrings": ["x"]}, "", 0),
    ],
)
async def test_exact_score(row: dict[str, object], text: str, score: float) -> None:
    response = DaemonResponse(text=text, kind="answer")
    assert (await ExactScorer().score(_question(**row), response)).value == score


async def test_a_question_without_expectations_cannot_be_scored() -> None:
    assert not holds_expected(_question(), "anything")
    with pytest.raises(ValueError, match="expected_substrings"):
        await ExactScorer().score(_question(), DaemonResponse(text="anything", kind="retrieval"))
    with pytest.raises(UsageError, match="'q'"):
        ExactScorer().require_scorable([_question()])


@pytest.mark.parametrize(
    ("row", "text", "kind", "verdict"),
    [
        ({"expected_substrings": ["x"]}, "x", "answer", QuestionStatus.CORRECT),
        ({"expected_substrings": ["x"]}, "y", "answer", QuestionStatus.INCORRECT),
        (
            {"expected_substrings": ["x"]},
            "No information available.",
            "answer",
            QuestionStatus.ABSTAINED,
        ),
        ({"abstain": True}, "No information available.", "answer", QuestionStatus.CORRECT),
        ({"abstain": True}, "It is x.", "answer", QuestionStatus.INCORRECT),
        # Retrieved text that happens to contain the phrase is not an abstention.
        ({"expected_substrings": ["x"]}, "not mentioned, x", "retrieval", QuestionStatus.CORRECT),
    ],
)
async def test_verdicts(
    row: dict[str, object], text: str, kind: TextKind, verdict: QuestionStatus
) -> None:
    response = DaemonResponse(text=text, kind=kind)
    assert (await ExactScorer().score(_question(**row), response)).status is verdict


def test_every_verdict_is_measured_or_not() -> None:
    assert {verdict for verdict in QuestionStatus if verdict.measured} == {
        QuestionStatus.CORRECT,
        QuestionStatus.INCORRECT,
        QuestionStatus.ABSTAINED,
    }
    assert {verdict for verdict in QuestionStatus if not verdict.expected} == {
        QuestionStatus.NOT_APPLICABLE
    }
