"""Retrieval logs of LongMemEval, of the real file: ours hold what the released code computes."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.conftest import Ended
from tests.integration.test_benchmark_data import LONGMEMEVAL, real

_OFFICIAL = json.loads(Path(__file__).with_name("longmemeval-official.json").read_text())
_FILE = "longmemeval_oracle.json"


def _has_target(entry: dict[str, Any]) -> bool:
    """Whether the released code counts a question: it has an answer, in a user's turn."""
    turns = [turn for session in entry["haystack_sessions"] for turn in session]
    return "_abs" not in entry["question_id"] and any(
        turn.get("has_answer") for turn in turns if turn["role"] == "user"
    )


@real
@pytest.mark.parametrize("level", ["session", "turn"])
def test_a_log_has_the_metrics_of_the_released_code_and_comes_back_equal(
    memconform: Callable[..., Ended], level: str
) -> None:
    data = ("--suite", "longmemeval", "--data", LONGMEMEVAL / _FILE, "--level", level)
    flags = (*data, "-k", "1,3,5,10,30,50", "--json", "-")
    made = memconform("bench", *flags, "--system", "flat-bm25", "--export", "longmemeval=log.jsonl")
    assert made.code == 0, made.err
    with (made.folder / "log.jsonl").open(encoding="utf-8") as log:
        counted = [entry for entry in map(json.loads, log) if _has_target(entry)]
    assert len(counted) == 419
    for granularity, expected in _OFFICIAL["oracle"][level].items():
        metrics = [entry["retrieval_results"]["metrics"][granularity] for entry in counted]
        means = {name: 100 * fmean(each[name] for each in metrics) for name in expected}
        assert means == pytest.approx(expected, rel=0, abs=1e-9)
    read = memconform("bench", *flags, "--log", "theirs=log.jsonl")
    assert read.code == 0, read.err
    assert json.loads(read.out)["rows"][0]["views"] == json.loads(made.out)["rows"][0]["views"]
