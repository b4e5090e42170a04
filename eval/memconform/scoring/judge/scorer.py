"""The judge scorer: language models decide whether an answer is right."""

import asyncio
from collections.abc import Iterable, Sequence

from memconform.datasets.model import Question
from memconform.llm.accounting import Reply, dollars
from memconform.llm.calls import InvalidReplyError, Model
from memconform.llm.chat import HaltingError, LlmError
from memconform.scoring.judge.panel import decide, excused_if_cut, own_verdict
from memconform.scoring.judge.prompt import JudgeReply
from memconform.scoring.judge.records import (
    JudgeModel,
    JudgeSettings,
    JudgeVote,
    TieRule,
    address_digest,
)
from memconform.scoring.judge.rubric import STRICT, Rubric
from memconform.scoring.scorer import DaemonResponse, Score


class JudgeScorer:
    """Asks one or several judges; the majority decides."""

    name = "judge"
    in_process = False

    def __init__(
        self,
        models: Sequence[Model],
        *,
        repeat: int = 1,
        tie: TieRule = "error",
        rubric: Rubric = STRICT,
    ) -> None:
        """Judge by `models`, each asked `repeat` times about an answer.

        Args:
            models: of one open session.
            repeat: each time is a sample of its own, to see whether a judge contradicts itself.
            tie: what an even split comes to.
            rubric: what a judge is asked, and what counts as right.
        """
        self._models = models
        self._rubric = rubric
        self._repeat = repeat
        self._tie: TieRule = tie

    @property
    def settings(self) -> JudgeSettings:
        """What decides the judgements."""
        return JudgeSettings(
            models=[judge_model(model) for model in self._models],
            prompt=self._rubric.digest(),
            repeat=self._repeat,
            tie=self._tie,
        )

    def require_scorable(self, questions: Iterable[Question]) -> None:
        """Raise UsageError naming a question that has nothing to be judged by."""
        for question in questions:
            self._rubric.require_scorable(question)

    async def score(self, question: Question, response: DaemonResponse) -> Score:
        """The panel's score; `judge_error` where a judge gives no valid verdict.

        Raises:
            HaltingError: no answer can be judged any more: the budget is spent, the key is wrong,
                the service is down.
        """
        settled = self._rubric.settle(question, response.text)
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
        score = decide([vote for vote in votes if isinstance(vote, JudgeVote)], self._tie)
        return excused_if_cut(score, len(self._rubric.shown(response.text)), len(response.text))

    async def _vote(self, model: Model, question: Question, answer: str) -> JudgeVote:
        request = self._rubric.request(question, answer)
        replies: list[Reply[JudgeReply]] = []
        failure: LlmError | None = None
        for number in range(self._repeat):
            try:
                replies.append(await model.ask(request, self._rubric.parse, repetition=number))
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
                "invalid_reply": failure.reply if isinstance(failure, InvalidReplyError) else "",
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
