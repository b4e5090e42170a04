"""Rows of WMB-100K's answers that hold no answer, and runs of which rows are missing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.wmb.plan import WmbPlan
from memconform.bench.wmb.stored_answers import StoredAnswers, read_stored_answers
from memconform.datasets.errata import shipped_errata
from memconform.datasets.wmb import by_category, question_of, read_wmb, read_wmb_key
from memconform.datasets.wmb_answers import ORIGIN
from memconform.errors import UsageError
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.judge.wmb import WmbRubric
from memconform.scoring.wmb import PROFILES, ProfileScore, score_answers
from memconform.scoring.wmb_rows import row_faults
from tests.unit.wmb_files import RIGHT, questions, write_answers, write_benchmark

_ASKED = questions(scored=40, probes=8, analysed=1)
_PART_B = [row for row in _ASKED if ".DOC." not in row["id"]]
_NAMES = {row["id"] for row in _ASKED}
_FIRST = _PART_B[0]["id"]


def _row(question: dict[str, Any], **changes: Any) -> dict[str, Any]:
    memories = [] if question["qtype"] == "FalseMemory" else [RIGHT]
    return {
        "question_id": question["id"],
        "memories_returned": memories,
        "system_response": " ".join(memories) or "NO_RESULT",
        "latency_ms": 1,
    } | changes


def _origin(asked: int, parts: str = "B", run: str = "run-1") -> dict[str, Any]:
    return {ORIGIN: {"run": run, "parts": parts, "asked": asked}}


def _stored(folder: Path, rows: Sequence[dict[str, Any]]) -> tuple[WmbPlan, StoredAnswers]:
    if not (folder / "wmb").exists():
        write_benchmark(folder / "wmb", _ASKED)
    key = read_wmb_key(folder / "wmb")
    stored = read_stored_answers(write_answers(folder / "a.json", list(rows)), key.questions)
    plan = WmbPlan(
        key=key,
        answers=stored,
        scorer=JudgeScorer([], rubric=WmbRubric()),
        prompts="own",
        label="",
        profiles=PROFILES,
    )
    return plan, stored


def _readme(plan: WmbPlan) -> ProfileScore:
    judged = dict.fromkeys(plan.shown_digests(), True)
    return score_answers(plan.scored(judged), "readme")


def test_a_row_that_a_run_lost_is_not_wrong_in_a_copy_without_the_record(tmp_path: Path) -> None:
    rows = [_row(each, **_origin(len(_PART_B))) for each in _PART_B[1:]]
    plan, stored = _stored(tmp_path, rows)
    assert [(each.question, each.code) for each in stored.lost] == [(_FIRST, "record_missing")]
    assert f"asked {len(_PART_B)} questions, and {len(rows)} have a row" in stored.lost[0].message
    assert set(stored.not_asked) == _NAMES - {row["id"] for row in _PART_B}
    score = _readme(plan).score
    assert score is not None
    assert score.value is None
    assert score.high == 100


def test_a_complete_copy_needs_no_record(tmp_path: Path) -> None:
    rows = [_row(each, **_origin(5)) for each in _PART_B[:5]]
    _, stored = _stored(tmp_path, rows)
    assert stored.lost == ()
    # They were left out, which is not wrong either.
    assert len(stored.not_asked) == len(_ASKED) - 5
    plan, stored = _stored(tmp_path, rows + [_row(each) for each in _PART_B[5:]])
    assert _readme(plan).part_b.unmeasured == 0
    assert stored.lost == ()


def test_two_runs_in_one_file_are_counted_apart(tmp_path: Path) -> None:
    documents = [row for row in _ASKED if ".DOC." in row["id"]]
    rows = [_row(each, **_origin(len(_PART_B))) for each in _PART_B]
    rows += [_row(each, **_origin(len(documents), "A", "run-2")) for each in documents[1:]]
    _, stored = _stored(tmp_path, rows)
    assert [each.question for each in stored.lost] == [documents[0]["id"]]
    assert stored.lost[0].message.startswith("run-2 ")


def test_rows_of_other_programs_are_missing_as_the_readme_says(tmp_path: Path) -> None:
    plan, stored = _stored(tmp_path, [_row(each) for each in _PART_B[1:]])
    assert (stored.lost, stored.not_asked) == ((), ())
    assert _FIRST in row_faults(plan.scored({})).missing


@pytest.mark.parametrize("latency", [-1, 1e300, 86_400_001])
def test_a_latency_of_more_than_a_day_is_refused(latency: float, tmp_path: Path) -> None:
    """It gave a speed penalty as if it had been measured, and a table of 300 digits."""
    with pytest.raises(UsageError, match="'latency_ms' must be from 0 to a day's"):
        _stored(tmp_path, [_row(_PART_B[0], latency_ms=latency)])


@pytest.mark.parametrize("origin", ["run-1", {"run": "r"}, {"run": "r", "parts": "C", "asked": 1}])
def test_another_origin_is_named(origin: object, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'memconform' is not what `wmb run` writes"):
        _stored(tmp_path, [_row(_PART_B[0], **{ORIGIN: origin})])


@pytest.mark.parametrize(
    "changes",
    [
        {"memories_returned": None, "system_response": None},
        {"memories_returned": [], "system_response": "", "error": "connection reset"},
        {"memories_returned": [], "system_response": "NO_RESULT", "error": {"status": 503}},
        {"memories_returned": ["HTTP error 503", "HTTP error 503"]},
        {"memories_returned": ["Traceback (most recent call last): x", "ReadError: y"]},
    ],
)
def test_a_row_without_an_answer_is_not_measured(changes: dict[str, Any], tmp_path: Path) -> None:

    probe = next(row for row in _PART_B if row["qtype"] == "FalseMemory")
    rows = [_row(each) for each in _PART_B if each["id"] not in (_FIRST, probe["id"])]
    rows += [_row(_PART_B[0], **changes), _row(probe, **changes)]
    plan, _ = _stored(tmp_path, rows)
    score = _readme(plan)
    assert score.part_b.unmeasured == 1
    assert score.false_memory.unmeasured == 1
    assert score.score is not None
    assert score.score.value is None


@pytest.mark.parametrize(
    "changes",
    [
        {"error": None},
        {"error": ""},
        {"error": "one of two shards was slow"},
        {"memories_returned": ["HTTP error 503", RIGHT]},
        {"memories_returned": [], "system_response": "NO_RESULT"},
    ],
)
def test_an_answer_stays_one(changes: dict[str, Any], tmp_path: Path) -> None:
    plan, _ = _stored(
        tmp_path, [_row(each) for each in _PART_B[1:]] + [_row(_PART_B[0], **changes)]
    )
    assert _readme(plan).part_b.unmeasured == 0


def test_a_category_without_a_memory_is_named(tmp_path: Path) -> None:
    nothing = {"memories_returned": [], "system_response": "NO_RESULT"}
    rows = [_row(each, **(nothing if each["category"] == "work_career" else {})) for each in _ASKED]
    plan, _ = _stored(tmp_path, rows)
    assert row_faults(plan.scored({})).empty == ["work_career", "work_career (documents)"]
    # Few answers without a memory may be chance.
    plan, _ = _stored(tmp_path, rows[-9:])
    assert row_faults(plan.scored({})).empty == []


def test_the_view_without_disputed_questions_omits_their_rows(tmp_path: Path) -> None:
    probe = next(row for row in _PART_B if row["qtype"] == "FalseMemory")["id"]
    rows = [_row(each) for each in _PART_B]
    rows[0] |= {"memories_returned": [], "system_response": "NO_RESULT", "latency_ms": 5_000}
    for row in rows:
        if row["question_id"] == probe:
            row |= {"memories_returned": ["what was never said"], "latency_ms": 5_000}
    plan, _ = _stored(tmp_path, rows)
    scored = plan.scored(dict.fromkeys(plan.shown_digests(), True))
    for profile in PROFILES:
        raw = score_answers(scored, profile)
        rest = score_answers(scored.without({_FIRST, probe}), profile)
        assert raw.score is not None
        assert rest.score is not None
        assert raw.score.high < 99
        assert rest.score.value == 100
        assert raw.part_b.total - rest.part_b.total == 1
        assert raw.false_memory.probes - rest.false_memory.probes == 1


def test_the_shipped_errata_have_every_question_that_no_judge_can_decide() -> None:
    errata = shipped_errata("wmb")
    empty = {name for name, each in errata.entries.items() if each.reason == "empty memory"}
    assert errata.unjudgeable == empty
    assert sum(".S1." not in name for name in empty) == 25
    # Retrieval is measured by their gold, which is right.
    assert not errata.disputed & empty


def test_a_question_across_two_categories_is_searched_in_both(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "wmb", _ASKED)
    split = list(by_category(read_wmb(folder, "both"), every=True))
    assert len({haystack.id for haystack in split}) == len(split) == 4
    ids = [query.id for haystack in split for query in haystack.queries]
    assert len(set(ids)) == len(ids)
    [crossing] = [row["id"] for row in _ASKED if row["id"].startswith("daily_life.S3")]
    assert [question_of(name) for name in ids].count(crossing) == 2
    assert set(map(question_of, ids)) == _NAMES
    once = [query.id for each in by_category(read_wmb(folder, "both")) for query in each.queries]
    assert sorted(once) == sorted(_NAMES)
