"""Check that benchmarks are read as fast as json.load reads them, and in little memory.

    python scripts/bench_datasets.py [--data DIR] [--gigabytes N]

Each file is read in a process of its own: LongMemEval S (unpacked from DIR or $MEMCONFORM_DATA),
including haystacks and digest, alternating with json.load three times; and a generated file of the
shape and size of M. The script exits with 1 if a limit is missed.
"""

import argparse
import json
import lzma
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_PACKED = Path("longmemeval") / "longmemeval_s_cleaned_499.json.xz"
_SLOWEST_RATIO = 1.0
_MOST_S_MB = 60
_MOST_M_MB = 120

_PROBE = """
import json, sys, time
from pathlib import Path
from memconform.datasets.benchmarks import open_benchmark
path = Path(sys.argv[2])
def peak():
    # Not getrusage: a child starts with its parent's peak.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
before, started = peak(), time.perf_counter()
if sys.argv[1] == "json":
    with path.open() as file:
        count = len(json.load(file))
else:
    count = sum(len(haystack.queries) for haystack in open_benchmark(path, "longmemeval", {}))
print(json.dumps({"s": time.perf_counter() - started, "mb": peak() - before, "count": count}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    data = Path(os.environ.get("MEMCONFORM_DATA", beside))
    parser.add_argument("--data", type=Path, default=data)
    parser.add_argument("--gigabytes", type=float, default=2.7)
    options = parser.parse_args()
    within_limits = True
    with tempfile.TemporaryDirectory(prefix="memconform-bench-") as folder:
        if not (options.data / _PACKED).is_file():
            print(f"LongMemEval S: skipped, {options.data / _PACKED} is missing")
        else:
            within_limits &= _measure_s(options.data / _PACKED, Path(folder) / "s.json")
        within_limits &= _measure_m(Path(folder) / "m.json", int(options.gigabytes * 1e9))
    return 0 if within_limits else 1


def _read(how: str, path: Path) -> dict[str, float]:
    argv = [sys.executable, "-c", _PROBE, how, str(path)]
    process = subprocess.run(argv, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(process.stdout)
    return figures


def _measure_s(packed: Path, plain: Path) -> bool:
    with lzma.open(packed) as source, plain.open("wb") as target:
        shutil.copyfileobj(source, target)
    pairs = [(_read("json", plain), _read("haystacks", plain)) for _ in range(3)]
    if any(one["count"] != two["count"] for one, two in pairs):
        raise SystemExit(f"{packed}: json.load finds another number of questions")
    ratio = statistics.median(two["s"] / one["s"] for one, two in pairs)
    most = max(two["mb"] for _, two in pairs)
    print(
        f"LongMemEval S, {plain.stat().st_size / 1e6:.0f} MB: {ratio:.2f} of json.load's time"
        f" (limit {_SLOWEST_RATIO:.2f}), {most:.0f} MB over imports (limit {_MOST_S_MB})"
    )
    plain.unlink()
    return ratio <= _SLOWEST_RATIO and most <= _MOST_S_MB


def _measure_m(path: Path, size: int) -> bool:
    """Generate a file like M: 500 questions, each with about 500 sessions of ten turns."""
    words = [f"word{number}" for number in range(5_000)]
    rng = random.Random(1)  # noqa: S311 - not for secrets
    turns = [
        {"role": role, "content": " ".join(rng.choices(words, k=60 if role == "user" else 100))}
        for role in ("user", "assistant") * 5
    ]
    row = {
        "question_id": "",
        "question_type": "multi-session",
        "question": "what?",
        "answer": "that",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"] * 500,
        "haystack_session_ids": [f"s{number}" for number in range(500)],
        "haystack_sessions": [turns] * 500,
        "answer_session_ids": ["s7"],
    }
    rows = 0
    with path.open("w") as file:
        while file.tell() < size:
            file.write("[" if not rows else ", ")
            json.dump(row | {"question_id": f"q{rows}"}, file)
            rows += 1
        file.write("]")
    figures = _read("haystacks", path)
    if figures["count"] != rows:
        raise SystemExit(f"{rows} questions were written, but {figures['count']:.0f} were read")
    print(
        f"generated like M, {path.stat().st_size / 1e6:.0f} MB: {figures['s']:.1f} s,"
        f" {figures['mb']:.0f} MB over imports (limit {_MOST_M_MB})"
    )
    return figures["mb"] <= _MOST_M_MB


if __name__ == "__main__":
    raise SystemExit(main())
