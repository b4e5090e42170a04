"""From the votes of several judges to one verdict."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from memconform.scoring.judge.prompt import JudgeReply
from memconform.scoring.judge.records import JudgeVote, TieRule
from memconform.scoring.scorer import Score
from memconform.scoring.statuses import QuestionStatus


def majority(verdicts: Sequence[str]) -> str | None:
    """The verdict of more than half; None where they split evenly, or there are none."""
    for verdict in ("correct", "incorrect"):
        if 2 * verdicts.count(verdict) > len(verdicts):
            return verdict
    return None


def own_verdict(replies: Sequence[JudgeReply]) -> tuple[str | None, float | None, str]:
    """What one judge says, asked one or several times: verdict, score, reason."""
    verdict = majority([reply.verdict for reply in replies])
    if verdict is None:
        return None, None, f"the judge contradicted itself in {len(replies)} tries, evenly"
    agreeing = [reply for reply in replies if reply.verdict == verdict]
    return verdict, fmean(reply.score for reply in agreeing), agreeing[0].reason


def decide(votes: Sequence[JudgeVote], tie: TieRule) -> Score:
    """The panel's score: of the majority; `judge_error` if a judge failed, or they split evenly.

    A judge that failed is not outvoted: two of three are another panel than the one asked for.
    """
    detail = {"judges": [vote.model_dump(mode="json") for vote in votes]}
    failed = [vote for vote in votes if vote.verdict is None]
    if failed:
        return Score(None, QuestionStatus.JUDGE_ERROR, failed[0].reason, detail)
    verdict = majority([vote.verdict or "" for vote in votes])
    if verdict is None and tie == "error":
        split = ", ".join(f"{vote.model} says {vote.verdict}" for vote in votes)
        return Score(None, QuestionStatus.JUDGE_ERROR, f"split: {split}", detail)
    if verdict is None:
        score = 1.0 if tie == "correct" else 0.0
        return Score(score, _status(tie), f"an even split counts as {tie}", detail)
    agreeing = [vote for vote in votes if vote.verdict == verdict]
    return Score(
        fmean(vote.score or 0.0 for vote in agreeing),
        _status(verdict),
        agreeing[0].reason,
        detail,
    )


def excused_if_cut(score: Score, seen: int, whole: int, of: str = "characters") -> Score:
    """`judge_error` instead of `incorrect` for an answer of which a judge saw only a part.

    Three right answers behind a megabyte of other text were scored as wrong. `seen` and `whole` are
    numbers `of` something.
    """
    if score.status is not QuestionStatus.INCORRECT or seen >= whole:
        return score
    reason = (
        f"answer_cut: the judge saw {seen:,} of {whole:,} {of}, and what was"
        " asked for may be in the others"
    )
    return replace(score, value=None, status=QuestionStatus.JUDGE_ERROR, reason=reason)


def _status(verdict: str) -> QuestionStatus:
    return QuestionStatus.CORRECT if verdict == "correct" else QuestionStatus.INCORRECT
