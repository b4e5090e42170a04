"""What the harness costs beside a bare loop of requests: a ratio, within wide limits."""

import os
import subprocess
import sys

import pytest

from tests.conftest import CHECKOUT


def _ratio(*python: str) -> subprocess.CompletedProcess[str]:
    """A program of its own: pytest's assertions and coverage are no part of the figure."""
    return subprocess.run(
        [sys.executable, *python, "ratio"],
        cwd=CHECKOUT / "scripts",
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.exhaustive
def test_a_question_costs_little_more_than_a_bare_request() -> None:
    """The cost of an ask had doubled unnoticed."""
    ended = _ratio("bench.py")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("ratio to the bare loop") == 2


@pytest.mark.exhaustive
def test_a_question_that_costs_three_times_as_much_is_noticed() -> None:
    slow = """
import asyncio, sys
sys.path.insert(0, ".")
import bench
from memconform.runs import question_runner
shape = question_runner.shape
question_runner.shape = lambda exchange: [shape(exchange) for _ in range(100)][0]
sys.exit(asyncio.run(bench.main()))
"""
    ended = _ratio("-c", slow)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "MISSED" in ended.stdout
