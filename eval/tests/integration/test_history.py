"""`memconform datasets compile-history`, and what info says of its output."""

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ended
from tests.integration.test_benchmark_data import LONGMEMEVAL, real

_COUNTS = ("--min-filler", "2", "--max-filler", "4")


def _row(name: str, *sessions: str) -> dict[str, Any]:
    return {
        "question_id": name,
        "question_type": "multi-session",
        "question": "What did I see?",
        "answer": "a heron",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"] * len(sessions),
        "haystack_session_ids": list(sessions),
        "haystack_sessions": [
            [{"role": "user", "content": f"é {session}"}] for session in sessions
        ],
        "answer_session_ids": [sessions[0]],
    }


@pytest.fixture
def evidence(workspace: Path) -> Path:
    path = workspace / "oracle.json"
    path.write_text(json.dumps([_row("q1", "answer_1"), _row("q2", "answer_2")]))
    return path


@pytest.fixture
def filler(workspace: Path) -> Path:
    path = workspace / "s.json.xz"
    content = json.dumps([_row("q1", "answer_1", *(f"f{number}" for number in range(9)))])
    path.write_bytes(lzma.compress(content.encode()))
    return path


def test_the_same_seed_writes_the_same_bytes(
    memconform: Callable[..., Ended], workspace: Path, evidence: Path, filler: Path
) -> None:
    made = []
    for seed, name in (("1", "a.json"), ("1", "b.json"), ("2", "c.json")):
        options = ("--evidence", evidence, "--filler", filler, *_COUNTS, "--seed", seed)
        ended = memconform("datasets", "compile-history", *options, "-o", name)
        assert ended.code == 0, ended.err
        assert ended.out == f"-> {name}\n"
        assert "2 questions, " in ended.err
        made.append((workspace / name).read_bytes())
    assert made[0] == made[1] != made[2]
    info = memconform("datasets", "info", "a.json").out
    assert "a.json: longmemeval" in info
    assert "2 haystacks" in info


def test_a_history_goes_to_standard_output_without_its_messages(
    memconform: Callable[..., Ended], evidence: Path, filler: Path
) -> None:
    options = ("--evidence", evidence, "--filler", filler, *_COUNTS, "--max-chars", "12")
    ended = memconform("datasets", "compile-history", *options, "-o", "-")
    assert [row["question_id"] for row in json.loads(ended.out)] == ["q1", "q2"]
    assert "dropped to fit --max-chars" in ended.err


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--min-filler", "5", "--max-filler", "4"), 2, "--min-filler is more than --max-filler"),
        (("--min-filler", "10", "--max-filler", "10"), 2, "question 'q1' needs 10 filler sessions"),
        ((*_COUNTS, "--max-chars", "3"), 2, "has 10 characters"),
        ((*_COUNTS, "-o", "oracle.json"), 2, "would replace an input file"),
        ((*_COUNTS, "-o", "out.json.gz"), 2, "cannot write packed files"),
        ((*_COUNTS, "-o", "nowhere/out.json"), 2, "cannot be written"),
        ((*_COUNTS, "--evidence", "empty.json"), 4, "no question has evidence"),
    ],
)
def test_nothing_is_written_on_failure(
    memconform: Callable[..., Ended],
    workspace: Path,
    evidence: Path,
    filler: Path,
    options: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    (workspace / "empty.json").write_text("[]")
    before = {path: path.read_bytes() for path in workspace.iterdir() if path.is_file()}
    given = ("--evidence", evidence, "--filler", filler, "-o", "out.json", *options)
    ended = memconform("datasets", "compile-history", *given)
    assert ended.code == code, ended.err
    assert says in ended.err
    assert {path: path.read_bytes() for path in workspace.iterdir() if path.is_file()} == before


@real
@pytest.mark.slow
def test_a_history_of_longmemeval_is_scored_like_the_oracle(
    memconform: Callable[..., Ended],
) -> None:
    oracle = LONGMEMEVAL / "longmemeval_oracle.json"
    s = LONGMEMEVAL / "longmemeval_s_cleaned_499.json.xz"
    options = ("--evidence", oracle, "--filler", s, "--min-filler", "3", "--max-filler", "9")
    ended = memconform("datasets", "compile-history", *options, "-o", "made.json")
    assert ended.code == 0, ended.err
    info = memconform("datasets", "info", "made.json").out
    assert "500 haystacks" in info
    assert "419 counted by the official metrics" in info
