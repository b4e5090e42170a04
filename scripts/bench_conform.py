"""Check that `memconform conform` is fast and raises no false alarms on correct daemons.

    python scripts/bench_conform.py [--times N] [--sdk SDK …]

Runs all cases on the reference daemons N times. Any check that does not pass is a false alarm or an
intermittent fault, and is printed. The script then exits with 1, as it does after a slow run.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from memconform.printing.plurals import plural

_CHECKOUT = Path(__file__).resolve().parents[1]
_PROGRAM = Path(sys.executable).with_name("memconform")
_LIMIT_S = 120.0
_NOT_ALARMS = ("pass", "not_applicable")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--sdk", action="append")
    options = parser.parse_args()
    sdks = options.sdk or ["all"]
    seconds: list[float] = []
    alarms = checks = 0
    with tempfile.TemporaryDirectory(prefix="memconform-bench-") as folder:
        # Build first, so that no run includes build time.
        _run(sdks, Path(folder), "--case", "health")
        for number in range(options.times):
            started = time.perf_counter()
            report = _run(sdks, Path(folder))
            seconds.append(time.perf_counter() - started)
            failures = _failures(report)
            checks += sum(len(c["checks"]) for sdk in report["sdks"] for c in sdk["cases"])
            alarms += len(failures)
            print(f"run {number + 1:>2}: {seconds[-1]:5.1f} s, exit {report['exit_code']}, "
                  f"{plural(len(failures), 'alarm')}", flush=True)  # fmt: skip
            for line in failures:
                print(f"        {line}", flush=True)
    late = sum(duration > _LIMIT_S for duration in seconds)
    runs = f"{plural(options.times, 'run')} of {', '.join(sdks)}, {plural(checks, 'check')}"
    print(f"conform, {runs}: {plural(alarms, 'alarm')} (limit 0)")
    median = statistics.median(seconds)
    print(f"seconds per run: median {median:.1f}, most {max(seconds):.1f} (limit {_LIMIT_S:g})")
    return 1 if alarms or late else 0


def _run(sdks: list[str], folder: Path, *more: str) -> dict[str, Any]:
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [str(_PROGRAM), "conform", "--output", str(folder / "results"), "--json", str(report)]
    command += [part for sdk in sdks for part in ("--sdk", sdk)]
    process = subprocess.run(
        [*command, *more], cwd=_CHECKOUT, capture_output=True, text=True, check=False
    )
    if not report.is_file():
        sys.exit(f"conform ended with {process.returncode}:\n{process.stderr[-3000:]}")
    loaded: dict[str, Any] = json.loads(report.read_bytes())
    return loaded


def _failures(report: dict[str, Any]) -> list[str]:
    return [
        f"{sdk['sdk']} {check['id']} {check['result']}: {'; '.join(check['got'])[:300]}"
        for sdk in report["sdks"]
        for case in sdk["cases"]
        for check in case["checks"]
        if check["result"] not in _NOT_ALARMS
    ] + [f"{sdk['sdk']}: {problem}" for sdk in report["sdks"] for problem in sdk["problems"]]


if __name__ == "__main__":
    sys.exit(main())
