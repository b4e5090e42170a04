"""The replay of 50 questions of LongMemEval S against all three SDKs, offline.

    python scripts/bench_replay.py [--data DIR]

The public file is in $MEMCONFORM_DATA or beside the checkout; without it, or without Go or Node,
nothing is measured. Times are those of this machine: run it alone.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from program import measured
from reporting import missed, report

_ROOT = Path(__file__).resolve().parents[1]
_FILE = "longmemeval_s_cleaned_499.json.xz"
_QUESTIONS = 50
_FIRST_S = 300
_CACHED_S = 60
_RESUMED = 0.5
_MEMORY_MIB = 250
_TIMES = ("started_at", "took_s", "command", "latency_p50_ms", "latency", "cost_accounting")
_TIMES_OF_QUESTION = ("retrieval_ms", "reader_ms", "judge_ms")
_OF_CACHE = ("cached", "input_tokens", "output_tokens", "cost_usd")


def _measure(data: Path, folder: Path) -> None:
    os.environ["JB_LLM_PROVIDER"] = "fake"
    replay = ("lme", "tri", "--data", data, "--sample", str(_QUESTIONS), "--quiet")
    first, memory = measured(folder, *replay, "--output", folder / "first", replies=True)
    second, _ = measured(folder, *replay, "--output", folder / "second", replies=True)
    resumed, _ = measured(folder, *replay, "--output", folder / "second", replies=True)
    report("replay: 50 questions, 3 SDKs, from nothing", first, "s", limit=_FIRST_S)
    report("replay: the same with extraction cached", second, "s", limit=_CACHED_S)
    report("replay: continued, with nothing left to ask", resumed / second, "x", limit=_RESUMED)
    report("replay: memory of the harness", memory, "MiB", limit=_MEMORY_MIB)
    for result in sorted((folder / "first").glob("result-*.json")):
        if _timeless(result) != _timeless(folder / "second" / result.name):
            raise SystemExit(f"the second time {result.name} has other content")
    parity = json.loads((folder / "second" / "parity.json").read_text())
    if parity["verdict"] != "identical":
        raise SystemExit(f"the reference daemons are not identical but {parity['verdict']}")


def _timeless(path: Path) -> dict[str, object]:
    """A result without what differs between two runs of equal content."""
    result = json.loads(path.read_text())
    for name in _TIMES:
        result.pop(name)
    for question in result["questions"]:
        for name in _TIMES_OF_QUESTION:
            question.pop(name)
        for vote in question["votes"]:
            for name in _OF_CACHE:
                vote.pop(name)
    return dict(result)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = os.environ.get("MEMCONFORM_DATA", _ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default) / "longmemeval")
    file = parser.parse_args().data / _FILE
    if not file.is_file() or not shutil.which("go") or not shutil.which("npm"):
        print("skipped: the public file is not in $MEMCONFORM_DATA, or Go or Node is missing")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _measure(file.resolve(), Path(folder))
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
