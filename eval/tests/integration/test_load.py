"""Many questions in flight on a machine that is busy: the harness's own queue is no time-out."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memconform.bench import null_server as server
from tests.conftest import Ended

Call = Callable[..., Ended]


@pytest.fixture
def null_server() -> Iterator[str]:
    with server.null_server() as address:
        yield address


@pytest.fixture
def busy_machine() -> Iterator[None]:
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.parametrize("questions", [1_000, pytest.param(5_000, marks=pytest.mark.slow)])
def test_256_questions_in_flight_on_a_busy_machine_are_no_timeouts(
    memconform: Call, null_server: str, workspace: Path, questions: int
) -> None:
    rows = (
        {"id": f"q{n}", "question": f"What is {n}?", "expected_substrings": ["forty-two"]}
        for n in range(questions)
    )
    (workspace / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = memconform(
        *("run", "--sdk", f"url:{null_server}", "--dataset", "set.jsonl", "--scorer", "exact"),
        *("--scenario", "search-retrieve-only", "--mode", "bm25", "--quiet"),
        # short limit: the server does nothing, and a late look of this process is no timeout.
        *("--concurrency", "256", "--timeout-first", "2"),
    )
    assert ended.code == 0, ended.err
    assert ended.result["counts"]["correct"] == questions
