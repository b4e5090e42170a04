"""Figures that others publish, beside our published rows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.records import BenchReport
from memconform.errors import UsageError
from memini_tables import comparison_table, dates_comparison_table, read_others
from tests.conftest import CHECKOUT

_PUBLISHED = CHECKOUT / "results" / "published"


@pytest.fixture(scope="module")
def benches() -> dict[str, BenchReport]:
    paths = (_PUBLISHED / "bench").glob("*.json")
    return {path.stem: BenchReport.model_validate_json(path.read_bytes()) for path in paths}


def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((_PUBLISHED / "memini.json").read_text())
    return data


def _written(folder: Path, data: dict[str, Any]) -> Path:
    path = folder / "memini.json"
    path.write_text(json.dumps(data))
    return path


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_differences_are_those_of_the_rounded_values(
    tmp_path: Path, benches: dict[str, BenchReport]
) -> None:
    data = _data()
    ours = {"bench": "locomo-turn", "row": "go bm25"}
    [row] = [r for r in data["rows"] if r.get("ours") == ours]
    data["rows"] = [row]
    row["theirs"] = {"recall_any@5": 60.0, "recall_any@10": 67.1, "mrr@10": 44.0}
    others = read_others(_written(tmp_path, data))
    header, _, line, *_ = comparison_table(others, benches).splitlines()
    assert _cells(header)[2:5] == ["ours", "recall_any@5", "ours"]
    # 58.73, 67.10 and 44.84 are ours.
    assert _cells(line) == [
        *("LoCoMo turns", "keyword", "go bm25"),
        *("60.0", "58.7 (-1.3)", "67.1", "67.1 (0.0)", "44.0", "44.8 (+0.8)"),
    ]


def test_a_row_that_is_absent_says_why(tmp_path: Path, benches: dict[str, BenchReport]) -> None:
    data = _data()
    [row, *_] = [r for r in data["rows"] if "absent" in r]
    data["rows"] = [row | {"absent": "no such model"}]
    others = read_others(_written(tmp_path, data))
    cells = _cells(comparison_table(others, benches).splitlines()[2])
    assert cells[2:5:2] == ["not measured: no such model", "-"]


def test_both_kinds_of_questions_are_weighted_by_their_number(
    benches: dict[str, BenchReport],
) -> None:
    others = read_others(_PUBLISHED / "memini.json")
    cells = _cells(dates_comparison_table(others, benches).splitlines()[2])
    # 71 of 78 and 96 of 132: 167 of 210.
    assert [cells[i].split()[0] for i in (2, 4, 6)] == ["79.5", "91.0", "72.7"]


def _drop_metric(data: dict[str, Any]) -> None:
    del data["rows"][0]["theirs"]["mrr@10"]


def _drop_reason(data: dict[str, Any]) -> None:
    next(row for row in data["rows"] if "absent" in row).pop("absent")


def _both(data: dict[str, Any]) -> None:
    next(row for row in data["rows"] if "ours" in row)["absent"] = "why"


def _drop_scope(data: dict[str, Any]) -> None:
    del data["dates"]["rows"][0]["theirs"]["both mrr@10"]


@pytest.mark.parametrize("spoil", [_drop_metric, _drop_reason, _both, _drop_scope])
def test_incomplete_figures_are_refused(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], None]
) -> None:
    data = _data()
    spoil(data)
    with pytest.raises(UsageError, match=r"memini\.json") as caught:
        read_others(_written(tmp_path, data))
    assert caught.value.code == "not_published"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_others(tmp_path / "memini.json")
    assert caught.value.code == "not_published"


def test_a_row_that_is_not_published_is_named(
    tmp_path: Path, benches: dict[str, BenchReport]
) -> None:
    data = _data()
    next(row for row in data["rows"] if "ours" in row)["ours"]["row"] = "go telepathy"
    data["dates"]["rows"][0]["row"] = "go telepathy"
    others = read_others(_written(tmp_path, data))
    for table in (comparison_table, dates_comparison_table):
        with pytest.raises(UsageError, match="no measured row 'go telepathy'"):
            table(others, benches)
    data = _data()
    data["dates"]["benches"] = data["dates"]["benches"][:1]
    with pytest.raises(UsageError, match="no category temporal-reasoning"):
        dates_comparison_table(read_others(_written(tmp_path, data)), benches)
