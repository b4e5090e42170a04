"""What the harness does beside a bare loop of requests: a ratio of calls, not of times."""

import os
import subprocess
import sys

from tests.conftest import CHECKOUT


def _calls(*python: str) -> subprocess.CompletedProcess[str]:
    """A program of its own: pytest's assertions and coverage are no part of the figure."""
    return subprocess.run(
        [sys.executable, *python, "calls"],
        cwd=CHECKOUT / "scripts",
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_question_takes_few_calls_more_than_a_bare_request() -> None:
    """The cost of an ask had doubled unnoticed; as a ratio of times, a busy machine failed it."""
    ended = _calls("bench.py")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("calls by those of the bare loop") == 2


def test_a_question_that_takes_twice_as_many_calls_is_noticed() -> None:
    slow = """
import asyncio, sys
sys.path.insert(0, ".")
import bench
from memconform.runs import question_runner
shape = question_runner.shape
question_runner.shape = lambda exchange: [shape(exchange) for _ in range(20)][0]
sys.exit(asyncio.run(bench.main()))
"""
    ended = _calls("-c", slow)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "MISSED" in ended.stdout
