"""Check scores and times of `memconform bench` on the real benchmarks.

The files are expected in $MEMCONFORM_DATA, where `memconform datasets fetch` puts them. A benchmark
whose files are missing is skipped with a notice.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memconform.datasets.sources import data_folder
from reporting import missed, report

_CHECKOUT = Path(__file__).resolve().parents[1]
_PROGRAM = Path(sys.executable).with_name("memconform")
_METRICS = ("recall_any@5", "recall_any@10", "mrr@10")
_PUBLISHED = {
    "turn": (58.7, 67.1, 44.8),
    "session": (92.6, 96.8, 79.4),
    "longmemeval": (97.6, 99.0, 92.2),
}
"""Scores of memini's keyword search over one index, as published by its authors."""


def bench(folder: Path, data: Path, *flags: str) -> dict[str, Any] | None:
    """Run a bench and return its report; None if the data is missing."""
    if not data.exists():
        print(f"  {data} is missing; try: memconform datasets fetch")
        return None
    file = folder / "report.json"
    command: list[str | Path] = [_PROGRAM, "bench", "--data", data, *flags, "--quiet"]
    command += ["--output", folder / "results", "--json", file]
    subprocess.run(command, cwd=_CHECKOUT, check=True, stdout=subprocess.DEVNULL)
    bench_report: dict[str, Any] = json.loads(file.read_text())
    return bench_report


def compare(
    name: str, bench_report: dict[str, Any], published: Iterable[float], within: float
) -> None:
    """Report how far the metrics of each row are from the published ones."""
    for row in bench_report["rows"]:
        metrics = row["views"]["all"]["metrics"]
        gaps = [abs(metrics[m]["value"] - p) for m, p in zip(_METRICS, published, strict=True)]
        label = f"{name}, {row['system']} {row['strategy']}: farthest from published"
        report(label, max(gaps), "points", limit=within)
    for agreement in bench_report["alike"]:
        differing = agreement["compared"] - agreement["equal"]
        report(f"{name}: rankings that differ", differing, "", limit=0)


_PROBE = """
import sys, numpy
from pathlib import Path
from rank_bm25 import BM25Okapi
from memconform.datasets.benchmarks import open_benchmark
for haystack in open_benchmark(Path(sys.argv[1]), "longmemeval", {}):
    index = BM25Okapi([item.text.split(" ") for item in haystack.official_items])
    numpy.argsort(index.get_scores(haystack.queries[0].question.split(" ")))
"""
"""Reading LongMemEval once, and ranking it as `flat-bm25` does."""


def seconds(command: list[str | Path]) -> float:
    """Run a command and return its wall time."""
    started = time.perf_counter()
    subprocess.run(command, cwd=_CHECKOUT, check=True, capture_output=True)
    return time.perf_counter() - started


def overhead(folder: Path, data: Path) -> None:
    """Report the wall time of `flat-bm25` as a multiple of reading and ranking alone."""
    if not data.exists():
        return
    bench_command: list[str | Path] = [
        _PROGRAM,
        "bench",
        "--suite",
        "longmemeval",
        "--data",
        data,
        "--quiet",
    ]
    bench_command += ["--system", "flat-bm25", "--output", folder / "flat"]
    ratios = [
        seconds(bench_command) / seconds([sys.executable, "-c", _PROBE, data]) for _ in range(3)
    ]
    report("LongMemEval S, flat-bm25: times reading and ranking alone",
           statistics.median(ratios), "x", limit=3)  # fmt: skip


def main() -> int:
    data = data_folder()
    sdks = ("--sdk", "go", "--sdk", "ts", "--sdk", "py")
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        print("retrieval on LoCoMo, one index over all conversations")
        locomo = data / "locomo" / "locomo10.json"
        shared = ("--suite", "locomo", "--index", "shared")
        for level in ("turn", "session"):
            bench_report = bench(folder, locomo, *shared, "--level", level, *sdks)
            if bench_report:
                compare(f"LoCoMo {level}", bench_report, _PUBLISHED[level], 0.1)
        if go_only := bench(folder, locomo, *shared, "--level", "turn", "--sdk", "go"):
            report("LoCoMo turn, bm25, go: total time", go_only["took_s"], "s", limit=60)
        print("retrieval on LongMemEval S")
        files = sorted((data / "longmemeval").glob("longmemeval_s_cleaned*.json*"))
        s = files[0] if files else data / "longmemeval" / "longmemeval_s_cleaned.json"
        overhead(folder, s)
        if bench_report := bench(folder, s, "--suite", "longmemeval", "--sdk", "go"):
            report("LongMemEval S, bm25, go: total time", bench_report["took_s"], "s", limit=300)
        if bench_report := bench(
            folder, s, "--suite", "longmemeval", "--index", "shared", "--sdk", "go"
        ):
            compare("LongMemEval S", bench_report, _PUBLISHED["longmemeval"], 0.2)
        print("retrieval on WMB-100K, part B")
        if bench_report := bench(folder, data / "wmb100k", "--suite", "wmb", "--sdk", "go"):
            report("ingest, go", bench_report["systems"][0]["ingest_s"], "s", limit=75)
            report(
                "search p95, go",
                bench_report["rows"][0]["latency"]["answer"]["p95"],
                "ms",
                limit=300,
            )
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
