"""When requests arrive, and what they ask: fixed by a seed before anything is sent."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from memconform.load.plan import Mix, Step
from memconform.load.records import Operation


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that is to be sent."""

    number: int
    """From 0, in the order of arrival."""
    at_s: float
    """Seconds from the beginning of the step; 0 in a closed loop, which has no schedule."""
    operation: Operation
    row: int
    """The question's place among those of the plan."""


def poisson_times(rate: float, duration_s: float, rng: random.Random) -> Iterator[float]:
    """Yield the instants of a Poisson process, in seconds, from 0 to the end of `duration_s`.

    The gaps are independent and exponential, so that requests come in bursts as those of many
    users do; evenly spaced ones would never meet, and hide queueing.
    """
    at = rng.expovariate(rate)
    while at < duration_s:
        yield at
        at += rng.expovariate(rate)


def arrivals(step: Step, duration_s: float, mix: Mix, rows: int, seed: int) -> Iterator[Arrival]:
    """Yield what a step sends; without end for a closed loop.

    The same seed yields the same arrivals for every SDK. Questions come in random order, each once
    before any comes again.
    """
    rng = random.Random(f"{seed} {step.label}")  # noqa: S311 - repeatable, and no secret
    times = _zeros() if step.rate is None else poisson_times(step.rate, duration_s, rng)
    # Of its own, so that another mix leaves the instants as they are.
    choices = random.Random(f"{seed} {step.label} requests")  # noqa: S311 - as above
    order = _shuffled(range(rows), choices)
    operations, shares = list(mix), list(mix.values())
    for number, at in enumerate(times):
        [operation] = choices.choices(operations, shares)
        yield Arrival(number, at, operation, next(order))


def _zeros() -> Iterator[float]:
    return (0.0 for _ in count())


def _shuffled(rows: Sequence[int], rng: random.Random) -> Iterator[int]:
    while True:
        yield from rng.sample(rows, len(rows))
