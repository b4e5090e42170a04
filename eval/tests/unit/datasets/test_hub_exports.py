"""LongMemEval and LoCoMo as JSON lines, and rows whose lists do not fit together."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memconform.datasets.answer_keys import read_answer_key
from memconform.datasets.benchmarks import open_benchmark
from memconform.datasets.files import PieceReader
from memconform.datasets.locomo import read_locomo_conversations
from memconform.datasets.longmemeval import read_longmemeval_conversations, read_longmemeval_rows
from memconform.errors import UsageError

_LISTS = ("haystack_dates", "haystack_session_ids", "haystack_sessions", "answer_session_ids")


def _longmemeval(number: int) -> dict[str, Any]:
    turns = [
        {"role": "user", "content": f"In berth {number}.", "has_answer": True},
        {"role": "assistant", "content": "Noted.", "has_answer": None},
    ]
    return {
        "question_id": f"q{number}",
        "question_type": "multi-session",
        "question": "Where is the boat?",
        "answer": f"Berth {number}",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:21"],
        "haystack_session_ids": ["s1", "s2"],
        "haystack_sessions": [turns, turns[:1]],
        "answer_session_ids": ["s1"],
    }


def _locomo(number: int) -> dict[str, Any]:
    turns = [{"speaker": "Ana", "dia_id": "D1:1", "text": "Hello.", "img_url": None}]
    dates = {f"session_{n}_date_time": "1:00 pm on 8 May, 2023" for n in (1, 2)}
    return {
        "sample_id": f"conv-{number}",
        "conversation": {"speaker_a": "Ana", "session_1": turns, "session_2": turns[:0], **dates},
        "qa": [
            {"question": "Who?", "answer": "Ana", "evidence": ["D1:1"], "category": 4},
            {"question": "Why?", "adversarial_answer": "x", "evidence": ["D1:1"], "category": 5},
        ],
    }


def _as_text(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    return row | {key: json.dumps(row[key]) for key in keys}


def _with_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """A table has one set of columns: what another row has is null."""
    conversation = row["conversation"] | {"session_3": None, "session_3_date_time": None}
    qa = [{"answer": None, "adversarial_answer": None} | each for each in row["qa"]]
    return row | {"conversation": conversation, "qa": qa}


_FORMS: list[tuple[str, Callable[[int], dict[str, Any]], Callable[[dict[str, Any]], Any]]] = [
    ("longmemeval", _longmemeval, lambda row: row),
    ("longmemeval", _longmemeval, lambda row: _as_text(row, *_LISTS)),
    ("locomo", _locomo, lambda row: row),
    ("locomo", _locomo, _with_nulls),
    ("locomo", _locomo, lambda row: _as_text(row, "conversation", "qa")),
]


@pytest.mark.parametrize(("suite", "made", "exported"), _FORMS)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\n"])
def test_json_lines_are_read_as_the_array_is(
    tmp_path: Path,
    suite: Any,
    made: Callable[[int], dict[str, Any]],
    exported: Callable[[dict[str, Any]], Any],
    ending: str,
) -> None:
    rows = [made(number) for number in range(3)]
    array, lines = tmp_path / "array.json", tmp_path / "lines.jsonl"
    array.write_text(json.dumps(rows, indent=1))
    text = "".join(json.dumps(exported(row)) + ending for row in rows)
    lines.write_text(text, encoding="utf-8", newline="")
    assert open_benchmark(lines, None, {}).format.name == suite
    for options in ({"level": "turn"}, {"level": "session"}):
        read = [list(open_benchmark(path, suite, options)) for path in (array, lines)]
        assert read[0] == read[1]
        assert len(read[0]) == 3
    keys = [read_answer_key(path, suite).questions for path in (array, lines)]
    assert keys[0] == keys[1]
    conversations = (
        read_locomo_conversations if suite == "locomo" else read_longmemeval_conversations
    )
    with PieceReader(array) as first, PieceReader(lines) as second:
        assert list(conversations(first)) == list(conversations(second))


def test_one_line_is_a_file_of_one_question(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(_longmemeval(1), indent=2))
    assert [haystack.id for haystack in open_benchmark(path, None, {})] == ["q1"]


def test_memini_files_and_question_sets_are_still_recognized(tmp_path: Path) -> None:
    memini, rows = tmp_path / "m.json", tmp_path / "q.jsonl"
    memini.write_text('{"name": "m", "items": [], "questions": []}')
    rows.write_text('{"id": "a", "question": "?", "evidence": ["a.md"]}\n')
    assert open_benchmark(memini, None, {}).format.name == "memini"
    assert open_benchmark(rows, None, {}).format.name not in ("locomo", "longmemeval")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            {"haystack_dates": ["2023/05/20 (Sat) 02:21"]},
            "element 1, question 'q1': 2 haystack_sessions, but 1 haystack_dates and 2 hay",
        ),
        (
            {"haystack_session_ids": ["s1", "s2", "s3"]},
            "2 haystack_sessions, but 2 haystack_dates and 3 haystack_session_ids",
        ),
        ({"haystack_sessions": []}, "0 haystack_sessions, but 2 haystack_dates"),
        ({"haystack_sessions": None}, "'haystack_sessions' must be a list of sessions"),
        ({"haystack_sessions": [None, []]}, "'session s1' must be a list of objects, not None"),
        ({"haystack_sessions": [["x"], []]}, "'session s1' must be a list of objects"),
        ({"haystack_sessions": [[{"content": "x"}], []]}, "'role' is missing"),
        ({"haystack_sessions": "[["}, "'haystack_sessions' is text, and not JSON"),
        ({"haystack_dates": "2023"}, "'haystack_dates' must be a list of texts"),
    ],
)
def test_a_haystack_whose_lists_do_not_fit_is_named_with_their_lengths(
    tmp_path: Path, change: dict[str, object], fault: str
) -> None:
    """The message was: zip() argument 2 is shorter than argument 1."""
    path = tmp_path / "s.json"
    path.write_text(json.dumps([_longmemeval(0), _longmemeval(1) | change]))
    readers: tuple[Callable[[], object], ...] = (
        lambda: list(open_benchmark(path, "longmemeval", {})),
        lambda: list(open_benchmark(path, "longmemeval", {"level": "turn"})),
        lambda: read_answer_key(path, "longmemeval"),
    )
    for read in readers:
        with pytest.raises(UsageError, match=fault) as caught:
            read()
        assert (caught.value.code, str(path) in caught.value.message) == ("dataset_invalid", True)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"qa": ["x"]}, "question 0: it is not an object"),
        (
            {"qa": [{"question": "?", "answer": "", "evidence": [], "category": [4]}]},
            "'category' must be a number from 1",
        ),
        ({"conversation": {"session_1": "x"}}, "'session_1' must be a list of objects, not 'x'"),
        ({"conversation": {"session_1": ["x"]}}, "'session_1' must be a list of objects"),
        ({"conversation": {"session_1": []}}, "'session_1_date_time' is missing"),
        ({"qa": "[["}, "element 1: 'qa' is text, and not JSON"),
        ({"qa": 7}, "element 1 is not a LoCoMo conversation"),
    ],
)
def test_a_conversation_that_is_none_is_named(
    tmp_path: Path, change: dict[str, object], fault: str
) -> None:
    path = tmp_path / "l.json"
    path.write_text(json.dumps([_locomo(0), _locomo(1) | change]))
    with pytest.raises(UsageError, match=fault):
        list(open_benchmark(path, "locomo", {}))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"question_id": "a"', "ends too early"),
        ('{"question_id": "a"}\n7', "is neither a JSON array nor JSON lines"),
        ('{"question_id": "a"}\n{"a": 1, "a": 2}', "the key"),
        ("7", "is neither a JSON array nor JSON lines"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "l.jsonl"
    row = json.dumps(_longmemeval(0))
    path.write_text(text.replace('{"question_id": "a"}', row))
    with PieceReader(path) as source, pytest.raises(UsageError, match=fault):
        list(read_longmemeval_rows(source))
