"""Run every benchmark, then print one table of figures and limits, with the missed ones marked.

    python scripts/bench_all.py [SCRIPT …]      scripts: bench_conform.py, bench_scale.py, …

A failing script does not stop the others. Exits with 1 if a figure misses its limit or a script
fails.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from memconform.printing.plurals import plural
from reporting import TABLE_VARIABLE, line

_SCRIPTS = Path(__file__).resolve().parent
_ALL = (
    "bench.py",
    "bench_daemons.py",
    "bench_jeffs_brain.py",
    "bench_conform.py",
    "bench_datasets.py",
    "bench_judge.py",
    "bench_judge_stats.py",
    "bench_parity.py",
    "bench_clusters.py",
    "bench_scale.py",
    "bench_shards.py",
    "bench_load.py",
    "bench_proof.py",
    "bench_faults.py",
    "bench_vectors.py",
    "bench_corpus.py",
    "bench_embedders.py",
    "bench_retrieval.py",
    "bench_answers.py",
    "bench_replay.py",
    "bench_wmb.py",
    "bench_report.py",
    "bench_public.py",
)


def main(scripts: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "figures.jsonl"
        table.touch()
        failed = []
        for script in scripts:
            print(f"== {script}", flush=True)
            process = subprocess.run(
                [sys.executable, _SCRIPTS / script],
                env=os.environ | {TABLE_VARIABLE: str(table)},
                check=False,
            )
            if process.returncode:
                failed.append(f"{script} ended with exit status {process.returncode}")
        figures = [json.loads(row) for row in table.read_text(encoding="utf-8").splitlines()]
    print("== all figures")
    lines = [line(figure) for figure in figures]
    print("\n".join([*lines, *failed]))
    missed = sum(row.endswith("MISSED") for row in lines)
    figure_count, failures = plural(len(lines), "figure"), plural(len(failed), "script")
    print(f"{figure_count}, {missed} beyond the limit, {failures} failed")
    return 1 if missed or failed or not figures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(_ALL)))
