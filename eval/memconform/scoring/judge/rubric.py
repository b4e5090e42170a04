"""What a judge is asked about an answer, and which of its replies count: the rubric protocol."""

import hashlib
import unicodedata
from typing import Protocol

from memconform.datasets.question import Question
from memconform.errors import UsageError
from memconform.llm.chat import ChatRequest
from memconform.scoring.abstention import is_marker
from memconform.scoring.judge.prompt import (
    MAX_CANDIDATE,
    JudgeReply,
    judge_request,
    parse_reply,
    prompt_digest,
    shown_candidate,
)
from memconform.scoring.scorer import Score
from memconform.scoring.statuses import QuestionStatus


class Rubric(Protocol):
    """By what an answer is judged right or wrong."""

    @property
    def name(self) -> str:
        """The name that `--rubric` takes."""
        ...

    def require_scorable(self, question: Question) -> None:
        """Raise UsageError for a question that answers cannot be judged by."""
        ...

    def shown(self, candidate: str) -> str:
        """The part of an answer that a judge sees."""
        ...

    def request(self, question: Question, candidate: str) -> ChatRequest:
        """The call that judges one answer to a question that is scorable."""
        ...

    def parse(self, text: str) -> JudgeReply:
        """The verdict that a reply holds; raises ValueError for a reply without one."""
        ...

    def settle(self, question: Question, candidate: str) -> Score | None:
        """The score of an answer that needs no judge; None if a judge has to decide."""
        ...

    def digest(self) -> str:
        """The first 12 hex digits of a SHA-256 that changes with the wording."""
        ...


class StrictRubric:
    """The rubric of `--scorer judge`: specific, complete, and judged by the reference alone."""

    name = "strict"

    def require_scorable(self, question: Question) -> None:
        """As `require_reference`."""
        require_reference(question)

    def shown(self, candidate: str) -> str:
        """As `shown_candidate`."""
        return shown_candidate(candidate)

    def request(self, question: Question, candidate: str) -> ChatRequest:
        """The call that judges one answer."""
        return judge_request(question, candidate)

    def parse(self, text: str) -> JudgeReply:
        """The verdict of a JSON reply; raises ValueError as `parse_reply`."""
        return parse_reply(text)

    def settle(self, question: Question, candidate: str) -> Score | None:
        """As `settled_if_blank`."""
        return settled_if_blank(question, candidate)

    def digest(self) -> str:
        """As `prompt_digest`, by which calibrations are stored."""
        return prompt_digest()


STRICT = StrictRubric()


def require_reference(question: Question) -> None:
    """Raise UsageError (`unscorable_question`) for a question with nothing to be judged by."""
    if not (question.reference_answer or question.rubric or question.abstain):
        raise UsageError(
            f"question {question.id!r} has no reference_answer to judge answers by",
            code="unscorable_question",
            hint="add reference_answer or abstain, or skip it with --ids or --tag",
        )


def digest_of_requests(rubric: Rubric, questions: tuple[Question, ...]) -> str:
    """The digest of a rubric by its requests about these questions, one of each kind."""
    requests = [rubric.request(question, "candidate" * MAX_CANDIDATE) for question in questions]
    return hashlib.sha256(repr(requests).encode()).hexdigest()[:12]


def settled_if_blank(question: Question, answer: str) -> Score | None:
    """The score of an answer of nothing but spaces, punctuation and invisible characters.

    None for any other, and for the question's own marker of abstention: a judge has to decide.
    """
    if is_marker(question, answer):
        return None
    if all(unicodedata.category(character)[0] in "CPZ" for character in answer):
        return Score(0.0, QuestionStatus.INCORRECT, "the answer is empty", {"judges": []})
    return None
