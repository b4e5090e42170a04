"""Measure a run of 100,000 questions against the null server, and commands that read its results.

    python scripts/bench_scale.py [--questions N]

Each command is a process of its own; seconds and peak memory include its start. A missed limit is
marked, and the script exits with 1.
"""

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from memconform.bench.null_server import null_server
from reporting import missed, report

_PROGRAM = str(Path(sys.executable).with_name("memconform"))
_SEARCH = ("--scorer", "exact", "--scenario", "search-retrieve-only", "--mode", "bm25", "--quiet")
_SECONDS = 60
_MIB = 400


class Cost(NamedTuple):
    """Resources used by a process and its children."""

    seconds: float
    mib: float
    """Peak resident set size."""


def _measure(command: list[str]) -> Cost:
    """Run a command in a new child, because the peak in `getrusage` of children only grows."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (command,))


def _run(command: list[str]) -> Cost:
    started = time.perf_counter()
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {process.returncode}\n{process.stderr}")
    return Cost(seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def _write_questions(path: Path, count: int) -> None:
    with path.open("w") as file:
        for number in range(count):
            row = {
                "id": f"q{number}",
                "question": f"What is the answer to number {number}?",
                "expected_substrings": ["forty-two"],
            }
            file.write(json.dumps(row) + "\n")


def _measure_runs(folder: Path, count: int) -> tuple[Path, Path]:
    """Run the same questions twice, and return the folders of both runs."""
    _write_questions(folder / "questions.jsonl", count)
    runs = folder / "runs"
    for concurrency, minimum in ((8, 300), (256, 300)):
        with null_server() as url:
            command = [_PROGRAM, "run", "--sdk", f"url:{url}", *_SEARCH]
            command += ["--data", str(folder / "questions.jsonl"), "--output", str(folder)]
            cost = _measure([*command, "--concurrency", str(concurrency)])
        name = f"run, {concurrency} in flight"
        report(
            f"{name}: questions per second", count / cost.seconds, "1/s", limit=minimum, least=True
        )
        report(f"{name}: peak memory", cost.mib, "MiB", limit=_MIB)
    first, second = sorted(runs.iterdir())
    return first, second


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=100_000)
    count = parser.parse_args().questions
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{count:,} questions against the null server")
        first, second = _measure_runs(folder, count)
        for command in (
            ["parity", str(first), str(second), "--quiet"],
            ["diff", str(first), str(second), "--quiet"],
            ["score", str(first), "--output", str(folder), "--quiet"],
        ):
            cost = _measure([_PROGRAM, *command])
            report(f"{command[0]}: seconds", cost.seconds, "s", limit=_SECONDS)
            report(f"{command[0]}: peak memory", cost.mib, "MiB", limit=_MIB)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
