"""The exact scorer: does the text contain the expected strings?"""

from collections.abc import Iterable

from memconform.datasets.expected_text import holds_expected
from memconform.datasets.question import Question
from memconform.errors import UsageError
from memconform.scoring.abstention import abstains, abstains_rightly
from memconform.scoring.scorer import DaemonResponse, Score
from memconform.scoring.statuses import QuestionStatus


class ExactScorer:
    """Scores a response by its expected substrings and by whether it abstains."""

    name = "exact"
    in_process = True

    def require_scorable(self, questions: Iterable[Question]) -> None:
        """Raise UsageError `unscorable_question` if this scorer could never pass a question."""
        for question in questions:
            if not question.expected_substrings and not question.abstain:
                raise UsageError(
                    f"question {question.id!r} has no expected_substrings, so no answer could pass"
                    " the exact scorer",
                    code="unscorable_question",
                    hint="add expected_substrings or abstain, or exclude it with --ids or --tag",
                )

    async def score(self, question: Question, response: DaemonResponse) -> Score:
        """Score 1.0 for the expected answer or abstention, else 0.0.

        Raises:
            ValueError: if the question has no expected strings, so no answer could pass.
        """
        if response.kind == "answer":
            if question.abstain:
                return (
                    Score(1.0, QuestionStatus.CORRECT)
                    if abstains_rightly(question, response.text)
                    else Score(0.0, QuestionStatus.INCORRECT)
                )
            if abstains(question, response.text):
                return Score(0.0, QuestionStatus.ABSTAINED)
        if not question.expected_substrings:
            raise ValueError(f"question {question.id!r} has no expected_substrings")
        if holds_expected(question, response.text):
            return Score(1.0, QuestionStatus.CORRECT)
        return Score(0.0, QuestionStatus.INCORRECT)
