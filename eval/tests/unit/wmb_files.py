"""A made-up benchmark in WMB-100K's format, and answers to it, equal on every machine."""

import json
import random
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]

CATEGORIES = ("daily_life", "work_career")
_ANALYSED = (
    *("S2MultiMemory", "S3CrossCategory", "S4Temporal", "S5Adversarial"),
    *("S6Contradiction", "S7ReasoningChain"),
)
RIGHT = "The boat lies in the harbour of Brel."
"""A memory that holds what every question requires."""


def questions(scored: int = 20, probes: int = 8, analysed: int = 3) -> Rows:
    """Questions of all types, half of the S1 and of the probes about documents."""
    rows = []
    for category in CATEGORIES:
        for mark in ("", "DOC."):
            kinds = {"S1Situational": scored // 2, "FalseMemory": probes // 2}
            if not mark:
                kinds |= dict.fromkeys(_ANALYSED, analysed)
            for kind, count in kinds.items():
                rows += [
                    _question(f"{category}.{mark}{kind}.{n}", category, kind) for n in range(count)
                ]
    return rows


def _question(name: str, category: str, kind: str) -> dict[str, Any]:
    is_probe = kind == "FalseMemory"
    fact = "boat lies harbour Brel"
    row = {
        "id": name,
        "category": category,
        "qtype": kind,
        "text": f"Where does {name} lie?",
        "gold_answer": "GOLD, which no judge may see",
        "required_memories": []
        if is_probe
        else [f"turn_7: {fact}" if kind[1] in "24567" else fact],
        "gold_turn_ids": [],
    }
    return row | ({"category2": CATEGORIES[1]} if kind == "S3CrossCategory" else {})


def answers(asked: Rows, seed: int) -> Rows:
    """Answers with everything that is unusual: missing, repeated and unknown rows, no latency, a
    latency at the end of a tier, the right memory behind 3,000 characters."""
    draw = random.Random(seed)
    rows = []
    for question in asked:
        if draw.random() < 0.1:
            continue
        memories = draw.choice(
            [[], [RIGHT], ["A cat sleeps."], ["A cat sleeps.", RIGHT], ["x" * 3_000, RIGHT]]
        )
        row: dict[str, Any] = {
            "question_id": question["id"],
            "memories_returned": memories,
            "system_response": " ".join(memories) or "NO_RESULT",
            "latency_ms": draw.choice([0, 299, 300, 301, 500, 501, 1_000, 1_001, 60_000]),
        }
        if draw.random() < 0.05:
            row["system_response"] = "NO_RESULT"
        if draw.random() < 0.05:
            del row["latency_ms"]
        rows.append(row)
        if draw.random() < 0.1:
            rows.append(row | {"memories_returned": [RIGHT], "system_response": RIGHT})
    rows.append({"question_id": "unknown", "memories_returned": [RIGHT], "latency_ms": 700})
    draw.shuffle(rows)
    return rows


def write_benchmark(folder: Path, asked: Rows) -> Path:
    """Write the questions with a conversation for each category, and documents."""
    (folder / "datasets").mkdir(parents=True)
    (folder / "documents").mkdir()
    (folder / "datasets" / "all_questions.json").write_text(json.dumps(asked))
    for number, category in enumerate(CATEGORIES):
        texts = [f"Turn {n} of {category} is about cat {n}." for n in range(20)]
        texts[7] = f"In {category} the boat lies in the harbour of Brel, berth {number}."
        turns = (
            {"turn_id": n, "speaker": "user", "text": text, "embedded_facts": []}
            for n, text in enumerate(texts)
        )
        lines = "".join(f"{json.dumps(turn)}\n" for turn in turns)
        (folder / "datasets" / f"{category}.jsonl").write_text(lines)
        document = "\n\n".join(f"Chapter {n}. The ferry {n} sails to Brel." for n in range(40))
        (folder / "documents" / f"{category}.txt").write_text(document)
    return folder


def write_answers(path: Path, rows: Rows) -> Path:
    path.write_text(json.dumps(rows))
    return path
