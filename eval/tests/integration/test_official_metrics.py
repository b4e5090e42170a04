"""LongMemEval's `flat-bm25` and official views, held to the output of the released code.

longmemeval-official.json holds the means, in percent, that src/retrieval/run_retrieval.py of
github.com/xiaowu0162/LongMemEval (revision 9e0b455) computes for --retriever flat-bm25, by the
granularity of the index and by that of the metrics.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ended
from tests.integration.test_benchmark_data import LONGMEMEVAL, real

_OFFICIAL = json.loads(Path(__file__).with_name("longmemeval-official.json").read_text())
_FILES = {
    "oracle": "longmemeval_oracle.json",
    "S": "longmemeval_s_cleaned_499.json.xz",
}
_VIEWS = {
    "session": {"session": "official"},
    "turn": {"turn": "official", "session": "official, by session"},
}


def _views(memconform: Callable[..., Ended], file: str, level: str) -> dict[str, Any]:
    flags = ("--suite", "longmemeval", "--data", LONGMEMEVAL / file, "--level", level)
    ended = memconform(
        "bench", *flags, "--system", "flat-bm25", "-k", "1,3,5,10,30,50", "--json", "-"
    )
    assert ended.code == 0, ended.err
    [row] = json.loads(ended.out)["rows"]
    views: dict[str, Any] = row["views"]
    return views


@real
@pytest.mark.parametrize("level", ["session", "turn"])
@pytest.mark.parametrize("name", ["oracle", pytest.param("S", marks=pytest.mark.slow)])
def test_flat_bm25_and_official_views_are_those_of_the_released_code(
    memconform: Callable[..., Ended], name: str, level: str
) -> None:
    views = _views(memconform, _FILES[name], level)
    for granularity, view in _VIEWS[level].items():
        expected = _OFFICIAL[name][level][granularity]
        metrics = views[view]["metrics"]
        assert {metric: metrics[metric]["value"] for metric in expected} == pytest.approx(
            expected, rel=0, abs=1e-9
        )
        assert views[view]["queries"] == {"oracle": 419, "S": 418}[name]
