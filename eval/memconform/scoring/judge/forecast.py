"""What judging would take: calls, tokens and dollars, before anything is asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memconform.datasets.question import Question
from memconform.llm.accounting import dollars, estimate
from memconform.llm.cache import ReplyCache, cache_key
from memconform.llm.chat import ChatRequest
from memconform.llm.names import ModelName
from memconform.llm.prices import ModelTraits, Prices
from memconform.llm.replies import cached_reply
from memconform.llm.settings import address
from memconform.scoring.judge.rubric import STRICT, Rubric

ASSUMED_ANSWER = "x" * 400
"""Stands for an answer that is not known yet."""


@dataclass(slots=True)
class Forecast:
    """Estimated calls and cost of one model, without retries and repairs."""

    role: str
    model: str
    calls: int = 0
    cached: int = 0
    """Calls of these that would cost nothing."""
    input_tokens: int = 0
    """Estimated from bytes, on the high side."""
    output_tokens: int = 0
    """At most."""
    cost_usd: float | None = 0.0
    """At most; None for a model without a price."""
    unverified: bool = False
    """Whether that price was not read from the vendor's page."""

    def add(self, request: ChatRequest, traits: ModelTraits, *, cached: bool) -> None:
        """Count one call."""
        self.calls += 1
        if cached:
            self.cached += 1
            return
        self.unverified = traits.unverified
        usage = estimate(request, traits)
        self.input_tokens += usage.input
        self.output_tokens += usage.output
        if traits.price is None or self.cost_usd is None:
            self.cost_usd = None
        else:
            self.cost_usd += dollars(traits.price.cost(usage))


def forecast_judging(
    names: Iterable[ModelName],
    prices: Prices,
    answers: Iterable[tuple[Question, str | None]],
    env: Mapping[str, str],
    *,
    repeat: int = 1,
    cache: ReplyCache | None = None,
    role: str = "judge",
    first: int = 0,
    rubric: Rubric = STRICT,
) -> list[Forecast]:
    """What judging these answers would take, a row a judge.

    Args:
        names: of the judges.
        prices: where their prices and limits stand.
        answers: each with its question; None where it is not known yet, which assumes 400
            characters.
        env: names the addresses of services, which a cached reply is of.
        repeat: times that each judge is asked.
        cache: where replies are looked for; None counts every call as made. With a cache, a call
            that judges an equal answer is made once.
        role: as the row is named.
        first: the number of the first repetition.
        rubric: by which the answers are judged.
    """
    rows = [
        (name, address(name, env), prices.traits(name), Forecast(role, str(name))) for name in names
    ]
    counted: set[str] = set()
    for question, answer in answers:
        if answer is not None and rubric.settle(question, answer) is not None:
            continue
        request = rubric.request(question, ASSUMED_ANSWER if answer is None else answer)
        for name, where, traits, row in rows:
            for number in range(first, first + repeat):
                key = cache_key(name, where, traits, request, number)
                cached = False
                if answer is not None and cache is not None:
                    cached = key in counted or cached_reply(cache, key, rubric.parse) is not None
                    counted.add(key)
                row.add(request, traits, cached=cached)
    return [row for *_, row in rows]
