"""Find the defects of WMB-100K that a program can prove, and compare them with the shipped errata.

    python scripts/wmb_errata.py FOLDER [--candidates]

FOLDER contains datasets/ and documents/. Two kinds of defects are proven by program: required
memories that state nothing, and gold turns whose number several rows share. Exit code 1 if the
shipped errata list others of these kinds. The other kinds in the errata were confirmed by reading;
`--candidates` lists, for each probe about things never said, the user's turns that share most of
its words, each with the turn that it answers.
"""

import argparse
import json
import math
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from memconform.datasets.errata import shipped_errata

PROVEN = ("empty memory", "shared number")
"""The reasons of entries that this program finds."""

_EMPTY = re.compile(r"turn_\d+\s*:?|[a-z0-9]+(_[a-z0-9]+)+")
"""A required memory that is a turn's number or an identifier, without a statement."""

_COVERAGE = 0.4
"""Share of a probe's words, weighted by rarity, that a candidate must contain. Of the 17 answered
probes about conversations that the errata list, 15 have their answer among the candidates."""
_SHOWN = 8

Row = dict[str, Any]


def find_defects(folder: Path) -> dict[str, str]:
    """The reason for each question with a defect that a program can prove, by question id."""
    rows = conversations(folder)
    numbers = {
        name: Counter(row["turn_id"] for row in conversation) for name, conversation in rows.items()
    }
    defects = {}
    for question in questions(folder):
        memories = question["required_memories"]
        gold = [numbers[question["category"]][turn] for turn in question["gold_turn_ids"]]
        if any(_EMPTY.fullmatch(memory.strip()) for memory in memories):
            defects[question["id"]] = "empty memory"
        elif any(count > 1 for count in gold):
            defects[question["id"]] = "shared number"
    return defects


def questions(folder: Path) -> list[Row]:
    loaded: list[Row] = json.loads((folder / "datasets" / "all_questions.json").read_text())
    return loaded


def conversations(folder: Path) -> dict[str, list[Row]]:
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(folder.glob("datasets/*.jsonl"))
    }


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def show_candidates(folder: Path) -> None:
    """Print the turns that may answer each probe about a conversation."""
    rows = conversations(folder)
    words = {name: [_words(row["text"]) for row in turns] for name, turns in rows.items()}
    counts = {name: Counter(w for each in turns for w in each) for name, turns in words.items()}
    probes = defaultdict(list)
    for question in questions(folder):
        if question["qtype"] == "FalseMemory" and ".DOC." not in question["id"]:
            probes[question["category"]].append(question)
    for name, asked in probes.items():
        total = len(rows[name])
        weights = {word: math.log(1 + total / count) for word, count in counts[name].items()}
        for question in asked:
            wanted = _words(question["text"])
            unknown = math.log(1 + total)
            whole = sum(weights.get(word, unknown) for word in wanted)
            hits = sorted(
                (
                    (sum(weights[word] for word in wanted & turn) / whole, line)
                    for line, turn in enumerate(words[name])
                ),
                reverse=True,
            )[:_SHOWN]
            for coverage, line in hits:
                if coverage >= _COVERAGE:
                    following = rows[name][line : line + 2]
                    text = " / ".join(f"{row['speaker']}: {row['text']}" for row in following)
                    text = " ".join(text.split())
                    print(f"{question['id']}\t{coverage:.2f}\t{name}/{line + 1}\t{text}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--candidates", action="store_true")
    options = parser.parse_args()
    if options.candidates:
        show_candidates(options.folder)
        return 0
    found = find_defects(options.folder)
    listed = {
        name: entry.reason
        for name, entry in shipped_errata("wmb").entries.items()
        if entry.reason in PROVEN
    }
    for name in sorted(found.items() ^ listed.items()):
        print(f"{name[0]}: {name[1]}, {'not listed' if name in found.items() else 'not found'}")
    print(f"{len(found)} found, {len(listed)} listed")
    return int(found != listed)


if __name__ == "__main__":
    sys.exit(main())
