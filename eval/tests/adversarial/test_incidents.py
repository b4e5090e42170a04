"""A result with an incident has no score that anything compares; a mask decides over no score."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.inprocess import write_dataset
from tests.adversarial.test_hostile_daemons import COMMON, hostile_sdk
from tests.conftest import Ended

Call = Callable[..., Ended]


def _runs(folder: Path) -> list[Path]:
    return sorted((folder / "results" / "runs").iterdir())


def _result(run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / "result.json").read_text())
    return loaded


@pytest.fixture
def good_and_lost(memconform: Call, workspace: Path) -> tuple[Path, Path]:
    """Runs of a good daemon, and of one that lost its index on the way."""
    dataset = write_dataset(workspace)
    call = (*COMMON, "--dataset", dataset, "--seed-reference-brain")
    assert memconform(*call, "--sdk", hostile_sdk(workspace)).code == 0
    lost = memconform(*call, "--sdk", hostile_sdk(workspace, "--fault", "recreated:16:0"))
    assert lost.code == 3
    good, bad = _runs(workspace)
    assert _result(bad)["incident"]["code"] in ("not_searchable", "brain_changed")
    return good, bad


def test_parity_with_an_incident_run_is_not_drift(
    installed: Call, good_and_lost: tuple[Path, Path]
) -> None:
    """Drift with p 6e-5 was found between a good run and one that had ended in exit 3."""
    ended = installed("parity", *good_and_lost, "--json", "-")
    report = json.loads(ended.out[: ended.out.rindex("}") + 1])
    assert ended.code == 3
    [pair] = report["pairs"]
    assert (pair["contrast"]["verdict"], pair["contrast"]["compared"]) == ("inconclusive", 0)
    assert "not measured: " in report["reasons"][0]
    assert "not measured: " in ended.err


@pytest.mark.capability("diff")
def test_diff_with_a_run_that_an_incident_ended_has_no_regressions(
    installed: Call, good_and_lost: tuple[Path, Path]
) -> None:
    for order in (good_and_lost, good_and_lost[::-1]):
        ended = installed("diff", *order, "--fail-on", "regression", "--json", "-")
        report = json.loads(ended.out[: ended.out.rindex("}") + 1])
        assert ended.code == 3
        assert (report["regressions"], report["fixes"]) == ([], [])
        assert len(report["incidents"]) == 1
        assert "not measured: " in ended.err


@pytest.mark.capability("trend")
def test_trend_shows_an_incident_in_place_of_a_rate(
    installed: Call, good_and_lost: tuple[Path, Path]
) -> None:
    incident = _result(good_and_lost[1])["incident"]["code"]
    ended = installed("diff", "results")
    rows = [line for line in ended.out.splitlines() if "/24" in line or incident in line]
    assert len(rows) == 2
    assert "21/24" in rows[0]
    assert f"all: {incident}" in rows[1]
    assert "/24" not in rows[1]


def test_rescore_keeps_an_incident(installed: Call, good_and_lost: tuple[Path, Path]) -> None:
    """It printed "below the floor", and no word of what had ended the run."""
    bad = _result(good_and_lost[1])
    ended = installed("score", good_and_lost[1], "--floor", "0.9", "--json", "-")
    new = json.loads(ended.out)["runs"][0]
    assert ended.code == 3
    assert (new["incident"], new["pass_rate"], new["counts"]) == (
        bad["incident"],
        None,
        bad["counts"],
    )
    assert bad["incident"]["code"] in ended.err
    assert "below the floor" not in ended.err


def test_agreement_counts_nothing_of_a_run_with_an_incident(
    memconform: Call, workspace: Path
) -> None:
    dataset = write_dataset(workspace)
    other = workspace / "other"
    other.mkdir()
    good = hostile_sdk(other)
    good.write_text(good.read_text().replace('"hostile"', '"good"', 1))
    lost = hostile_sdk(workspace, "--fault", "recreated:16:0")
    ended = memconform(
        *(*COMMON, "--dataset", dataset, "--seed-reference-brain", "--sdk", good, "--sdk", lost),
        *("--require-agreement", "--json", "-"),
    )
    report = json.loads(ended.out)
    assert ended.code == 3
    assert report["agreement"]["compared"] == 0
    assert report["parity"]["pairs"][0]["contrast"]["verdict"] == "inconclusive"


def test_a_secret_that_is_an_answer_changes_no_score(memconform: Call, workspace: Path) -> None:
    """With a header whose value was an answer, 19 of 20 passed: the mask had been scored."""
    dataset = write_dataset(workspace)
    call = (*COMMON, "--dataset", dataset, "--seed-reference-brain")
    run = memconform(
        *(*call, "--sdk", hostile_sdk(workspace), "--header", "X-Api-Key: word3x"),
        *("--header", "X-Other: word12x is nowhere"),
    )
    assert (run.code, run.result["passed"]) == (0, 21)
    [folder] = _runs(workspace)
    journal = (folder / "journal.jsonl").read_text()
    answers = [
        json.loads(line) for line in journal.splitlines() if json.loads(line)["stage"] == "answer"
    ]
    assert any(answer["redacted"] for answer in answers)
    assert all(answer["redacted"] == ("(hidden)" in answer["text"]) for answer in answers)
    marked = [q["id"] for q in run.result["questions"] if q["redacted"]]
    assert marked
    assert marked == [q["id"] for q in run.result["questions"] if "(hidden)" in q["answer"]]
    # What is stored is not what was scored, so that it is not scored again.
    again = memconform("score", folder, "--json", "-")
    assert (again.code, json.loads(again.out)["runs"][0]["passed"]) == (0, 21)
