"""Inject many random faults at random moments, and count how many become a score.

    python scripts/bench_faults.py [--draws N] [--seed N]

The draws are those of eval/tests/adversarial/test_random_faults.py, with one process per core.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "eval"))

from memconform.printing.logs import configure_logs
from reporting import missed, report
from tests.adversarial.test_random_faults import fooled

_SHARE = 100
"""Draws per process, after which their files are removed."""


def _fooled(seed: int) -> list[str]:
    configure_logs("error")
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        return asyncio.run(fooled(seed, _SHARE, folder))
    finally:
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1_000)
    options = parser.parse_args()
    started = time.perf_counter()
    rounds = -(-options.draws // _SHARE)
    wrong: list[str] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for false_scores in pool.map(_fooled, range(options.seed, options.seed + rounds)):
            wrong += false_scores
            for line in false_scores:
                print(f"  {line}", flush=True)
    elapsed = time.perf_counter() - started
    print(f"  {rounds * _SHARE} draws in {elapsed:.0f} s")
    report(f"{rounds * _SHARE} draws of random faults: false scores", len(wrong), "", limit=0)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
