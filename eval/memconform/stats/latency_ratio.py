"""How much slower one of two results is, question by question."""

from collections.abc import Iterable
from math import exp
from statistics import fmean

from memconform.records import Record
from memconform.stats.bootstrap import mean_intervals
from memconform.stats.paired_comparison import RateInterval


class LatencyRatio(Record):
    """The second run's latency divided by the first's: geometric mean over questions."""

    questions: int
    ratio: RateInterval
    """With the paired bootstrap interval at 95 %."""


def latency_ratio(logs: Iterable[float], seed: int) -> LatencyRatio:
    """The geometric mean of ratios, given as logarithms, with its bootstrap interval."""
    values = list(logs)
    [(low, high)] = mean_intervals([values], seed=seed)
    mean = RateInterval(value=exp(fmean(values)), low=exp(low), high=exp(high))
    return LatencyRatio(questions=len(values), ratio=mean)
