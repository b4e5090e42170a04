"""What judges were paid for counts, also if an error ends the panel before it decides."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memconform.datasets.question import Question
from memconform.llm.budget import Ledger
from memconform.llm.cache import ReplyCache
from memconform.llm.chat import (
    ChatRequest,
    Completion,
    HaltingError,
    ModelUnusableError,
    RequestRejectedError,
    Usage,
    merge_halts,
)
from memconform.llm.names import ModelName
from memconform.llm.session import CallPolicy, LlmSession, Model
from memconform.scoring.judge.records import unfinished_votes, votes_of
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.judge.tally import JudgingTally
from memconform.scoring.scorer import DaemonResponse
from memconform.scoring.statuses import QuestionStatus

_QUESTION = Question(id="q", question="Where is the boat?", answers=("In Brel.",))
_ANSWER = DaemonResponse(text="It is in Brel.", kind="answer")
_USAGE = Usage(200, 30)
_RIGHT = Completion(
    text='{"reason": "same harbour", "verdict": "correct", "score": 1}',
    usage=_USAGE,
    served_model="served",
)
_UNUSABLE = ModelUnusableError("the key is wrong", code="llm_unusable")


class _Chat:
    """Gives these replies in turn, and the last one from then on."""

    def __init__(self, *replies: Completion | Exception) -> None:
        self.replies = [*replies]

    async def ready(self) -> None:
        pass

    async def complete(self, _: ChatRequest, timeout_s: float) -> Completion:
        assert timeout_s > 0
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close(self) -> None:
        pass


@pytest.fixture
def session(tmp_path: Path) -> Iterator[LlmSession]:
    ledger = Ledger()
    yield LlmSession(
        ledger,
        policy=CallPolicy(deadline_s=60),
        cache=ReplyCache(tmp_path / "cache"),
        env={"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"},
    )
    ledger.close()


def _model(session: LlmSession, name: str, *replies: Completion | Exception) -> Model:
    model = session.model(ModelName.parse(name, {}))
    return replace(model, chat=_Chat(*replies))


async def _halted(scorer: JudgeScorer) -> HaltingError:
    with pytest.raises(HaltingError) as raised:
        await scorer.score(_QUESTION, _ANSWER)
    return raised.value


async def test_a_judge_that_was_asked_counts_if_another_one_halts(session: LlmSession) -> None:
    paid = _model(session, "gpt-4o-2024-08-06", _RIGHT)
    scorer = JudgeScorer([_model(session, "claude-haiku-4-5", _UNUSABLE), paid])
    error = await _halted(scorer)
    [vote] = unfinished_votes(error)
    assert (vote.model, vote.verdict) == ("openai:gpt-4o-2024-08-06", "correct")
    assert (vote.input_tokens, vote.output_tokens) == (_USAGE.input, _USAGE.output)
    assert vote.cost_usd > 0
    assert vote.cost_usd == pytest.approx(session.ledger.committed / 1e9)


async def test_the_first_of_several_replies_counts_if_the_next_call_halts(
    session: LlmSession,
) -> None:
    scorer = JudgeScorer([_model(session, "gpt-4o-2024-08-06", _RIGHT, _UNUSABLE)], repeat=3)
    [vote] = unfinished_votes(await _halted(scorer))
    assert (vote.verdict, vote.verdicts, vote.served_model) == (None, ["correct"], "served")
    assert vote.reason == "llm_unusable: the key is wrong"
    assert vote.cost_usd == pytest.approx(session.ledger.committed / 1e9)


async def test_a_reply_that_was_paid_for_before_its_repair_halts_counts(
    session: LlmSession,
) -> None:
    invalid = replace(_RIGHT, text="It is right, I think.")
    scorer = JudgeScorer([_model(session, "gpt-4o-2024-08-06", invalid, _UNUSABLE)])
    [vote] = unfinished_votes(await _halted(scorer))
    assert (vote.verdicts, vote.input_tokens, vote.cached) == ([], _USAGE.input, False)
    assert vote.cost_usd == pytest.approx(session.ledger.committed / 1e9)


async def test_a_call_that_was_not_made_is_no_vote(session: LlmSession) -> None:
    scorer = JudgeScorer([_model(session, "gpt-4o-2024-08-06", _UNUSABLE)])
    assert not unfinished_votes(await _halted(scorer))
    assert not unfinished_votes(None)


async def test_a_vote_of_a_cached_reply_and_a_failed_call_is_not_cached(
    session: LlmSession,
) -> None:
    rejected = RequestRejectedError("too long", code="llm_rejected")
    await JudgeScorer([_model(session, "gpt-4o-2024-08-06", _RIGHT)]).score(_QUESTION, _ANSWER)
    scorer = JudgeScorer([_model(session, "gpt-4o-2024-08-06", rejected)], repeat=2)
    score = await scorer.score(_QUESTION, _ANSWER)
    assert score.status is QuestionStatus.JUDGE_ERROR
    [vote] = votes_of(score.detail)
    assert (vote.verdicts, vote.cached) == (["correct"], False)


async def test_a_summary_has_the_cost_of_all_unfinished_panels_and_none_of_their_verdicts(
    session: LlmSession,
) -> None:
    names = ("gpt-4o-2024-08-06", "claude-haiku-4-5")
    paid, halting = _model(session, names[0], _RIGHT), _model(session, names[1], _UNUSABLE)
    first = await _halted(JudgeScorer([paid, halting]))
    another = _model(session, names[0], replace(_RIGHT, usage=Usage(100, 10)))
    scorer = JudgeScorer([another, halting], repeat=2)
    # The first reply is cached now, and the second is a sample of its own.
    error = merge_halts(first, await _halted(scorer))
    tally = JudgingTally(scorer.settings, {})
    tally.add([], [QuestionStatus.NOT_RUN])
    tally.add_unfinished(error)
    summary = tally.summary(void=True)
    [use, other] = summary.judges
    assert (use.input_tokens, use.output_tokens) == (300, 40)
    assert summary.cost_usd == pytest.approx(session.ledger.committed / 1e9)
    assert (summary.judged, use.verdicts, use.failed, use.cached) == (0, 0, 0, 0)
    assert (other.input_tokens, other.cost_usd) == (0, 0)
