"""What the calls of one role took, reader or judge, as results state it."""

from collections.abc import Iterable

from memconform.llm.accounting import CallTotals, dollars
from memconform.records import Record
from memconform.scoring.judge.records import JudgeVote


class RoleCost(Record):
    """The calls of one role."""

    calls: int
    cached: int
    """How many of the calls were answered by the cache; they cost nothing and count no tokens."""
    input_tokens: int
    output_tokens: int
    cost_usd: float

    @classmethod
    def of_calls(cls, totals: CallTotals) -> "RoleCost":
        """What was counted call by call."""
        return cls(
            calls=totals.calls,
            cached=totals.cached,
            input_tokens=totals.input_tokens,
            output_tokens=totals.output_tokens,
            cost_usd=dollars(totals.cost),
        )

    @classmethod
    def of_votes(cls, votes: Iterable[JudgeVote]) -> "RoleCost":
        """What judges took; a vote without a verdict took a call."""
        counted = [(max(1, len(vote.verdicts)), vote) for vote in votes]
        return cls(
            calls=sum(calls for calls, _ in counted),
            cached=sum(calls for calls, vote in counted if vote.cached),
            input_tokens=sum(vote.input_tokens for _, vote in counted),
            output_tokens=sum(vote.output_tokens for _, vote in counted),
            cost_usd=sum(vote.cost_usd for _, vote in counted),
        )
