"""WMB-100K's questions through the Go daemon, and scoring stored answers with a cached judge.

    python scripts/bench_wmb.py [--data DIR]

Without the public files, in $MEMCONFORM_DATA or beside the checkout, only scoring is measured, on
made-up answers to as many questions. Times are those of this machine: run it alone.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from program import measured
from reporting import missed, report

_ROOT = Path(__file__).resolve().parents[1]
_QUESTIONS = 2_708
_INGEST_S = 60
_P95_MS = 300
_MEMORY_MIB = 190
_SCORE_S = 3
_LARGE_MIB = 100
_LARGE_S = 30


def _run(data: Path, folder: Path) -> None:
    for part in ("B", "A"):
        flags = ("--sdk", "go", "--part", part, "--answers", folder / "answers.json")
        _, memory = measured(folder, "wmb", "run", "--data", data, *flags)
        run = json.loads((folder / "answers.run.json").read_text())
        latency = run["latency_ms"]["p95"]
        report(f"wmb: ingest of Part {part} by go, bm25", run["ingest_s"], "s", limit=_INGEST_S)
        report(f"wmb: p95 of a search of Part {part}", latency, "ms", limit=_P95_MS)
        report(f"wmb: memory of the harness, Part {part}", memory, "MiB", limit=_MEMORY_MIB)


def _question(number: int) -> dict[str, Any]:
    return {
        "id": f"travel.S1.{number:04}",
        "category": "travel",
        "qtype": "S1Situational",
        "text": f"Where is boat {number}?",
        "gold_answer": "",
        "required_memories": [f"Boat {number} lies in the harbour of Brel."],
        "gold_turn_ids": [],
    }


def _write(folder: Path, words: int) -> Path:
    """Answers to made-up questions, each of ten memories with this many words of noise."""
    (folder / "datasets").mkdir(parents=True, exist_ok=True)
    questions = [_question(number) for number in range(_QUESTIONS)]
    (folder / "datasets" / "all_questions.json").write_text(json.dumps(questions))
    path = folder / "answers.json"
    with path.open("w") as file:
        for number, question in enumerate(questions):
            memories = [*question["required_memories"], *(["noise " * words] * 9)]
            row = {
                "question_id": question["id"],
                "memories_returned": memories,
                "system_response": " ".join(memories),
                "latency_ms": 40,
            }
            file.write(("," if number else "[") + json.dumps(row))
        file.write("]")
    return path


def _score(folder: Path) -> None:
    flags = ("--data", folder, "--judge", "fake", "--profile", "readme", "--quiet")
    answers = _write(folder, 30)
    measured(folder, "score", answers, "--rubric", "wmb", *flags, replies=True)
    took, _ = measured(
        folder, "score", answers, "--rubric", "wmb", *flags, "--cache-only", replies=True
    )
    report(f"wmb: {_QUESTIONS} answers scored by a cached judge", took, "s", limit=_SCORE_S)
    large = _write(folder, 330)
    size = large.stat().st_size / (1 << 20)
    report("wmb: answers.json, its size", size, "MiB", limit=_LARGE_MIB * 0.9, least=True)
    took, memory = measured(
        folder, "score", large, "--rubric", "wmb", *flags, "--dry-run", replies=True
    )
    report("wmb: the same of a large answers.json, read twice", took, "s", limit=_LARGE_S)
    report("wmb: memory for it", memory, "MiB", limit=_MEMORY_MIB)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = os.environ.get("MEMCONFORM_DATA", _ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default) / "wmb100k")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _score(folder)
        if arguments.data.is_dir() and shutil.which("go"):
            _run(arguments.data.resolve(), folder)
        else:
            print("skipped: the public files are not in $MEMCONFORM_DATA, or Go is missing")
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
