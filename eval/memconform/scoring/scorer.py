"""From an outcome's text to a score and a verdict."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from memconform.datasets.model import Question
from memconform.errors import UsageError
from memconform.scoring.abstention import abstains
from memconform.scoring.exact import exact_score
from memconform.scoring.verdicts import PASS_THRESHOLD, Verdict

TextKind = Literal["answer", "retrieval"]


@dataclass(frozen=True, slots=True)
class Score:
    value: float
    """In [0, 1]."""
    verdict: Verdict


class ExactScorer:
    name = "exact"

    def refuse_unscorable(self, questions: Iterable[Question]) -> None:
        """Raises UsageError naming a question that this scorer could never pass."""
        for question in questions:
            if not question.expected_substrings and not question.abstain:
                raise UsageError(
                    f"question {question.id!r} has no expected_substrings, so that no answer"
                    " could pass the exact scorer",
                    code="unscorable_question",
                    hint="add expected_substrings or abstain, or leave it out with --ids/--tag",
                )

    def score(self, question: Question, text: str, kind: TextKind) -> Score:
        """Score an answer, or the text that a retrieval returned."""
        if kind == "answer":
            abstained = abstains(text, question.abstain_marker)
            if question.abstain:
                return Score(1.0, Verdict.CORRECT) if abstained else Score(0.0, Verdict.INCORRECT)
            if abstained:
                return Score(0.0, Verdict.ABSTAINED)
        value = exact_score(question, text)
        passed = value >= PASS_THRESHOLD
        return Score(value, Verdict.CORRECT if passed else Verdict.INCORRECT)
