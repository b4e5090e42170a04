"""The judge scorer: language models decide whether an answer is right."""

import asyncio
import unicodedata
from collections.abc import Iterable, Sequence

from memconform.datasets.model import Question
from memconform.errors import UsageError
from memconform.llm.accounting import Reply, dollars
from memconform.llm.calls import Model
from memconform.llm.chat import HaltingError, LlmError
from memconform.scoring.abstention import abstains
from memconform.scoring.judge.panel import decide, own_verdict
from memconform.scoring.judge.prompt import (
    JudgeReply,
    judge_request,
    parse_reply,
    prompt_digest,
)
from memconform.scoring.judge.records import (
    JudgeModel,
    JudgeSettings,
    JudgeVote,
    TieRule,
    address_digest,
)
from memconform.scoring.scorer import DaemonResponse, Score
from memconform.scoring.statuses import QuestionStatus


class JudgeScorer:
    """Asks one or several judges; the majority decides."""

    name = "judge"
    in_process = False

    def __init__(self, models: Sequence[Model], *, repeat: int = 1, tie: TieRule = "error") -> None:
        """Judge by `models`, each asked `repeat` times about an answer.

        Args:
            models: of one open session.
            repeat: each time is a sample of its own, to see whether a judge contradicts itself.
            tie: what an even split comes to.
        """
        self._models = models
        self._repeat = repeat
        self._tie: TieRule = tie

    @property
    def settings(self) -> JudgeSettings:
        """What decides the judgements."""
        return JudgeSettings(
            models=[judge_model(model) for model in self._models],
            prompt=prompt_digest(),
            repeat=self._repeat,
            tie=self._tie,
        )

    def require_scorable(self, questions: Iterable[Question]) -> None:
        """Raise UsageError naming a question that has nothing to be judged by."""
        for question in questions:
            if not (question.reference_answer or question.rubric or question.abstain):
                raise UsageError(
                    f"question {question.id!r} has no reference_answer to judge answers by",
                    code="unscorable_question",
                    hint="add reference_answer or abstain, or skip it with --ids or --tag",
                )

    async def score(self, question: Question, response: DaemonResponse) -> Score:
        """The panel's score; `judge_error` where a judge gives no valid verdict.

        Raises:
            HaltingError: no answer can be judged any more: the budget is spent, the key is wrong,
                the service is down.
        """
        settled = settled_by_text(question, response.text)
        if settled is not None:
            return settled
        # What the others were paid for is waited for: it is in the cache when the run is resumed.
        votes = await asyncio.gather(
            *(self._vote(model, question, response.text) for model in self._models),
            return_exceptions=True,
        )
        for vote in votes:
            if isinstance(vote, BaseException):
                raise vote
        return decide([vote for vote in votes if isinstance(vote, JudgeVote)], self._tie)

    async def _vote(self, model: Model, question: Question, answer: str) -> JudgeVote:
        request = judge_request(question, answer)
        replies: list[Reply[JudgeReply]] = []
        failure: LlmError | None = None
        for number in range(self._repeat):
            try:
                replies.append(await model.ask(request, parse_reply, repetition=number))
            except HaltingError:
                raise
            except LlmError as error:
                failure = error
                break
        verdict, score, reason = (
            (None, None, f"{failure.code}: {failure.message}")
            if failure is not None
            else own_verdict([reply.value for reply in replies])
        )
        parts: list[Reply[JudgeReply] | LlmError] = [*replies]
        if failure is not None:
            parts.append(failure)
        usages = [part.usage for part in parts if part.usage is not None]
        return JudgeVote.model_validate(
            {
                "model": str(model.name),
                "served_model": replies[-1].served_model if replies else "",
                "verdict": verdict,
                "score": score,
                "reason": reason,
                "verdicts": [reply.value.verdict for reply in replies],
                "cached": bool(replies) and all(reply.cached for reply in replies),
                "input_tokens": sum(usage.input for usage in usages),
                "output_tokens": sum(usage.output for usage in usages),
                "cost_usd": dollars(sum(part.cost for part in parts)),
            }
        )


def judge_model(model: Model) -> JudgeModel:
    """What a result says of a judge."""
    return JudgeModel(
        model=str(model.name),
        sampling=dict(model.traits.sampling),
        address=address_digest(model.endpoint.stable_address),
    )


def settled_by_text(question: Question, answer: str) -> Score | None:
    """The score of an answer that needs no judge, because its text alone settles it; else None.

    That is an answer of nothing but spaces, punctuation and invisible characters, and one that
    abstains by the phrases that always do.
    """
    if all(unicodedata.category(character)[0] in "CPZ" for character in answer):
        return Score(0.0, QuestionStatus.INCORRECT, "the answer is empty", {"judges": []})
    if not abstains(answer, question.abstain_marker):
        return None
    reason = "the answer abstains"
    if question.abstain:
        return Score(1.0, QuestionStatus.CORRECT, reason, {"judges": []})
    return Score(0.0, QuestionStatus.ABSTAINED, reason, {"judges": []})
