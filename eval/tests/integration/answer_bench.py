"""A small benchmark whose answers are known, its bench, and `memconform answer` of that."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema

from memconform.bench.answering.records import AnswerReport
from tests.conftest import Ended

Call = Callable[..., Ended]

NAMES = ("openai:gpt-4o-2024-08-06", "anthropic:claude-haiku-4-5")
"""A model of each vendor whose client is tested."""
_TYPES = ("single-session-user", "multi-session", "knowledge-update")
QUESTIONS = 9


def _question(number: int, filler: str) -> dict[str, Any]:
    """A question about one of two sessions; every third one cannot be answered."""
    abstain = number % 3 == 0
    about = f"boats in port{number}x" if abstain else f"hives of owner{number}x"
    texts = [
        f"The hives of owner{number}x are {number + 20} in number.",
        *(filler.format(name) for name in ("Ann", "Ben", "Cora")),
    ]
    return {
        "question_id": f"q{number}{'_abs' if abstain else ''}",
        "question_type": _TYPES[number % 2],
        "question": f"How many are the {about}?",
        # Some answers of the public file are numbers.
        "answer": "There is no information about it" if abstain else number + 20,
        "question_date": "2023/05/30 (Tue) 10:00",
        "haystack_session_ids": [f"answer_{number}", *(f"tea_{number}_{n}" for n in range(3))],
        "haystack_dates": [f"2023/05/2{day} (Sun) 10:00" for day in range(4)],
        "haystack_sessions": [
            [
                {"role": "user", "content": text, "has_answer": position == 0},
                {"role": "assistant", "content": "Good."},
            ]
            for position, text in enumerate(texts)
        ],
        "answer_session_ids": [f"answer_{number}"],
    }


def write_questions(path: Path, *, filler: str = "I drank tea with {}.") -> Path:
    """Write the benchmark; `filler` is what the sessions without evidence say."""
    rows = [_question(number, filler) for number in range(QUESTIONS)]
    path.write_text(json.dumps(rows))
    return path


def run_bench(memconform: Call, data: Path, *flags: str | Path, code: int = 0) -> str:
    """The id of a bench of the small benchmark."""
    given = ("--suite", "longmemeval", "--data", data, *flags, "--json", "bench.json")
    ended = memconform("bench", *given)
    assert ended.code == code, ended.err
    run_id: str = json.loads((ended.folder / "bench.json").read_text())["run_id"]
    return run_id


def answer(memconform: Call, bench: str, *flags: object) -> tuple[Ended, dict[str, Any]]:
    """The end of `memconform answer` and its report, which is empty if there is none."""
    given = ("--top-k", "1", "--llm-timeout", "60", *flags)
    if "--reader" not in given:
        given = (*given, "--reader", "fake")
    if "--judge" not in given:
        given = (*given, "--judge", "fake")
    ended = memconform("score", bench, *given, "--json", "answers.json")
    file = ended.folder / "answers.json"
    if not file.exists():
        return ended, {}
    report = json.loads(file.read_text())
    file.unlink()
    jsonschema.validate(report, AnswerReport.model_json_schema())
    return ended, report


def arm_of(report: dict[str, Any], name: str) -> dict[str, Any]:
    """The arm of this name."""
    [arm] = [arm for arm in report["arms"] if arm["name"] == name]
    return dict(arm)


def overall(report: dict[str, Any], name: str) -> dict[str, Any]:
    """The accuracy of an arm on all questions."""
    return dict(arm_of(report, name)["views"]["all"]["overall"])


def correct(report: dict[str, Any]) -> dict[str, int]:
    """How many answers of each arm are right."""
    return {arm["name"]: overall(report, arm["name"])["correct"] for arm in report["arms"]}
