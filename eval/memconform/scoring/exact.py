"""The exact scorer: does the text hold the expected strings?"""

from collections.abc import Iterable

from memconform.datasets.matching import holds
from memconform.datasets.model import Question
from memconform.errors import UsageError
from memconform.scoring.abstention import abstains
from memconform.scoring.scorer import DaemonResponse, Score
from memconform.scoring.statuses import QuestionStatus


class ExactScorer:
    name = "exact"
    in_process = True

    def require_scorable(self, questions: Iterable[Question]) -> None:
        """Raises UsageError naming a question that this scorer could never pass."""
        for question in questions:
            if not question.expected_substrings and not question.abstain:
                raise UsageError(
                    f"question {question.id!r} has no expected_substrings, so that no answer"
                    " could pass the exact scorer",
                    code="unscorable_question",
                    hint="add expected_substrings or abstain, or leave it out with --ids/--tag",
                )

    async def score(self, question: Question, response: DaemonResponse) -> Score:
        """1.0 for what is expected, else 0.0.

        Raises:
            ValueError: for a question without expected strings, which nothing could pass.
        """
        if response.kind == "answer":
            abstained = abstains(response.text, question.abstain_marker)
            if question.abstain:
                return (
                    Score(1.0, QuestionStatus.CORRECT)
                    if abstained
                    else Score(0.0, QuestionStatus.INCORRECT)
                )
            if abstained:
                return Score(0.0, QuestionStatus.ABSTAINED)
        if not question.expected_substrings:
            raise ValueError(f"question {question.id!r} has no expected_substrings")
        if holds_expected(question, response.text):
            return Score(1.0, QuestionStatus.CORRECT)
        return Score(0.0, QuestionStatus.INCORRECT)


def holds_expected(question: Question, text: str) -> bool:
    """Whether any (or with `match: all` every) expected string occurs in `text`.

    False for a question without expected strings.
    """
    expected = question.expected_substrings
    combine = all if question.match == "all" else any
    return bool(expected) and combine(holds(question, each, text) for each in expected)
