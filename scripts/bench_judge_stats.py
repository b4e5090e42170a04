"""Whether the interval of a corrected rate covers the true one, by a judge's errors.

    python scripts/bench_judge_stats.py [--draws N]

Each cell draws a run and a calibration N times, with true answers at the rate and a judge of the
sensitivity and specificity given, and counts how often the 95 % interval of `rogan_gladen` holds
the rate. A second table has calibrations that are a sample of the run itself (`lme arbitrate`). The
same draws every time: the seed is fixed.
"""

import argparse
import sys
from functools import cache
from itertools import product

import numpy as np

from memconform.stats.prevalence import rogan_gladen
from reporting import missed, report

_RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
_JUDGE = (0.8, 0.9, 0.95, 0.99)
_CALIBRATIONS = (100, 150)
_RUNS = (100, 264, 500)
_SAMPLED = ((0.5, 0.7, 0.9), (0.9, 0.97), (0.85, 0.95))
"""Rates, sensitivities and specificities of the second table."""
_SAMPLES = (30, 60, 100)


def _coverage(
    generator: np.random.Generator,
    draws: int,
    *,
    rate: float,
    sensitivity: float,
    specificity: float,
    calibration: int,
    run: int,
) -> float:
    """The share of intervals that hold the rate."""

    @cache
    def holds(passed: int, hits: int, rejections: int) -> bool:
        found = rogan_gladen(
            passed,
            run,
            sensitivity=(hits, calibration),
            specificity=(rejections, calibration),
        )
        # A judge that is found to be no judge corrects nothing, and that is no wrong interval.
        return found is None or found.interval.low <= rate <= found.interval.high

    passes = rate * sensitivity + (1 - rate) * (1 - specificity)
    counts = (
        generator.binomial(run, passes, draws).tolist(),
        generator.binomial(calibration, sensitivity, draws).tolist(),
        generator.binomial(calibration, specificity, draws).tolist(),
    )
    return sum(map(holds, *counts)) / draws


def _sampled_coverage(
    generator: np.random.Generator,
    draws: int,
    *,
    rate: float,
    sensitivity: float,
    specificity: float,
    sample: int,
    run: int,
) -> float:
    """The share of intervals that hold the rate, by errors that were counted in the run itself."""
    right, wrong = rate * sensitivity, (1 - rate) * specificity
    cells = [right, rate - right, wrong, 1 - rate - wrong]

    @cache
    def holds(passed: int, hits: int, misses: int, rejections: int) -> bool:
        found = rogan_gladen(
            passed,
            run,
            sensitivity=(hits, hits + misses),
            specificity=(rejections, sample - hits - misses),
        )
        return found is None or found.interval.low <= rate <= found.interval.high

    sampled = generator.multinomial(sample, cells, draws)
    others = generator.binomial(run - sample, cells[0] + cells[3], draws)
    hits, misses, rejections, accepted = sampled.T
    passed = hits + accepted + others
    counts = (each.tolist() for each in (passed, hits, misses, rejections))
    return sum(map(holds, *counts)) / draws


def _sampled_table(generator: np.random.Generator, draws: int) -> None:
    columns = list(product(_SAMPLES, _RUNS))
    print(f"\nCalibrated by a sample of the run, {draws:,} draws; sample / run")
    print("rate   Se    Sp  " + "".join(f"{f'{k} / {n}':>11}" for k, n in columns))
    found: dict[int, list[float]] = {sample: [] for sample in _SAMPLES}
    for rate, sensitivity, specificity in product(*_SAMPLED):
        line = ""
        for sample, run in columns:
            judge = {"sensitivity": sensitivity, "specificity": specificity}
            share = 100 * _sampled_coverage(
                generator, draws, rate=rate, sample=sample, run=run, **judge
            )
            found[sample].append(share)
            line += f"{share:>11.1f}"
        print(f"{rate:<5g}{sensitivity:>5g}{specificity:>6g}  {line}", flush=True)
    for sample, limit in zip(_SAMPLES, (90, 93, 95), strict=True):
        what = f"corrected rate by a sample of {sample}: lowest coverage"
        report(what, min(found[sample]), "%", limit=limit, least=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20_000)
    draws = parser.parse_args().draws
    generator = np.random.default_rng(1)
    columns = list(product(_CALIBRATIONS, _RUNS))
    print(f"Coverage of the 95 % interval in %, {draws:,} draws; calibration of each class / run")
    print("rate   Se    Sp  " + "".join(f"{f'{c} / {n}':>11}" for c, n in columns))
    found = []
    for rate, sensitivity, specificity in product(_RATES, _JUDGE, _JUDGE):
        row = [
            100
            * _coverage(
                generator,
                draws,
                rate=rate,
                sensitivity=sensitivity,
                specificity=specificity,
                calibration=calibration,
                run=run,
            )
            for calibration, run in columns
        ]
        cells = "".join(f"{value:>11.1f}" for value in row)
        print(f"{rate:<5g}{sensitivity:>5g}{specificity:>6g}  {cells}", flush=True)
        found += row
    report("corrected rate: lowest coverage", min(found), "%", limit=93, least=True)
    report("corrected rate: highest coverage", max(found), "%", limit=97)
    _sampled_table(generator, draws)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
