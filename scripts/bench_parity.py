"""Check the error rates of parity verdicts, and how small a difference they detect.

    python scripts/bench_parity.py [--repetitions N] [--table]

Runs are simulated: questions pass at some rate, and each run flips a few of them, in either
direction equally. A missed limit is marked, and the script exits with 1. `--table` prints what n
questions can show, as in docs/PARITY.md.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memconform.results.comparison import compare_runs
from memconform.results.loaded_runs import load_runs
from memconform.scoring.statuses import PASS_THRESHOLD
from memconform.stats.paired import equivalent, holm, mcnemar
from memconform.stats.paired_comparison import ALPHA, MARGIN
from reporting import missed, report

_SEED = 20_251
_DETECTABLE_FROM = 0.8
"""Pass rate from which a loss of 5 % of it must be detected 9 times in 10."""
_NOISE = 0.04
"""Share of questions that two runs of the same system answer differently, half each way."""

Runs = NDArray[np.bool_]
"""Shape (repetitions, runs, questions): whether a question passed."""

_p = cache(lambda b, c: mcnemar(b, c).mid_p)
_same = cache(lambda b, c, n: equivalent(b, c, n, MARGIN, ALPHA))


def _discordant_counts(one: Runs, other: Runs) -> list[tuple[int, int]]:
    """Count, per repetition, the questions that only the one or only the other run passes."""
    return list(zip((one & ~other).sum(1).tolist(), (other & ~one).sum(1).tolist(), strict=True))


def _false_alarms(draw: np.random.Generator, repetitions: int, n: int) -> float:
    """Return how often any pair of three equal runs is reported as drift."""
    alarms = 0
    for _ in range(0, repetitions, 1_000):
        truth = draw.random((1_000, 1, n)) < 0.8
        # Each of two runs contributes half of the noise.
        flips = draw.random((1_000, 3, n)) < _NOISE / 2
        passed = truth ^ flips
        pairs = [
            _discordant_counts(passed[:, a], passed[:, b]) for a, b in ((0, 1), (0, 2), (1, 2))
        ]
        alarms += sum(
            min(holm([_p(*pair) for pair in row])) < ALPHA for row in zip(*pairs, strict=True)
        )
    return alarms / repetitions


def _discordant(
    draw: np.random.Generator, repetitions: int, n: int, lost: float, gained: float
) -> list[tuple[int, int]]:
    counts = draw.multinomial(n, [lost, gained, 1 - lost - gained], size=repetitions)
    return [(int(b), int(c)) for b, c, _ in counts]


def _detection_rate(
    draw: np.random.Generator, repetitions: int, n: int, rate: float, noise: float
) -> float:
    """Return how often a loss of 5 % of the passed questions, with noise, is reported as drift."""
    pairs = _discordant(draw, repetitions, n, 0.05 * rate + noise / 2, noise / 2)
    return sum(_p(b, c) < ALPHA for b, c in pairs) / repetitions


def _wrongly_equal(draw: np.random.Generator, repetitions: int, n: int, noise: float) -> float:
    """Return how often rates that differ by exactly the margin are called equivalent."""
    pairs = _discordant(draw, repetitions, n, MARGIN + noise / 2, noise / 2)
    return sum(_same(b, c, n) for b, c in pairs) / repetitions


def _table(draw: np.random.Generator, repetitions: int) -> None:
    print("| questions | noise | smallest loss that is found 9 times in 10 | parity is shown |")
    print("| ---: | ---: | ---: | ---: |")
    for n in (50, 100, 200, 500, 1_000, 2_000):
        for noise in (0.0, 0.02, 0.04, 0.08):
            losses = (step / 200 for step in range(1, 101))
            smallest = next(
                (
                    loss
                    for loss in losses
                    if sum(
                        _p(b, c) < ALPHA
                        for b, c in _discordant(draw, repetitions, n, loss + noise / 2, noise / 2)
                    )
                    >= 0.9 * repetitions
                ),
                None,
            )
            equal = _discordant(draw, repetitions, n, noise / 2, noise / 2)
            shown = sum(_same(b, c, n) for b, c in equal) / repetitions
            loss_text = "-" if smallest is None else f"{100 * smallest:.1f} points"
            print(f"| {n:,} | {noise:.0%} | {loss_text} | {shown:.0%} |")


def _result(folder: Path, sdk: str, draw: np.random.Generator, questions: int) -> Path:
    """Write a result as `run` does, with distinct scores."""
    head: dict[str, Any] = {
        "schema_version": "memconform/result@1",
        "run_id": sdk,
        "sdk": sdk,
        "scenario": "search-retrieve-only",
        "mode": "bm25",
        "dataset": "drawn",
        "scorer": "exact",
        "brain": "b",
        "started_at": "2025-01-01T00:00:00+00:00",
        "finished_at": "2025-01-01T00:00:00+00:00",
        "total": questions,
        "passed": 0,
        "pass_rate": 0.0,
        "pass_rate_interval": [0, 1],
        "pass_rate_answered": 0.0,
        "mean_score": 0.0,
        "counts": {"correct": questions},
        "unstable": 0,
        "served_modes": {},
        "latency": {"done": None, "first_event": None, "first_delta": None},
        "floors": [],
        "exit_code": 0,
        "reasons": [],
        "incident": None,
        "daemon": dict.fromkeys(
            ("name", "version", "build_hash", "ready_ms", "rss_peak_bytes", "cpu_seconds")
        ),
        "seeded": None,
        "provenance": dict.fromkeys(("git_revision", "rescored_from", "resumed_from"))
        | dict.fromkeys(
            ("dataset_path", "dataset_sha256", "harness_version", "python_version", "host"), "x"
        )
        | {"command": [], "settings_sha256": "x"},
    }
    settings = ("scenario", "mode", "dataset", "scorer", "brain")
    head["provenance"] |= {"settings": {name: head[name] for name in settings}}
    path = folder / f"{sdk}.json"
    lines = []
    # Four in five pass.
    scores = draw.random(questions) ** 0.43
    for number, score in enumerate(scores):
        order = draw.permutation(10)
        ranking = [
            {
                "chunk_id": f"d{place}#0",
                "document_id": f"d{place}",
                "path": f"{number}/{place}.md",
                "score": 1.0 - rank / 10,
                "content": f"{number:08}{place:08}",
            }
            for rank, place in enumerate(order.tolist())
        ]
        question = {
            "id": f"q{number}",
            "question": "?",
            "tags": [],
            "verdict": "correct" if score >= PASS_THRESHOLD else "incorrect",
            "passed": bool(score >= PASS_THRESHOLD),
            "score": float(score),
            "answer": "text",
            "latency_ms": 1.0,
            "timings": None,
            "citations": [],
            "ranking": ranking,
            "trace": None,
            "error": None,
        }
        lines.append(json.dumps(question))
    head["passed"] = int((scores >= PASS_THRESHOLD).sum())
    head["counts"] = {"correct": head["passed"], "incorrect": questions - head["passed"]}
    head["mean_score"] = float(scores.mean())
    text = json.dumps(head).removesuffix("}")
    path.write_text(f'{text},\n "questions": [\n' + ",\n".join(lines) + "\n]\n}\n")
    return path


def _speed(draw: np.random.Generator) -> tuple[float, float]:
    """Compare three runs of 10,000 questions; returns seconds and peak memory in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(_result(Path(folder), sdk, draw, 10_000)) for sdk in ("a", "b", "c")]
        started = time.perf_counter()
        compare_runs(load_runs(paths, Path(folder)))
        elapsed = time.perf_counter() - started
    return elapsed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    draw = np.random.default_rng(_SEED)
    if options.table:
        _table(draw, min(options.repetitions, 2_000))
        return 0
    # First, before anything else enlarges the process.
    seconds, peak = _speed(draw)
    report("3 runs of 10,000 questions, 10,000 resamples", seconds, "s", limit=5)
    report("  peak memory", peak, "MiB", limit=500)
    for n in (100, 500):
        alarms = _false_alarms(draw, options.repetitions, n)
        report(f"three equal runs, {n} questions: false alarms", 100 * alarms, "%", limit=6)
        for noise in (0.0, _NOISE):
            wrong = _wrongly_equal(draw, options.repetitions, n, noise)
            name = f"rates {MARGIN:g} apart, {n} questions, noise {noise:.0%}: called equal"
            report(name, 100 * wrong, "%", limit=5)
    for rate in (0.7, 0.8, 0.9, 1.0):
        for noise in (0.02, _NOISE):
            lost = 100 * (1 - _detection_rate(draw, options.repetitions, 500, rate, noise))
            name = f"5 % of what passes ({rate:.0%}) lost, noise {noise:.0%}, 500 questions: missed"
            # At lower pass rates 5 % of them is a smaller loss, which no test detects more often.
            report(name, lost, "%", limit=10 if rate >= _DETECTABLE_FROM else 20)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
