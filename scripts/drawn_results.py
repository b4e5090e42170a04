"""Results of runs with drawn content, as large and as varied as real ones."""

import json
import random
from pathlib import Path
from typing import Any

from memconform.stats.intervals import wilson

_WORDS = [
    first + last
    for first in ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri")
    for last in ("ren", "lin", "mot", "gar", "vel", "tis", "nor", "dak", "pim", "sul", "rab", "wex")
]
_TAGS = ("facts", "temporal", "two-documents", "comparison", "preference", "multi-session")
_HEAD: dict[str, Any] = {
    "schema_version": "memconform/result@1",
    "scenario": "ask-basic",
    "mode": "hybrid",
    "dataset": "drawn",
    "scorer": "exact",
    "brain": "b",
    "started_at": "2026-01-01T00:00:00+00:00",
    "finished_at": "2026-01-01T00:10:00+00:00",
    "unstable": 0,
    "served_modes": {"hybrid": 1},
    "latency": {"done": None, "first_event": None, "first_delta": None},
    "floors": [],
    "exit_code": 0,
    "reasons": [],
    "incident": None,
    "seeded": None,
}


def write_drawn_result(path: Path, sdk: str, questions: int, *, differing: float = 0.05) -> Path:
    """Write a result of an SDK; SDKs agree on all but a share of the questions.

    Five chunks are retrieved for each question, and the answer has twenty words.
    """
    common, own = random.Random(1), random.Random(sdk)  # noqa: S311 - drawn data
    rows = [_question(number, common, own, differing) for number in range(questions)]
    passed = sum(row["passed"] for row in rows)
    settings = {key: _HEAD[key] for key in ("scenario", "mode", "dataset", "scorer", "brain")}
    unknown = ("name", "version", "build_hash", "ready_ms", "rss_peak_bytes", "cpu_seconds")
    head = _HEAD | {
        "run_id": f"drawn-{sdk}",
        "sdk": sdk,
        "total": questions,
        "passed": passed,
        "pass_rate": passed / questions,
        "pass_rate_answered": passed / questions,
        "pass_rate_interval": list(wilson(passed, questions)),
        "mean_score": passed / questions,
        "counts": {"correct": passed, "incorrect": questions - passed},
        "daemon": dict.fromkeys(unknown),
        "provenance": {
            "harness_version": "0",
            "command": ["memconform", "run", "--sdk", sdk],
            "python_version": "3",
            "host": "drawn",
            "git_revision": None,
            "dataset_path": "drawn.jsonl",
            "dataset_sha256": "0",
            "rescored_from": None,
            "resumed_from": None,
            "settings": settings | {"top_k": 5},
            "settings_sha256": "0",
        },
    }
    lines = ",\n".join(map(json.dumps, rows))
    path.write_text(f'{json.dumps(head)[:-1]},\n "questions": [\n{lines}\n]\n}}\n')
    return path


def _text(source: random.Random, words: int) -> str:
    return " ".join(source.choices(_WORDS, k=words)).capitalize()


def _question(
    number: int, common: random.Random, own: random.Random, differing: float
) -> dict[str, Any]:
    text, answer = f"{_text(common, 12)}?", f"{_text(common, 20)}."
    places = common.sample(range(5_000), 5)
    scores = sorted((round(common.random(), 9) for _ in places), reverse=True)
    passed = common.random() < 0.8
    if own.random() < differing:
        own.shuffle(places)
        answer = f"{_text(own, 20)}."
        passed = passed if own.random() < 0.5 else not passed
    first = own.uniform(0.5, 2)
    return {
        "id": f"q-{number:05}",
        "question": text,
        "tags": [_TAGS[number % len(_TAGS)]],
        "cluster": None,
        "verdict": "correct" if passed else "incorrect",
        "passed": passed,
        "score": float(passed),
        "answer": answer,
        "latency_ms": first + 3,
        "timings": {
            "first_byte": first,
            "first_event": first + 0.5,
            "first_delta": first + 1,
            "done": first + 3,
        },
        "citations": [{"chunk_id": f"{places[0]:032x}#0", "path": _path(places[0]), "score": 1.0}],
        "ranking": [
            {
                "chunk_id": f"{place:032x}#0",
                "document_id": f"{place:032x}",
                "path": _path(place),
                "score": score,
                "content": f"{place * 2_654_435_761:016x}",
            }
            for place, score in zip(places, scores, strict=True)
        ],
        "trace": {
            "requestedMode": "hybrid",
            "effectiveMode": "hybrid",
            "embedderUsed": True,
            "reranked": False,
            "fellBackToBm25": False,
            "candidateK": 50,
            "searchMs": round(first / 2, 3),
        },
        "error": None,
        "reason": "",
        "first_hit": 1 if passed else None,
    }


def _path(place: int) -> str:
    return f"notes/{place % 100}/{_WORDS[place % len(_WORDS)]}-{place}.md"
