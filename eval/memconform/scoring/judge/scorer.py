"""The judge scorer: language models decide whether an answer is right."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from memconform.datasets.question import Question
from memconform.llm.accounting import Reply, dollars
from memconform.llm.chat import HaltingError, LlmError
from memconform.llm.replies import InvalidReplyError
from memconform.llm.session import Model
from memconform.scoring.abstention import abstains
from memconform.scoring.judge.panel import decide, excused_if_cut, own_verdict
from memconform.scoring.judge.prompt import JudgeReply
from memconform.scoring.judge.records import JudgeSettings, JudgeVote, TieRule
from memconform.scoring.judge.rubric import STRICT, Rubric
from memconform.scoring.scorer import DaemonResponse, Score
from memconform.scoring.statuses import QuestionStatus


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
            models=[model.settings for model in self._models],
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
                the service is down. `unfinished` has the votes of judges that were asked.
        """
        settled = self._rubric.settle(question, response.text)
        if settled is not None:
            return settled
        # What the others were paid for is waited for: it is in the cache when the run is resumed.
        outcomes = await asyncio.gather(
            *(self._ask(model, question, response.text) for model in self._models),
            return_exceptions=True,
        )
        panel: list[_JudgeReplies] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            panel.append(outcome)
        votes = [judge.vote() for judge in panel]
        halts = (judge.failure for judge in panel if isinstance(judge.failure, HaltingError))
        if (halt := next(halts, None)) is not None:
            paid = (vote for judge, vote in zip(panel, votes, strict=True) if judge.calls)
            halt.unfinished = tuple(vote.model_dump(mode="json") for vote in paid)
            raise halt
        score = decide(votes, self._tie)
        is_wrong = score.status is QuestionStatus.INCORRECT
        if is_wrong and not question.abstain and abstains(question, response.text):
            score = replace(score, status=QuestionStatus.ABSTAINED)
        return excused_if_cut(score, len(self._rubric.shown(response.text)), len(response.text))

    async def _ask(self, model: Model, question: Question, answer: str) -> "_JudgeReplies":
        request = self._rubric.request(question, answer)
        replies = _JudgeReplies(str(model.name))
        for number in range(self._repeat):
            try:
                reply = await model.ask(request, self._rubric.parse, repetition=number)
            except LlmError as error:
                replies.failure = error
                break
            replies.replies.append(reply)
        return replies


@dataclass(slots=True)
class _JudgeReplies:
    """What one judge said of an answer, until a call failed."""

    model: str
    replies: list[Reply[JudgeReply]] = field(default_factory=list)
    failure: LlmError | None = None

    @property
    def calls(self) -> list[Reply[JudgeReply] | LlmError]:
        """The calls that were made, or read from the cache."""
        if self.failure is None or not self.failure.was_made:
            return [*self.replies]
        return [*self.replies, self.failure]

    def vote(self) -> JudgeVote:
        """The vote; without a verdict if a call failed."""
        verdict, score, reason = (
            (None, None, f"{self.failure.code}: {self.failure.message}")
            if self.failure is not None
            else own_verdict([reply.value for reply in self.replies])
        )
        usages = [call.usage for call in self.calls if call.usage is not None]
        invalid = self.failure.reply if isinstance(self.failure, InvalidReplyError) else ""
        return JudgeVote.model_validate(
            {
                "model": self.model,
                "served_model": self.replies[-1].served_model if self.replies else "",
                "verdict": verdict,
                "score": score,
                "reason": reason,
                "verdicts": [reply.value.verdict for reply in self.replies],
                "invalid_reply": invalid,
                "cached": bool(self.calls)
                and all(isinstance(call, Reply) and call.cached for call in self.calls),
                "input_tokens": sum(usage.input for usage in usages),
                "output_tokens": sum(usage.output for usage in usages),
                "cost_usd": dollars(sum(call.cost for call in self.calls)),
            }
        )
