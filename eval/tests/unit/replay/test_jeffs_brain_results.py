"""Results of the runner of jeffs-brain/memory, compared with each other and with ours."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memconform.cli.main import cli
from memconform.errors import ExitCode, UsageError
from memconform.replay.jeffs_brain_results import read_jeffs_brain_result
from memconform.replay.review_records import LmeReview
from tests.unit.lme_results import question, write_lme

_NAMES = [f"{category}-{n}" for category in ("temporal", "preference") for n in range(5)]
_CHECKOUT = os.environ.get("JEFFS_BRAIN")


def _stored(name: str, verdict: str = "correct", **fields: Any) -> dict[str, Any]:
    """A question as that runner stores it, of the question that `lme_results.question` makes."""
    return {
        "id": name,
        "category": name.partition("-")[0],
        "question": f"What of {name}?",
        "question_date": "2024/01/31 (Wed) 10:00",
        "ground_truth": f"the {name}",
        "agent_answer": "" if fields.get("error") else f"It is {name}, {verdict}.",
        "judge_verdict": verdict,
        "judge_rationale": "as it says",
        "latency_ms": 5535,
        "input_tokens": 22317,
        "output_tokens": 131,
        **fields,
    }


def _write(path: Path, questions: list[dict[str, Any]], /, **fields: Any) -> Path:
    """A result with a manifest beside it, in the shape of jeffs-brain/memory 22a586e."""
    by_category: dict[str, dict[str, int]] = {}
    for each in questions:
        category = by_category.setdefault(
            each["category"], {"run": 0, "correct": 0, "partial": 0, "incorrect": 0}
        )
        right = each["judge_verdict"] in ("correct", "abstain_correct")
        category["run"] += 1
        category["correct" if right else "incorrect"] += 1
    correct = sum(each["correct"] for each in by_category.values())
    result = {
        "dataset_sha": "d" * 64,
        "ingest_mode": "none",
        "judge_model": "gpt-4o",
        "run_seed": 42,
        "questions_run": len(questions),
        "overall_score": correct / len(questions),
        "task_avg_score": 0.5,
        "abstention_score": 0,
        "overall_score_ci": [0.1, 0.9],
        "exact_match_score": 0,
        "by_category": by_category,
        "toggles": {"l0_buffer": False},
        "cost_accounting": {"ingest_usd": 0, "agent_usd": 0.5, "judge_usd": 0, "total_usd": 0.5},
        "latency_p50_ms": 6051,
        "latency_p95_ms": 12725,
        "questions": questions,
        **fields,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result))
    manifest = {
        "dataset_sha": "d" * 64,
        "judge_model": "gpt-4o",
        "judge_prompt_version": 6,
        "ingest_mode": "none",
        "actor_endpoint_style": "retrieve-only",
        "actor_topk": 20,
        "actor_scope": "memory",
        "actor_project": "eval-lme",
    }
    path.with_name(path.name.replace("result", "manifest")).write_text(json.dumps(manifest))
    return path


def _review(before: Path, after: Path, *flags: str) -> tuple[ExitCode, LmeReview]:
    target = after.with_name("review.json")
    args = ["diff", str(before), str(after)]
    code = cli([*args, "--json", str(target), "--quiet", *flags], standalone_mode=False)
    return code, LmeReview.model_validate_json(target.read_bytes())


def _refusal(before: Path, after: Path, *flags: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        _review(before, after, *flags)
    return caught.value


def test_two_of_its_results_are_compared(tmp_path: Path) -> None:
    before = _write(tmp_path / "tri" / "result-ts.json", [_stored(name) for name in _NAMES])
    wrong = [_stored(name, "incorrect" if n < 6 else "correct") for n, name in enumerate(_NAMES)]
    after = _write(tmp_path / "phase3-result-go-20260419.json", wrong, judge_model="gemma3")
    code, report = _review(tmp_path / "tri", after)
    assert code is ExitCode.FAILED
    assert [flip.question for flip in report.regressions] == _NAMES[:6]
    assert (report.before.sdk, report.after.sdk) == ("ts", "go")
    assert report.before.path == str(before)
    assert {(each.name, each.before, each.after) for each in report.changes} == {
        ("sdk", "ts", "go"),
        ("judge", "gpt-4o", "gemma3"),
    }


def test_a_failure_that_it_counts_as_wrong_is_not_measured(tmp_path: Path) -> None:
    before = _write(tmp_path / "result-a.json", [_stored(name) for name in _NAMES])
    questions = [_stored(name) for name in _NAMES]
    questions[0] = _stored(_NAMES[0], "error", error="reader error: 429")
    questions[1] = _stored(_NAMES[1], "error")
    questions[2] = _stored(_NAMES[2], "partial")
    code, report = _review(before, _write(tmp_path / "result-b.json", questions))
    assert code is ExitCode.DAEMON
    assert [(each.question, each.after) for each in report.not_measured] == [
        (_NAMES[0], "reported_error"),
        (_NAMES[1], "judge_error"),
    ]
    assert [flip.question for flip in report.regressions] == [_NAMES[2]]


@pytest.mark.parametrize("verdict", ["incorrect", "abstain_incorrect", "correct", "error", ""])
def test_what_its_judge_says_of_an_answer_that_never_came_is_no_measurement(
    tmp_path: Path, verdict: str
) -> None:
    failed = _stored(_NAMES[0], verdict, error="actor: connection refused")
    overruled = failed | {"id": _NAMES[1], "human_verdict": "incorrect"}
    path = _write(tmp_path / "result-a.json", [failed, overruled, _stored(_NAMES[2], "incorrect")])
    read = read_jeffs_brain_result(path)
    assert read is not None
    told = [(each.judge_verdict, each.code) for each in read.questions]
    assert told == [("not_run", "reported_error")] * 2 + [("incorrect", "")]
    if verdict != "incorrect":
        by_people = read_jeffs_brain_result(path, overrides=True)
        assert by_people is not None
        told = [(each.judge_verdict, each.code) for each in by_people.questions]
        assert told[:2] == [("not_run", "reported_error"), ("incorrect", "")]


def test_before_and_after_moving(tmp_path: Path) -> None:
    before = _write(tmp_path / "result-go.json", [_stored(name) for name in _NAMES])
    after = write_lme(tmp_path / "ours" / "result-go.json", [question(name) for name in _NAMES])
    error = _refusal(before, after)
    assert error.code == "unlike_runs"
    assert "judged by jeffs-brain judge, version 6 and by rubric rubric" in error.message
    assert "--across-rubrics" in error.hint
    code, report = _review(before, after, "--across-rubrics")
    assert code is ExitCode.OK
    assert report.overall.compared == len(_NAMES)
    assert "what differs may be the judges alone" in report.reasons[0]
    # Only what both know: nobody says what the brain, the mode or the reader was.
    assert [(each.name, each.before, each.after) for each in report.changes] == [
        ("harness_version", "jeffs-brain", "1"),
        ("ingest_mode", "none", "replay"),
        ("retrieval.scope", "memory", "-"),
        ("retrieval.project", "eval-lme", "-"),
        ("judge", "gpt-4o", "openai:judge"),
    ]


def test_other_questions_or_other_data_are_no_comparison(tmp_path: Path) -> None:
    before = _write(tmp_path / "result-a.json", [_stored(name) for name in _NAMES])
    changed = [_stored(name, ground_truth="something else") for name in _NAMES]
    error = _refusal(before, _write(tmp_path / "result-b.json", changed))
    assert "reference_answers of question 'temporal-0' differs" in error.message
    other = [_stored(name) for name in _NAMES]
    error = _refusal(before, _write(tmp_path / "result-c.json", other, dataset_sha="e" * 64))
    assert (error.code, "different data" in error.message) == ("unlike_runs", True)


def test_the_version_of_a_prompt_that_nobody_states_is_unknown(tmp_path: Path) -> None:
    before = _write(tmp_path / "result-a.json", [_stored(name) for name in _NAMES])
    after = _write(tmp_path / "result-b.json", [_stored(name) for name in _NAMES])
    (tmp_path / "manifest-b.json").unlink()
    assert "version 6 and by jeffs-brain judge, version unknown" in _refusal(before, after).message


def test_verdicts_of_people_count_if_asked(tmp_path: Path) -> None:
    before = _write(tmp_path / "result-a.json", [_stored(name) for name in _NAMES])
    questions = [_stored(name) for name in _NAMES]
    questions[0] |= {"human_verdict": "incorrect"}
    questions[1] |= {"human_verdict": "skip"}
    after = _write(tmp_path / "result-b.json", questions)
    assert _review(before, after)[1].regressions == []
    _, report = _review(before, after, "--overrides")
    assert [flip.question for flip in report.regressions] == [_NAMES[0]]
    assert (report.before.overridden, report.after.overridden) == (0, 1)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"overall_score": 0.9}, "overall_score is 0.9, and its questions give 1.0"),
        ({"questions_run": 9}, "questions_run is 9, and there are 10"),
        ({"by_category": {"temporal": {"run": 5, "correct": 4}}}, "by_category temporal is 4 of 5"),
        ({"questions": None}, "questions"),
        ({"questions": []}, "questions"),
        ({"questions": [_stored("a", "perhaps")]}, "judge_verdict"),
        ({"questions": [_stored("a"), _stored("a")], "questions_run": 2}, "'a' is there twice"),
    ],
    ids=["score", "count", "category", "null", "empty", "verdict", "twice"],
)
def test_a_file_that_contradicts_itself_or_has_no_questions_is_refused(
    tmp_path: Path, fields: dict[str, Any], says: str
) -> None:
    path = _write(tmp_path / "result-a.json", [_stored(name) for name in _NAMES], **fields)
    with pytest.raises(UsageError) as caught:
        read_jeffs_brain_result(path)
    assert caught.value.code == "result_unreadable"
    assert says in caught.value.excerpt


def test_other_files_are_not_its_results(tmp_path: Path) -> None:
    ours = write_lme(tmp_path / "result-go.json", [question("temporal-1")])
    assert read_jeffs_brain_result(ours) is None
    for text in ("{", "[]", '{"questions": []}'):
        (tmp_path / "other.json").write_text(text)
        assert read_jeffs_brain_result(tmp_path / "other.json") is None


@pytest.mark.skipif(_CHECKOUT is None, reason="JEFFS_BRAIN names no checkout of jeffs-brain/memory")
def test_every_result_in_its_checkout_can_be_compared(tmp_path: Path) -> None:
    files = sorted((Path(_CHECKOUT or "") / "eval" / "results").glob("*.json"))
    results = [path for path in files if "manifest" not in path.name]
    assert results
    for path in results:
        read = read_jeffs_brain_result(path)
        assert read is not None
        target = tmp_path / "review.json"
        others = [other for other in results if other != path]
        args = [str(path), str(others[0]), "--json", str(target)]
        cli(["diff", *args, "--quiet", "--across-rubrics"], standalone_mode=False)
        report = LmeReview.model_validate_json(target.read_bytes())
        assert report.overall.compared + len(report.only_before) == len(read.questions)
