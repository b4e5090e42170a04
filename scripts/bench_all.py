"""Every benchmark in turn, and at the end one table of figures, limits and what was missed.

    python scripts/bench_all.py [SCRIPT …]      scripts: bench_conform.py, bench_scale.py, …

One that fails does not keep the others from being measured. Ends in exit 1 where a figure is beyond
its limit, or a script failed.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from reporting import TABLE_VARIABLE, line

_SCRIPTS = Path(__file__).resolve().parent
_ALL = (
    "bench.py",
    "bench_conform.py",
    "bench_datasets.py",
    "bench_judge_stats.py",
    "bench_parity.py",
    "bench_scale.py",
    "bench_proof.py",
    "bench_faults.py",
    "bench_vectors.py",
    "bench_retrieval.py",
)


def main(scripts: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "figures.jsonl"
        table.touch()
        failed = []
        for script in scripts:
            print(f"== {script}", flush=True)
            ended = subprocess.run(
                [sys.executable, _SCRIPTS / script],
                env=os.environ | {TABLE_VARIABLE: str(table)},
                check=False,
            )
            if ended.returncode:
                failed.append(f"{script} ended with exit status {ended.returncode}")
        figures = [json.loads(row) for row in table.read_text(encoding="utf-8").splitlines()]
    print("== all figures")
    lines = [line(figure) for figure in figures]
    print("\n".join([*lines, *failed]))
    beyond = sum(row.endswith("MISSED") for row in lines)
    print(f"{len(lines)} figures, {beyond} beyond their limits, {len(failed)} scripts failed")
    return 1 if beyond or failed or not figures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(_ALL)))
