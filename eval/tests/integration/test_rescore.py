"""`rescore`: stored answers are scored again without a daemon."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ended

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_COMMON = ("--scorer", "exact", "--scenario", "ask-basic", "--mode", "bm25")


@pytest.fixture
def run(memconform: Call, scripted: Scripted, dataset: Path) -> Path:
    """The folder of a run whose eighth question was not measured."""
    ended = memconform(
        *("run", "--sdk", scripted("http_500"), "--dataset", dataset, *_COMMON),
        *("--seed-reference-brain", "--floor", "0.85"),
    )
    [folder] = (ended.folder / "results" / "runs").iterdir()
    return folder


def _report(ended: Ended) -> dict[str, Any]:
    [result] = json.loads(ended.out)["runs"]
    assert isinstance(result, dict)
    return result


def test_the_same_dataset_gives_the_same_scores(memconform: Call, run: Path) -> None:
    old = json.loads((run / "result.json").read_text())
    copy = next((run.parents[1]).glob("20*/scripted.json"))
    for name in (run.name, str(run), str(run / "result.json"), str(copy)):
        ended = memconform("score", name, "--json", "-")
        assert ended.code == 0, ended.err
        new = _report(ended)
        assert new["provenance"]["rescored_from"] == run.name
        same = ("counts", "passed", "total", "pass_rate", "mean_score", "questions", "floors")
        assert {key: new[key] for key in same} == {key: old[key] for key in same}
    assert json.loads((run / "result.json").read_text()) == old


def test_a_corrected_expectation_counts_and_an_outage_remains(
    memconform: Call, run: Path, dataset: Path
) -> None:
    mended = dataset.with_name("mended.jsonl")
    text = dataset.read_text().replace('["word2x"]', '["elsewhere"]')
    mended.write_text(text.replace('["word3x"]', '["elsewhere"]'))
    ended = memconform("score", run, "--data", mended, "--json", "-")
    new = _report(ended)
    assert ended.code == new["exit_code"] == 1
    assert (new["counts"]["correct"], new["counts"]["incorrect"]) == (9, 2)
    assert new["counts"]["daemon_error"] == 1
    # The first hit belonged to the old expectation.
    assert {question["first_hit"] for question in new["questions"]} == {None}


@pytest.mark.capability("score")
def test_another_floor_can_be_applied(memconform: Call, run: Path) -> None:
    assert memconform("score", run, "--floor", "0.91").code == 0
    assert memconform("score", run, "--floor", "0.95").code == 3


def test_rejects_a_dataset_that_changed(memconform: Call, run: Path, dataset: Path) -> None:
    lines = dataset.read_text().splitlines(keepends=True)
    dataset.write_text("".join(reversed(lines)))
    changed = memconform("score", run)
    assert changed.code == 2
    assert "has changed since" in changed.err
    reordered = memconform("score", run, "--data", dataset)
    assert reordered.code == 2
    assert "was question 'q0' but is now 'q11'" in reordered.err
    assert list(run.parent.iterdir()) == [run]


def test_a_run_that_was_killed_is_scored_from_its_journal(memconform: Call, run: Path) -> None:
    (run / "result.json").unlink()
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    judgements = [n for n, line in enumerate(lines) if json.loads(line)["stage"] == "judgement"]
    proofs = [json.loads(x)["attempts"] for x in lines[: judgements[2]] if b'"proved"' in x]
    proven = max(proofs, default=0)
    (run / "journal.jsonl").write_bytes(b"".join(lines[: judgements[2]]) + lines[judgements[2]][:9])
    ended = memconform("score", run, "--json", "-")
    new = _report(ended)
    # Attempts that no proof of the index followed are not scored, judged or not.
    assert (new["counts"]["correct"], new["counts"]["daemon_error"]) == (proven, 3 - proven)
    assert new["counts"]["not_run"] == 9
    # The command that was killed is to blame, not the daemon, and its floors apply.
    assert (new["incident"]["code"], new["pass_rate"], ended.code) == ("interrupted", None, 130)
    assert f"memconform run --resume {run.name}" in ended.err
    manifest = json.loads((run / "manifest.json").read_bytes())
    assert [str(floor["floor"]) for floor in new["floors"]] == manifest["floors"] == ["0.85"]


def test_rejects_what_is_not_a_run(memconform: Call, run: Path) -> None:
    ended = memconform("score", run.name + "x")
    assert ended.code == 2
    assert f"did you mean '{run.name}'?" in ended.err


def test_rejects_an_edit_that_the_scenario_cannot_measure(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    ended = memconform(
        *("run", "--sdk", scripted(), "--dataset", dataset, "--scorer", "exact"),
        *("--scenario", "search-retrieve-only", "--mode", "bm25", "--seed-reference-brain"),
    )
    [run] = (ended.folder / "results" / "runs").iterdir()
    abstaining = dataset.read_text().replace('"expected_substrings": ["word3x"]', '"abstain": true')
    dataset.write_text(abstaining)
    refused = memconform("score", run, "--data", dataset)
    assert refused.code == 2
    assert "question 'q3' now abstains" in refused.err
    assert list(run.parent.iterdir()) == [run]


def test_a_header_of_an_ordinary_word_leaves_results_readable(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    """Masking `true` everywhere once produced invalid JSON."""
    ended = memconform(
        *("run", "--sdk", scripted(), "--dataset", dataset, "--scorer", "exact"),
        *("--scenario", "search-retrieve-only", "--mode", "bm25", "--seed-reference-brain"),
        *("--header", "X-Debug: true", "--header", "X-Next: retrieval-stage"),
    )
    assert ended.result["passed"] == 12
    [run] = (ended.folder / "results" / "runs").iterdir()
    again = memconform("score", run)
    assert again.code == 0, again.err
    assert "12/12" in again.out


def test_the_saved_exchange_of_a_failure_is_copied(memconform: Call, run: Path) -> None:
    new = _report(memconform("score", run, "--json", "-"))
    [wire] = [q["error"]["wire"] for q in new["questions"] if q["error"]]
    assert (run.parent / new["run_id"] / wire).read_bytes() == (run / wire).read_bytes()
