"""A small dataset in LongMemEval's format."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

# (topic, what the user says about it, question, answer)
_TOPICS = (
    ("allotment", "I planted leeks", "What did I plant on the allotment?", "leeks"),
    ("kayak", "I painted the hull orange", "Which colour is my kayak's hull?", "orange"),
    ("choir", "we rehearse in the town library", "Where does my choir rehearse?", "town library"),
    ("bakery", "I now open at five", "At what time do I open the bakery?", "five"),
    ("telescope", "I bought a second eyepiece", "What did I buy for the telescope?", "eyepiece"),
)
_TYPES = (
    "single-session-user",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
    "single-session-assistant",
)


def write_dataset(path: Path, questions: int = 3, sessions: int = 4) -> list[str]:
    """Write questions with that many sessions each, the first of them with the answer.

    Returns:
        The ids of the questions, in the order of the file.
    """
    rows = [_question(number, sessions) for number in range(questions)]
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return [str(row["question_id"]) for row in rows]


def _question(number: int, sessions: int) -> Mapping[str, object]:
    topic, said, question, answer = _TOPICS[number % len(_TOPICS)]
    gold = f"answer_{number:04d}"
    ids = [gold, *(f"chat_{number:04d}_{other}" for other in range(1, sessions))]
    texts = [_session(topic, said)]
    texts += [_session(*_small_talk(number, other)) for other in range(1, sessions)]
    return {
        "question_id": f"q{number:04d}",
        "question_type": _TYPES[number % len(_TYPES)],
        "question": question,
        "answer": answer,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": [_date(position, number) for position in range(sessions)],
        "haystack_session_ids": ids,
        "haystack_sessions": texts,
        "answer_session_ids": [gold],
    }


def _date(position: int, minute: int) -> str:
    day = datetime(2023, 5, 1 + position % 28, 10, minute % 60, tzinfo=UTC)
    return day.strftime("%Y/%m/%d (%a) %H:%M")


def _small_talk(number: int, other: int) -> tuple[str, str]:
    return f"errand {number}-{other}", f"errand {number}-{other} took {other + 1} hours"


def _session(topic: str, said: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"About the {topic}: {said}."},
        {"role": "assistant", "content": f"Good to hear about the {topic}. Anything else?"},
    ]
