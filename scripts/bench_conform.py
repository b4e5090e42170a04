"""Whether `memconform conform` is quick, and never wrong about daemons that are right.

    python scripts/bench_conform.py [--times N] [--sdk SDK …]

Runs all cases on the reference daemons N times. Any check that is not a pass is a false alarm, or a
fault that shows now and then; it is named. Either, or a run over the limit, ends in exit 1.
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
        # What is built once is no part of a run's time.
        _run(sdks, Path(folder), "--case", "health")
        for number in range(options.times):
            started = time.perf_counter()
            report = _run(sdks, Path(folder))
            seconds.append(time.perf_counter() - started)
            found = _red(report)
            checks += sum(len(c["checks"]) for sdk in report["sdks"] for c in sdk["cases"])
            alarms += len(found)
            print(f"run {number + 1:>2}: {seconds[-1]:5.1f} s, exit {report['exit_code']}, "
                  f"{len(found)} alarms", flush=True)  # fmt: skip
            for line in found:
                print(f"        {line}", flush=True)
    late = sum(each > _LIMIT_S for each in seconds)
    runs = f"{options.times} runs of {', '.join(sdks)}, {checks} checks"
    print(f"conform, {runs}: {alarms} alarms (limit 0)")
    median = statistics.median(seconds)
    print(f"seconds a run: median {median:.1f}, most {max(seconds):.1f} (limit {_LIMIT_S:g})")
    return 1 if alarms or late else 0


def _run(sdks: list[str], folder: Path, *more: str) -> dict[str, Any]:
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [str(_PROGRAM), "conform", "--output", str(folder / "results"), "--json", str(report)]
    command += [part for sdk in sdks for part in ("--sdk", sdk)]
    ended = subprocess.run(
        [*command, *more], cwd=_CHECKOUT, capture_output=True, text=True, check=False
    )
    if not report.is_file():
        sys.exit(f"conform ended with {ended.returncode}:\n{ended.stderr[-3000:]}")
    loaded: dict[str, Any] = json.loads(report.read_bytes())
    return loaded


def _red(report: dict[str, Any]) -> list[str]:
    return [
        f"{sdk['sdk']} {check['id']} {check['result']}: {'; '.join(check['got'])[:300]}"
        for sdk in report["sdks"]
        for case in sdk["cases"]
        for check in case["checks"]
        if check["result"] not in _NOT_ALARMS
    ] + [f"{sdk['sdk']}: {problem}" for sdk in report["sdks"] for problem in sdk["problems"]]


if __name__ == "__main__":
    sys.exit(main())
