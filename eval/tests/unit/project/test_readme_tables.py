"""The published table of answers has no figure of an arm that was measured in part."""

import json
import shutil
from pathlib import Path

import pytest

from memconform.errors import UsageError
from readme_tables import tables

_CHECKOUT = Path(__file__).parents[4]
_ANSWERS = Path("results") / "published" / "answers"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(_CHECKOUT / "results" / "published", tmp_path / "results" / "published")
    return tmp_path


def _table(checkout: Path) -> str:
    [table] = [table for table in tables(checkout) if table.name == "answers"]
    return table.text


def test_each_arm_of_each_benchmark_is_a_line(checkout: Path) -> None:
    reports = [json.loads(path.read_text()) for path in sorted((checkout / _ANSWERS).iterdir())]
    header, _, *lines = _table(checkout).splitlines()
    assert len(lines) == sum(len(report["arms"]) for report in reports)
    cells = [cell.strip() for cell in header.strip("|").split("|")]
    names = [line.strip("|").split("|")[cells.index("arm")].strip() for line in lines]
    assert names == [arm["name"] for report in reports for arm in report["arms"]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"measured": False}, "was not measured on every question"),
        ({"views": None}, "does not belong into answers/"),
    ],
)
def test_an_incomplete_or_invalid_report_is_not_published(
    checkout: Path, change: dict[str, object], said: str
) -> None:
    path = next((checkout / _ANSWERS).glob("*.json"))
    report = json.loads(path.read_text())
    report["arms"][1] |= change
    path.write_text(json.dumps(report))
    with pytest.raises(UsageError, match=said) as caught:
        tables(checkout)
    assert caught.value.code == "not_published"


def test_a_replay_that_was_measured_in_part_is_not_published(checkout: Path) -> None:
    path = checkout / "results" / "published" / "replay.json"
    published = json.loads(path.read_text())
    [table] = [table for table in tables(checkout) if table.name == "replay"]
    sdks = [line.split("|")[1].strip() for line in table.text.splitlines()[2:5]]
    assert sdks == [result["sdk"] for result in published["results"]]
    published["results"][1]["measured"] -= 1
    path.write_text(json.dumps(published))
    with pytest.raises(UsageError, match="was not measured on every question"):
        tables(checkout)


def test_systems_with_equal_scores_are_one_row(checkout: Path) -> None:
    path = checkout / "results" / "published" / "systems" / "locomo-turn.json"
    rows = json.loads(path.read_text())["rows"]
    [table] = [table for table in tables(checkout) if table.name == "systems"]
    shown = [line.split("|")[1].strip() for line in table.text.splitlines()[2:]]
    names = [f"{row['system']} {row['strategy']}".strip() for row in rows]
    assert sorted(name for line in shown for name in line.split(", ")) == sorted(names)
    assert len(shown) < len(names)


def test_a_bench_of_systems_with_a_row_without_scores_is_not_published(checkout: Path) -> None:
    path = checkout / "results" / "published" / "systems" / "locomo-turn.json"
    report = json.loads(path.read_text())
    report["rows"][0]["views"] = {}
    path.write_text(json.dumps(report))
    with pytest.raises(UsageError, match="has no scores"):
        tables(checkout)
