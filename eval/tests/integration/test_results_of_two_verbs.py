"""The same questions, daemon, reader and judge through `bench` and `answer`, and through `lme`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ended
from tests.integration.answer_bench import answer, run_bench, write_questions
from tests.integration.lme_replay import BULK, FAKE, write_sdk

Call = Callable[..., Ended]


@pytest.fixture
def results(memconform: Call, workspace: Path) -> tuple[str, Path]:
    """The id of the result of `answer`, and the file of the replay."""
    sdk = write_sdk(workspace)
    data = write_questions(workspace / "lme.json")
    bench = run_bench(memconform, data, "--sdk", sdk, "--modes", "bm25", "--level", "session")
    _, report = answer(memconform, bench, "--arms", "none")
    replay = memconform("lme", "run", "--sdk", sdk, *BULK, *FAKE, "--output", "replay")
    assert replay.code == 0, replay.err
    return report["run_id"], workspace / "replay" / "result-scripted.json"


@pytest.mark.capability("results of any verb")
def test_answers_of_a_bench_and_a_replay_lie_side_by_side(
    memconform: Call, workspace: Path, results: tuple[str, Path]
) -> None:
    answered, replay = f"{results[0]}#scripted bm25", results[1]
    ended = memconform("parity", answered, replay, "--json", "parity.json")
    assert ended.code in {0, 1}, ended.err
    report: dict[str, Any] = json.loads((workspace / "parity.json").read_text())
    assert [run["name"] for run in report["runs"]] == ["scripted bm25", "scripted"]
    assert (report["questions"], report["pairs"][0]["contrast"]["compared"]) == (9, 9)
    assert report["pairs"][0]["rankings"]["compared"] == 0
    assert "verb score of a bench" in ended.err
    assert "verb lme" in ended.err
    assert memconform("diff", answered, replay).code == 0
    shown = memconform("parity", "show", "q1", answered, replay)
    assert shown.code == 0, shown.err
    assert memconform("report", "--format", "html", results[0], replay, "-o", "all.html").code == 0
