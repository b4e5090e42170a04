"""What division costs and gains: conform in shards, merging, and two workers of a Dask cluster.

    python scripts/bench_shards.py [--shards N] [--case GLOB …]

`--case` limits conform: all of its cases take at least five minutes, and as long in shards. The
LoCoMo file is expected in $MEMCONFORM_DATA. Run this alone: each ratio compares commands that ran
one after the other, and CPU time, too, grows with what else the machine does.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from memconform.bench.null_server import null_server
from memconform.datasets.sources import data_folder
from program import measured
from reporting import missed, report

_CHECKOUT = Path(__file__).resolve().parents[1]
_PROGRAM = Path(sys.executable).with_name("memconform")
_QUESTIONS = 10_000
_PARTS = 100
_BENCH_SHARDS = 10
"""As many as LoCoMo has conversations."""
_TIMES_AS_FAST = 1.6 if (os.cpu_count() or 1) >= 4 else 1.2
"""On two cores 1.6 is out of reach: the daemon and the harness of one worker use 1.1 of them. In
the quietest pairs two took 21 s and one 31 s, because a shard takes 2.9 s alone, and 4.7 s beside
another one."""


class _Cost(NamedTuple):
    """What a command took, with all daemons that it started."""

    wall: float
    cpu: float


def _run(*arguments: str | Path) -> _Cost:
    """Run memconform; raises SystemExit if it fails."""
    cpu, started = _cpu_of_children(), time.perf_counter()
    command = [_PROGRAM, *arguments, "--quiet"]
    ended = subprocess.run(command, cwd=_CHECKOUT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"memconform {' '.join(map(str, arguments))}: {ended.stderr[-2000:]}")
    return _Cost(time.perf_counter() - started, _cpu_of_children() - cpu)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _conform(folder: Path, shards: int, cases: list[str]) -> None:
    """Run shards one after the other, and compare them with the whole."""
    command: list[str | Path] = ["conform", "--sdk", "all", "--output", folder / "conform"]
    command += [part for case in cases for part in ("--case", case)]
    # Build first, so that no run includes build time.
    _run("conform", "--sdk", "all", "--case", "health", "--output", folder / "health")
    whole = _run(*command)
    print(f"  conform, whole: {whole.wall:.1f} s, CPU {whole.cpu:.1f} s", flush=True)
    parts = []
    for number in range(1, shards + 1):
        part = _run(*command, "--shard", f"{number}/{shards}")
        parts.append(part)
        print(f"  shard {number}/{shards}: {part.wall:.1f} s, CPU {part.cpu:.1f} s", flush=True)
    # Each shard starts the harness and daemons of its own: go alone took 1.22 of the time, and 1.43
    # of the CPU time, on a quiet machine.
    for what, times, limit in (
        ("wall time", sum(part.wall for part in parts) / whole.wall, 1.3),
        ("CPU time", sum(part.cpu for part in parts) / whole.cpu, 1.6),
    ):
        report(f"conform, 3 SDKs, {shards} shards: {what}, of the whole's", times, "x", limit=limit)


def _merge(folder: Path) -> None:
    """Join the runs of many shards, which are made here with a null server."""
    questions = folder / "questions.jsonl"
    with questions.open("w") as file:
        for number in range(_QUESTIONS):
            row = {"id": f"q{number}", "question": f"What is the answer to number {number}?"}
            file.write(json.dumps(row | {"expected_substrings": ["forty-two"]}) + "\n")
    parts = folder / "parts"
    command = ["run", "--scorer", "exact", "--scenario", "search-retrieve-only", "--mode", "bm25"]
    with null_server() as url, ThreadPoolExecutor(os.cpu_count()) as pool:
        shards = [
            pool.submit(
                _run,
                *command,
                *("--sdk", f"url:{url}", "--data", questions),
                *("--shard", f"{number}/{_PARTS}", "--output", parts / str(number)),
            )
            for number in range(1, _PARTS + 1)
        ]
        for shard in shards:
            shard.result()
    took, memory = measured(folder, "merge", parts, "--output", folder / "merged", "--quiet")
    name = f"merge, run of {_QUESTIONS:,} questions, {_PARTS} shards"
    report(f"{name}: seconds", took, "s", limit=10)
    report(f"{name}: peak memory", memory, "MiB", limit=400)


def _dask(folder: Path) -> None:
    """Compare two workers with one, on the same shards."""
    locomo = data_folder() / "locomo" / "locomo10.json"
    if not locomo.exists():
        print(f"  {locomo} is missing; try: memconform datasets fetch")
        return
    command: list[str | Path] = ["bench", "--data", locomo]
    command += f"--suite locomo --sdk go --mode bm25 --shards {_BENCH_SHARDS}".split()
    ratios = []
    for attempt in range(3):
        one, two = (
            _run(
                *command,
                *("--executor", f"dask:local?workers={workers}"),
                *("--output", folder / f"dask-{attempt}-{workers}"),
            )
            for workers in (1, 2)
        )
        ratios.append(one.wall / two.wall)
        print(f"  bench, 1 worker: {one.wall:.1f} s, 2 workers: {two.wall:.1f} s", flush=True)
    name = f"bench, LoCoMo, {_BENCH_SHARDS} shards: 2 workers as fast as 1"
    report(name, statistics.median(ratios), "x", limit=_TIMES_AS_FAST, least=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--case", action="append", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memconform-bench-") as name:
        folder = Path(name)
        _merge(folder)
        _dask(folder)
        _conform(folder, options.shards, options.case)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
