"""Results that were changed after they were measured."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any


def altered(result: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a result that is another run, changed, and whose counts fit."""
    loaded = json.loads(result.read_text(encoding="utf-8"))
    loaded["run_id"] += "-altered"
    change(loaded)
    questions = loaded["questions"]
    loaded["passed"] = sum(q["passed"] for q in questions)
    loaded["counts"] = Counter(q["verdict"] for q in questions)
    loaded["total"] = sum(q["verdict"] != "not_applicable" for q in questions)
    scores = [q["score"] for q in questions if q["score"] is not None]
    if loaded["incident"] is None:
        loaded["mean_score"] = sum(scores) / len(scores) if scores else None
    *questions, last = (json.dumps(q) for q in loaded.pop("questions"))
    head = json.dumps(loaded).removesuffix("}")
    lines = "".join(f"{q},\n" for q in questions)
    copy = folder / "altered.json"
    copy.write_text(f'{head},\n "questions": [\n{lines}{last}\n]\n}}\n', encoding="utf-8")
    return copy
