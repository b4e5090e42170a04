"""Check verdicts and intervals on questions that come in clusters, such as conversations.

    python scripts/bench_clusters.py [--repetitions N]

Two runs differ on a tenth of their questions. In each cluster, which of the two wins them has a
rate of its own around the common one, so that wins are correlated (beta-binomial, correlation
0.05). The tests that count questions as independent are measured beside those by cluster: if they
held their levels here too, the simulation would show nothing, and that is a missed limit as well.
The same draws every time: the seed is fixed.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memconform.stats.bootstrap import mean_intervals
from memconform.stats.clustered_pairs import PairedCluster, clustered_difference, sign_flip
from memconform.stats.clusters import clustered_mean, clustered_wilson
from memconform.stats.intervals import Interval
from memconform.stats.paired import mcnemar, tango
from memconform.stats.paired_comparison import ALPHA, MARGIN, Counts, ParityVerdict, compare_pairs
from reporting import missed, report

_SEED = 20_261
_EQUAL = (198,) * 10
_LOCOMO = (199, 105, 193, 260, 242, 158, 190, 239, 196, 204)
"""Questions of LoCoMo's ten conversations."""
_DOMINATED = (1_500, *[60] * 9)
"""One cluster has most questions."""
_DISCORDANT = 0.1
_CORRELATION = 0.05

_Draw = list[PairedCluster]


def _pairs(
    generator: np.random.Generator,
    sizes: Sequence[int],
    difference: float,
    repetitions: int,
    *,
    discordant: float = _DISCORDANT,
    correlation: float = _CORRELATION,
) -> list[_Draw]:
    """Clusters of two runs whose pass rates differ by `difference`."""
    shape = (repetitions, len(sizes))
    wins = np.full(shape, 0.5 + difference / (2 * discordant))
    if correlation:
        wins = _rates(generator, wins, correlation)
    flips = generator.binomial(np.array(sizes), discordant, shape)
    first = generator.binomial(flips, wins)
    return [
        [PairedCluster(*counts) for counts in zip(sizes, b, c, strict=True)]
        for b, c in zip(first.tolist(), (flips - first).tolist(), strict=True)
    ]


def _rates(
    generator: np.random.Generator, mean: NDArray[np.float64], correlation: float
) -> NDArray[np.float64]:
    """A rate for each cluster, with which its questions are correlated."""
    scale = (1 - correlation) / correlation
    return generator.beta(mean * scale, (1 - mean) * scale)


def _share(found: Callable[[_Draw], bool], draws: Sequence[_Draw]) -> float:
    return 100 * sum(map(found, draws)) / len(draws)


def _by_question(draw: _Draw) -> tuple[int, int, int]:
    size, b, c = (sum(column) for column in zip(*draw, strict=True))
    return b, c, size


def _differs_by_question(draw: _Draw) -> bool:
    b, c, _ = _by_question(draw)
    return mcnemar(b, c).mid_p < ALPHA


def _differs(draw: _Draw) -> bool:
    return sign_flip(own.first_only - own.second_only for own in draw) < ALPHA


def _is_inside(interval: Interval) -> bool:
    return interval.low > -MARGIN and interval.high < MARGIN


def _equal_by_question(draw: _Draw) -> bool:
    return _is_inside(tango(*_by_question(draw), 1 - 2 * ALPHA))


def _equal(draw: _Draw) -> bool:
    return _is_inside(clustered_difference(draw, 1 - 2 * ALPHA))


def _verdict(draw: _Draw) -> ParityVerdict:
    counts = Counts(same=False)
    for cluster, (size, b, c) in enumerate(draw):
        for question in range(size):
            first, second = question >= c, not c <= question < b + c
            counts.add(first=first, second=second, cluster=str(cluster))
    [comparison] = compare_pairs([counts])
    return comparison.verdict


def _levels(generator: np.random.Generator, repetitions: int) -> None:
    """False alarms of equal systems, and false parity of rates that differ by the margin."""
    for name, sizes in (("LoCoMo's sizes", _LOCOMO), ("one large", _DOMINATED)):
        equal = _pairs(generator, sizes, 0.0, repetitions)
        apart = _pairs(generator, sizes, MARGIN, repetitions)
        by_question = _share(_differs_by_question, equal)
        report(f"{name}: false alarms of McNemar", by_question, "%", limit=12, least=True)
        report(f"{name}: false alarms of the sign-flip", _share(_differs, equal), "%", limit=5.5)
        by_question = _share(_equal_by_question, apart)
        report(f"{name}: false parity of Tango", by_question, "%", limit=8, least=True)
        report(f"{name}: false parity by cluster", _share(_equal, apart), "%", limit=5.5)
    # Questions that are independent after all, of which few differ.
    draws = partial(_pairs, generator, discordant=0.04, correlation=0.0, repetitions=repetitions)
    apart = draws((40, 60, 100, 150, 180, 200, 220, 260, 300, 470), MARGIN)
    report("independent: false parity by cluster", _share(_equal, apart), "%", limit=5.5)
    report("independent: false alarms", _share(_differs, draws(_LOCOMO, 0.0)), "%", limit=5.5)


def _power(generator: np.random.Generator, repetitions: int) -> None:
    """What ten conversations can show, at LoCoMo's sizes."""
    for lost, least in ((0.03, 60), (0.05, 95)):
        found = _share(_differs, _pairs(generator, _LOCOMO, lost, repetitions))
        name = f"{100 * lost:g} points lost, LoCoMo's sizes: found"
        report(name, found, "%", limit=least, least=True)
    draws = partial(_pairs, generator, discordant=0.02, repetitions=repetitions)
    found = _share(_equal, draws(_LOCOMO, 0.0))
    report("equal systems, 2 % differ: parity is shown", found, "%", limit=95, least=True)
    few = _pairs(generator, (400,) * 5, 0.06, 20)
    decided = sum(_verdict(draw) is not ParityVerdict.INCONCLUSIVE for draw in few)
    report("five clusters, 6 points lost: verdicts", decided, "", limit=0)
    found = sum(
        _verdict(draw) is ParityVerdict.DRIFT for draw in _pairs(generator, (400,) * 6, 0.06, 20)
    )
    report("six clusters, 6 points lost: drift, of 20", found, "", limit=15, least=True)


def _reciprocal_ranks(
    generator: np.random.Generator, sizes: Sequence[int], hits: float, repetitions: int
) -> tuple[list[list[tuple[float, int]]], float]:
    """Sums of reciprocal ranks by cluster, and their true mean; `hits` are found at all."""
    ranks = 1 / np.minimum(generator.geometric(0.6, 1_000_000), 10)
    found = _rates(generator, np.full((repetitions, len(sizes)), hits), _CORRELATION)
    counts = generator.binomial(np.array(sizes), found)
    draws = [
        [
            (float(generator.choice(ranks, hit).sum()), size)
            for hit, size in zip(row, sizes, strict=True)
        ]
        for row in counts.tolist()
    ]
    return draws, hits * float(ranks.mean())


def _percentile(generator: np.random.Generator, draw: Sequence[tuple[float, int]]) -> Interval:
    """The interval between quantiles of means of clusters drawn with replacement."""
    totals, sizes = np.array(draw).T
    weights = generator.multinomial(len(draw), [1 / len(draw)] * len(draw), 1_000)
    return Interval(*np.quantile(weights @ totals / (weights @ sizes), (0.025, 0.975)))


def _means(generator: np.random.Generator, repetitions: int) -> None:
    """How often a 95 % interval of a mean holds the true one."""
    for name, sizes, least in (
        ("ten equal haystacks", _EQUAL, 93),
        ("LoCoMo's sizes", _LOCOMO, 93),
        ("one large haystack", _DOMINATED, 93),
        ("400 single queries", (1,) * 400, 93),
    ):
        for hits in (0.6, 0.9):
            draws, mean = _reciprocal_ranks(generator, sizes, hits, repetitions)
            inside = sum(
                low <= mean <= high for low, high in (clustered_mean(d).interval() for d in draws)
            )
            covered = 100 * inside / len(draws)
            what = f"mean reciprocal rank, {hits:.0%} found, {name}: covered"
            report(what, covered, "%", limit=least, least=True)
        if len(sizes) > 10:
            continue
        inside = sum(
            low <= mean <= high for low, high in (_percentile(generator, d) for d in draws)
        )
        covered = 100 * inside / len(draws)
        report(f"  by a percentile bootstrap, {name}", covered, "%", limit=92)


def _pass_rates(generator: np.random.Generator, repetitions: int) -> None:
    """How often a 95 % interval of a pass rate holds the true one."""
    for name, sizes in (("LoCoMo's sizes", _LOCOMO), ("one large haystack", _DOMINATED)):
        rates = _rates(generator, np.full((repetitions, len(sizes)), 0.7), _CORRELATION)
        passed = generator.binomial(np.array(sizes), rates)
        inside = 0
        for row in passed.tolist():
            (low, high), _ = clustered_wilson(list(zip(row, sizes, strict=True)))
            inside += low <= 0.7 <= high
        covered = 100 * inside / repetitions
        report(f"pass rate 70 %, {name}: covered", covered, "%", limit=93, least=True)


def _speed(generator: np.random.Generator) -> None:
    """The exact sign-flip of many clusters, as a ratio to a bootstrap of their questions."""
    differences = generator.integers(-3, 4, 1_000)
    started = time.perf_counter()
    sign_flip(differences.tolist())
    exact = time.perf_counter() - started
    values = generator.random(10_000).tolist()
    started = time.perf_counter()
    mean_intervals([values])
    drawn = time.perf_counter() - started
    report("exact sign-flip of 1,000 clusters / bootstrap of 10,000", exact / drawn, "", limit=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=4_000)
    repetitions = parser.parse_args().repetitions
    generator = np.random.default_rng(_SEED)
    _speed(generator)
    _levels(generator, repetitions)
    _power(generator, repetitions)
    _means(generator, repetitions)
    _pass_rates(generator, repetitions)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
