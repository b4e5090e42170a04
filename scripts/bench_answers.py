"""LongMemEval S from the file to the answers: retrieval by the Go daemon, reader and judge offline.

    python scripts/bench_answers.py [--data DIR]

The public file is in $MEMCONFORM_DATA or beside the checkout; without it, or without Go, nothing is
measured. Times are those of this machine: run it alone.
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
_WHOLE_S = 360
_MEMORY_MIB = 300
_REPEATED = 0.75
"""The file is read again, which takes half of the first time."""


def _measure(data: Path, folder: Path) -> None:
    flags = ("--suite", "longmemeval", "--data", data, "--sdk", "go", "--json", folder / "b.json")
    retrieval, _ = measured(folder, "bench", *flags, "--quiet")
    run = json.loads((folder / "b.json").read_text())["run_id"]
    answer = ("score", run, "--reader", "fake", "--judge", "fake", "--quiet")
    arms = (*answer, "--arms", "oracle,no-memory")
    reading, memory = measured(folder, *arms, "--json", folder / "first.json", replies=True)
    again, _ = measured(folder, *arms, "--json", folder / "second.json", replies=True)
    whole = retrieval + reading
    report(
        "answers: LongMemEval S by go, bm25, read and judged offline", whole, "s", limit=_WHOLE_S
    )
    report("answers: memory of the harness for it", memory, "MiB", limit=_MEMORY_MIB)
    report("answers: the same from the cache", again / reading, "x", limit=_REPEATED)
    first, second = (
        [arm["views"] for arm in json.loads((folder / name).read_text())["arms"]]
        for name in ("first.json", "second.json")
    )
    if first != second:
        raise SystemExit("the second time gave other scores")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = os.environ.get("MEMCONFORM_DATA", _ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default) / "longmemeval")
    file = parser.parse_args().data / _FILE
    if not file.is_file() or not shutil.which("go"):
        print("skipped: the public file is not in $MEMCONFORM_DATA, or Go is missing")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _measure(file.resolve(), Path(folder))
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
