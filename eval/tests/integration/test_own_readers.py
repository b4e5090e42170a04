"""Daemons whose own reader is faulty, in `bench --answers` and the arms `/ask` of `answer`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.answer_bench import (
    QUESTIONS,
    Call,
    answer,
    arm_of,
    overall,
    run_bench,
    write_questions,
)

_OWN = "scripted bm25 /ask"


@pytest.fixture
def data(workspace: Path) -> Path:
    """Sessions that all share words with the questions, so that a search finds each of them."""
    return write_questions(workspace / "lme.json", filler="The tea of {}.")


def _own(
    memconform: Call, sdk: Path, data: Path, *flags: str, code: int = 0
) -> tuple[dict[str, Any], str]:
    """The report of the daemon's answers, and what was said of it."""
    bench = run_bench(memconform, data, "--sdk", sdk, "-k", "1,3", "--answers", *flags, code=code)
    ended, report = answer(memconform, bench, "--arms", "none")
    assert ended.code == code, ended.err
    # What the search found is measured, whatever the reader does.
    assert arm_of(report, "scripted bm25")["measured"]
    return report, ended.err


@pytest.mark.parametrize(
    ("fault", "retrieved"),
    [
        ("ask_finds_nothing", "0 chunks of 0 items"),
        ("ask_finds_one", "1 chunks of 1 items"),
    ],
)
def test_a_reader_that_retrieves_less_than_a_search_is_not_measured(
    memconform: Call,
    scripted: Callable[..., Path],
    data: Path,
    fault: str,
    retrieved: str,
) -> None:
    """It answered that there is no information, which was a wrong answer."""
    report, _ = _own(memconform, scripted(fault, on="owner1x"), data, code=3)
    [failure] = arm_of(report, _OWN)["failures"]
    assert failure.startswith("1 of short_ranking, the first q1:")
    assert retrieved in failure
    assert overall(report, _OWN)["rate"] is None


def test_a_reader_that_ignores_the_filters_is_not_measured(
    memconform: Call, scripted: Callable[..., Path], data: Path
) -> None:
    """In a shared index it would answer from the sessions of another question."""
    shared = ("--index", "shared")
    report, _ = _own(memconform, scripted("ask_ignores_prefix"), data, *shared, code=3)
    failures = arm_of(report, _OWN)["failures"]
    assert any("of filter_ignored" in failure for failure in failures)
    assert overall(report, _OWN)["rate"] is None
    report, _ = _own(memconform, scripted(), data, *shared)
    assert overall(report, _OWN)["rate"] is not None


def test_an_answer_with_a_secret_is_not_judged_with_the_mask(
    memconform: Call, scripted: Callable[..., Path], data: Path
) -> None:
    secret = ("--env", "SOME_API_KEY=owner1x")
    report, _ = _own(memconform, scripted(), data, *secret, code=3)
    assert any("of redacted" in failure for failure in arm_of(report, _OWN)["failures"])
    assert overall(report, _OWN)["rate"] is None


def test_a_reader_that_retrieves_something_else_than_a_search_is_measured_and_said(
    memconform: Call, scripted: Callable[..., Path], data: Path
) -> None:
    report, said = _own(memconform, scripted("ask_skips_first", on="owner1x"), data)
    assert arm_of(report, _OWN)["other_retrieval"] == 1
    assert "1 answer from other items than the daemon's search found" in said
    report, said = _own(memconform, scripted(), data)
    assert arm_of(report, _OWN)["other_retrieval"] == 0
    assert "than the daemon's search found" not in said


def test_a_reader_that_hangs_is_not_waited_for_again_and_again(
    memconform: Call, scripted: Callable[..., Path], data: Path
) -> None:
    """Each question took the whole limit; now three do, and the search goes on."""
    sdk = scripted("silent_after_retrieve", on="How many")
    # short limit: the reader's silence is what is tested
    report, _ = _own(memconform, sdk, data, "--timeout", "5", code=3)
    kinds = {failure.split(",")[0] for failure in arm_of(report, _OWN)["failures"]}
    assert kinds == {"3 of timeout", f"{QUESTIONS - 3} of timeouts_in_a_row"}
    assert overall(report, _OWN)["rate"] is None


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_answer_of_a_stored_result_is_not_measured(
    memconform: Call, scripted: Callable[..., Path], data: Path, text: str
) -> None:
    bench = run_bench(memconform, data, "--sdk", scripted(), "-k", "1", "--answers")
    path = data.parent / "results" / "runs" / bench / "result.json"
    result = json.loads(path.read_text())
    result["questions"][0]["answer"] = text
    path.write_text(json.dumps(result))
    ended, report = answer(memconform, bench, "--arms", "none")
    assert ended.code == 3, ended.err
    [failure] = arm_of(report, _OWN)["failures"]
    assert "no_answer" in failure
    assert overall(report, _OWN)["rate"] is None


def test_a_resumed_bench_asks_again_what_its_reader_did_not_answer(
    memconform: Call, scripted: Callable[..., Path], data: Path
) -> None:
    """The answer was lost for good, because the search of the question was measured."""
    note = data.with_name("asked.txt")
    manifest = scripted("cuts_stream", on="owner1x")
    text = manifest.read_text()
    manifest.write_text(text.replace('"{addr}"', f'"{{addr}}", "--note", {json.dumps(str(note))}'))
    flags = ("--sdk", manifest, "-k", "1", "--answers")
    first = run_bench(memconform, data, *flags, code=3)
    assert len(_questions(note)) == QUESTIONS
    run_bench(memconform, data, *flags, "--resume", first, code=3)
    [again] = _questions(note)[QUESTIONS:]
    assert "owner1x" in again


def _questions(note: Path) -> list[str]:
    """The questions among the searches; the others prove the index."""
    return [line for line in note.read_text().splitlines() if line.startswith("How many")]
