"""What a report shows of stored results: groups, who differs, the verdict in one sentence."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memconform.conformance.results import (
    CaseResult,
    Check,
    ConformReport,
    Result,
    SdkResult,
)
from memconform.errors import UsageError
from memconform.records import Incident
from memconform.reports.overview.groups import NOBODY, QuestionRow, question_row
from memconform.reports.overview.headline import Grade, Statement, statements
from memconform.reports.overview.overview import Overview
from memconform.runs.results import FloorResult
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.sink import json_bytes
from tests.run_results import question, write_run
from tests.unit.lme_results import question as lme_question
from tests.unit.lme_results import write_lme

_SAME = [question("q1"), question("q2"), question("q3")]
_OTHER_ORDER = question("q2", paths=("b.md", "a.md"))


def read(
    results: list[Path], *baselines: Path, folder: Path | None = None
) -> tuple[Overview, list[QuestionRow], list[Statement]]:
    """Read results as a report does; their rows, and their statements."""
    rows: list[QuestionRow] = []
    where = folder or results[0].parent
    with Overview.load([str(p) for p in results], [str(p) for p in baselines], where) as overview:
        overview.read_questions(lambda _, row: rows.append(row))
        return overview, rows, statements(overview)


def conform_file(path: Path, results: dict[str, Result], sdk: str = "go", day: int = 1) -> Path:
    """A report of `conform` with a case for each check."""
    cases = [
        CaseResult(
            case=name,
            title=name,
            checks=[Check(id=f"{name}#a", result=result, level="must", rules=["core.health"])],
        )
        for name, result in results.items()
    ]
    report = ConformReport(
        run=path.stem,
        started_at=datetime(2026, 1, day, tzinfo=UTC),
        finished_at=datetime(2026, 1, day, 1, tzinfo=UTC),
        contract="1",
        harness_version="0",
        command=[],
        sdk_references={sdk: sdk},
        exit_code=0,
        sdks=[SdkResult(sdk=sdk, profiles=["core"], modes=["bm25"], cases=cases)],
    )
    path.write_bytes(json_bytes(report))
    return path


def test_equal_runs_are_identical(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"{sdk}.json", sdk, _SAME) for sdk in ("go", "py")]
    overview, rows, [verdict] = read(runs)
    assert verdict.grade is Grade.GOOD
    assert verdict.text == "go and py are identical on 3 questions of birds, ask-basic, bm25"
    assert overview.groups[0].differing == 0
    assert [row.divergences for row in rows] == [(), (), ()]


def test_the_sdk_that_differs_is_named_with_the_stage(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"{sdk}.json", sdk, _SAME) for sdk in ("go", "py")]
    runs.append(write_run(tmp_path / "ts.json", "ts", [_SAME[0], _OTHER_ORDER, _SAME[2]]))
    overview, rows, found = read(runs)
    assert found[0].text.startswith(
        "ts differs from go and py on 1 of 3 questions of birds, ask-basic, bm25, at the stage"
    )
    assert found[0].link == f"/questions?g={overview.groups[0].key}&differs=1"
    assert [row.outlier for row in rows] == [NOBODY, 2, NOBODY]
    assert overview.groups[0].outliers == {"ts": 1}


def test_of_two_runs_none_is_odd() -> None:
    assert question_row((_SAME[1], _OTHER_ORDER)).outlier == NOBODY


def test_of_three_different_runs_none_is_odd() -> None:
    third = question("q2", paths=("c.md",))
    row = question_row((_SAME[1], _OTHER_ORDER, third))
    assert (len(row.divergences), row.outlier) == (3, NOBODY)


def test_a_run_that_was_not_measured_is_not_odd() -> None:
    lost = question("q2", QuestionStatus.TIMEOUT)
    row = question_row((_SAME[1], lost, _SAME[1]))
    assert (row.divergences, row.outlier) == ((), NOBODY)


def test_what_was_not_measured_is_never_good(tmp_path: Path) -> None:
    lost = [_SAME[0], question("q2", QuestionStatus.DAEMON_ERROR), _SAME[2]]
    runs = [
        write_run(tmp_path / "go.json", "go", _SAME),
        write_run(tmp_path / "py.json", "py", lost),
    ]
    _, _, found = read(runs)
    assert found[0].grade is Grade.UNKNOWN
    assert "py was not measured on 1 question" in found[0].text
    assert "daemon_error" in found[0].text
    assert Grade.GOOD not in {statement.grade for statement in found}


def test_a_run_that_an_incident_ended_has_no_verdict(tmp_path: Path) -> None:
    incident = Incident(code="daemon_died", message="m", hint="", excerpt="", exit_code=3)
    lost = [question(q.id, QuestionStatus.NOT_RUN) for q in _SAME]
    run = write_run(
        tmp_path / "go.json", "go", lost, incident=incident, pass_rate=None, mean_score=None
    )
    _, _, found = read([run])
    assert found[0].grade is Grade.UNKNOWN
    assert "daemon_died" in found[0].text


def test_a_missed_floor_comes_before_what_was_not_measured(tmp_path: Path) -> None:
    wrong = [question("q1", QuestionStatus.INCORRECT), *_SAME[1:]]
    floor = FloorResult(
        tag=None, floor=0.9, passed=2, total=3, rate=2 / 3, best_rate=2 / 3, held=False
    )
    lost = [question("q1", QuestionStatus.TIMEOUT), *_SAME[1:]]
    runs = [
        write_run(tmp_path / "go.json", "go", wrong, floors=[floor], exit_code=1),
        write_run(tmp_path / "py.json", "py", lost),
    ]
    _, _, found = read(runs)
    assert found[0].grade is Grade.BAD
    assert "go passes 2 of 3 questions" in found[0].text
    assert "below the floor of 0.9" in found[0].text
    assert found[1].grade is Grade.UNKNOWN


def test_a_floor_that_unmeasured_questions_could_still_reach_is_no_failure(tmp_path: Path) -> None:
    lost = [question("q1", QuestionStatus.TIMEOUT), *_SAME[1:]]
    floor = FloorResult(tag=None, floor=0.9, passed=2, total=3, rate=2 / 3, best_rate=1, held=False)
    run = write_run(tmp_path / "go.json", "go", lost, floors=[floor])
    _, _, found = read([run])
    assert {statement.grade for statement in found} == {Grade.UNKNOWN}


def test_a_regression_is_the_first_thing_said(tmp_path: Path) -> None:
    before = write_run(tmp_path / "old.json", "go", _SAME, run_id="old")
    wrong = [question("q1", QuestionStatus.INCORRECT, answer="No."), *_SAME[1:]]
    now = write_run(tmp_path / "go.json", "go", wrong, started_at="2026-02-01T00:00:00+00:00")
    broken = conform_file(tmp_path / "conform.json", {"a": Result.FAIL})
    overview, _, found = read([now, broken], before)
    assert found[0].grade is Grade.BAD
    assert found[0].text.startswith("go fails 1 question of birds, ask-basic, bm25 that its")
    assert overview.groups[0].changes["go"].regressions == ["q1"]


def test_checks_that_a_baseline_passed_are_regressions(tmp_path: Path) -> None:
    before = conform_file(tmp_path / "old.json", {"a": Result.PASS, "b": Result.FAIL})
    now = conform_file(tmp_path / "new.json", {"a": Result.FAIL, "b": Result.FAIL}, day=2)
    _, _, found = read([now], before)
    assert found[0].text == "go fails 1 check of the contract that its baseline passed"


def test_a_baseline_with_other_settings_is_refused(tmp_path: Path) -> None:
    before = write_run(tmp_path / "old.json", "go", _SAME, run_id="old")
    changed = json.loads(before.read_text())
    changed["provenance"]["settings"]["top_k"] = 50
    before.write_text(json.dumps(changed))
    now = write_run(tmp_path / "go.json", "go", _SAME, started_at="2026-02-01T00:00:00+00:00")
    with pytest.raises(UsageError, match="differ in top_k"):
        read([now], before)


def test_runs_of_other_settings_are_in_other_groups(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a.json", "go", _SAME),
        write_run(tmp_path / "b.json", "py", _SAME, scenario="ask-augmented"),
    ]
    overview, _, _ = read(runs)
    assert [group.name for group in overview.groups] == [
        "birds, ask-augmented, bm25",
        "birds, ask-basic, bm25",
    ]


def test_the_last_run_of_a_day_is_current_and_earlier_ones_are_history(tmp_path: Path) -> None:
    runs = [
        write_run(
            tmp_path / f"{day}.json",
            "go",
            _SAME,
            run_id=f"run-{day}",
            started_at=f"2026-01-{day}T10:00:00+00:00",
        )
        for day in (20, 10)
    ]
    overview, rows, _ = read(runs)
    [group] = overview.groups
    assert [run.summary.run_id for run in group.runs] == ["run-10", "run-20"]
    assert [run.summary.run_id for run in group.current] == ["run-20"]
    assert len(rows) == 3


def test_a_folder_is_read_whole_and_copies_count_once(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "run-go" / "result.json", "go", _SAME)
    write_run(tmp_path / "2026-01-31" / "go.json", "go", _SAME)
    conform_file(tmp_path / "conform.json", {"a": Result.PASS})
    overview, rows, found = read([tmp_path])
    assert len(rows) == 3
    assert len(overview.conformance) == 1
    assert {statement.grade for statement in found} == {Grade.GOOD}


def test_published_extracts_of_a_folder_are_no_results_that_cannot_be_shown(tmp_path: Path) -> None:
    """`report html results` always ended with exit code 2 in a checkout."""
    write_run(tmp_path / "runs" / "run-go" / "result.json", "go", _SAME)
    extract = tmp_path / "published" / "replay.json"
    write_run(extract, "go", _SAME)
    extract.write_text(extract.read_text().replace('"started_at"', '"begun_at"'))
    overview, rows, _ = read([tmp_path])
    assert (len(rows), overview.not_shown) == (3, [])
    # The folder itself is read if it is named.
    assert read([extract.parent, tmp_path])[0].not_shown


def test_two_files_that_disagree_about_a_run_are_refused(tmp_path: Path) -> None:
    one = write_run(tmp_path / "a.json", "go", _SAME)
    other = write_run(tmp_path / "b.json", "go", [question("q1", QuestionStatus.INCORRECT)])
    with pytest.raises(UsageError) as caught:
        read([one, other])
    assert "says otherwise about run run-go" in caught.value.excerpt


def _truncated(path: Path) -> None:
    path.write_text(path.read_text()[:-60])


def _edited(path: Path) -> None:
    path.write_text(path.read_text().replace('"passed": 3', '"passed": 2'))


@pytest.mark.parametrize("damage", [_truncated, _edited])
def test_a_result_that_contradicts_itself_is_refused(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    run = write_run(tmp_path / "go.json", "go", _SAME)
    damage(run)
    with pytest.raises(UsageError) as caught:
        read([run])
    assert caught.value.code in ("result_unreadable", "unlike_runs")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"schema_version": "other@1"}', "null"])
def test_a_named_file_that_is_no_result_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        read([path])
    assert caught.value.code == "result_unreadable"


def test_an_unreadable_file_of_a_folder_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    write_run(tmp_path / "go.json", "go", _SAME)
    (tmp_path / "bad.json").write_text('{"schema_version": "memconform/conform-report@1"}')
    overview, _, _ = read([tmp_path])
    [line] = overview.results.skipped
    assert line.startswith(f"{tmp_path / 'bad.json'}: ")


def test_a_report_of_run_json_is_shown_as_its_runs(tmp_path: Path) -> None:
    runs = [
        json.loads(write_run(tmp_path / f"{sdk}.json", sdk, _SAME).read_text())
        for sdk in ("go", "py")
    ]
    report: dict[str, Any] = {"schema_version": "memconform/run-report@1", "exit_code": 0}
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report | {"runs": runs}))
    _, rows, [verdict] = read([path])
    assert len(rows) == 3
    assert "go and py are identical" in verdict.text


@pytest.mark.parametrize(
    ("result", "grade"),
    [(Result.PASS, Grade.GOOD), (Result.FAIL, Grade.BAD), (Result.UNTESTABLE, Grade.UNKNOWN)],
)
def test_each_result_of_conform_has_its_grade(tmp_path: Path, result: Result, grade: Grade) -> None:
    path = conform_file(tmp_path / "c.json", {"a": Result.PASS, "b": result})
    _, _, found = read([path])
    assert found[0].grade is grade


def test_questions_of_replays_are_compared_like_those_of_runs(tmp_path: Path) -> None:
    answers = {"go": "By the pond.", "py": "By the pond.", "ts": "In the tree."}
    paths = [
        write_lme(
            tmp_path / f"result-{sdk}.json",
            [
                lme_question("q1", answer="By the pond."),
                lme_question("q2", "abstain_incorrect", answer=answer),
                lme_question("q3", "not_run", answer=None, code="timeout"),
            ],
            sdk=sdk,
        )
        for sdk, answer in answers.items()
    ]
    overview, rows, found = read(paths)
    [group] = overview.groups
    assert ", scored-answers, " in group.name
    assert [run.name for run in group.current] == ["go", "py", "ts"]
    statuses = [[result.verdict.value for result in row.results] for row in rows]
    assert statuses == [["correct"] * 3, ["incorrect"] * 3, ["not_run"] * 3]
    assert [row.outlier for row in rows] == [NOBODY, 2, NOBODY]
    assert found[0].grade is Grade.UNKNOWN
    assert any("ts differs from go and py on 1 of 3" in statement.text for statement in found)


def _edit(path: Path, **changes: Any) -> Path:
    loaded = json.loads(path.read_text())
    path.write_text(json.dumps(loaded | changes))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"pass_rate": 0.99},
        {"pass_rate_interval": [0.98, 1.0]},
        {"floors": [FloorResult(
            tag=None, floor=0.9, passed=3, total=3, rate=1, best_rate=1, held=True
        ).model_dump()]},
    ],
)  # fmt: skip
def test_an_edited_figure_is_not_shown(tmp_path: Path, changes: dict[str, Any]) -> None:
    rows = [question("q1"), question("q2", QuestionStatus.INCORRECT), question("q3")]
    run = _edit(write_run(tmp_path / "go.json", "go", rows), **changes)
    with pytest.raises(UsageError) as caught:
        read([run])
    assert caught.value.code == "unlike_runs"


def test_an_edited_score_of_a_replay_is_not_shown(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "r.json", [lme_question("q1"), lme_question("q2", "incorrect")])
    with pytest.raises(UsageError) as caught:
        read([_edit(path, overall_score=0.95)])
    assert "overall_score is 95" in caught.value.excerpt


def test_a_baseline_without_regressions_leaves_a_good_run_good(tmp_path: Path) -> None:
    before = write_run(tmp_path / "old.json", "go", _SAME, run_id="old")
    now = write_run(tmp_path / "go.json", "go", _SAME, started_at="2026-02-01T00:00:00+00:00")
    _, _, found = read([now], before)
    assert [statement.grade for statement in found] == [Grade.GOOD]


def test_what_a_baseline_measured_and_the_run_did_not_is_no_regression(tmp_path: Path) -> None:
    before = write_run(tmp_path / "old.json", "go", _SAME, run_id="old")
    lost = [question("q1", QuestionStatus.TIMEOUT), *_SAME[1:]]
    now = write_run(tmp_path / "go.json", "go", lost, started_at="2026-02-01T00:00:00+00:00")
    _, _, found = read([now], before)
    assert Grade.BAD not in {statement.grade for statement in found}
    assert any("not compared with its baseline on 1 question" in s.text for s in found)


def test_a_later_run_is_no_baseline(tmp_path: Path) -> None:
    later = write_run(
        tmp_path / "later.json", "go", _SAME, run_id="later", started_at="2026-03-01T00:00:00+00:00"
    )
    now = write_run(tmp_path / "go.json", "go", _SAME)
    with pytest.raises(UsageError, match="no baseline of 'go' is earlier"):
        read([now], later)


def _with_settings(path: Path, **changes: Any) -> Path:
    loaded = json.loads(path.read_text())
    loaded["provenance"]["settings"] |= changes
    path.write_text(json.dumps(loaded))
    return path


def test_of_several_baselines_the_latest_comparable_one_counts(tmp_path: Path) -> None:
    olds = [
        write_run(
            tmp_path / f"old{day}.json",
            "go",
            _SAME,
            run_id=f"old{day}",
            started_at=f"2026-01-0{day}T00:00:00+00:00",
        )
        for day in (1, 2, 3)
    ]
    _with_settings(olds[2], top_k=50)
    now = write_run(tmp_path / "go.json", "go", _SAME)
    overview, _, _ = read([now], *olds)
    assert overview.groups[0].changes["go"].first == "old2"


def test_groups_that_differ_in_a_setting_have_different_names(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a.json", "go", _SAME, run_id="a"),
        _with_settings(write_run(tmp_path / "b.json", "go", _SAME, run_id="b"), top_k=50),
    ]
    overview, _, _ = read(runs)
    assert [group.name for group in overview.groups] == [
        "birds, ask-basic, bm25, top k 5",
        "birds, ask-basic, bm25, top k 50",
    ]


def test_runs_that_a_third_one_joins_are_not_compared_with_each_other(tmp_path: Path) -> None:
    """Only variables that both SDKs know are compared, so that this is not transitive."""
    variables = {"ts": {"T": "1"}, "go": {"A": "1"}, "py": {"A": "2"}}
    runs = [
        _with_settings(write_run(tmp_path / f"{sdk}.json", sdk, _SAME), variables=table)
        for sdk, table in variables.items()
    ]
    overview, _, _ = read(runs)
    assert len(overview.groups) == 2


def test_a_truncated_run_of_a_folder_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    write_run(tmp_path / "go.json", "go", _SAME)
    _truncated(write_run(tmp_path / "py.json", "py", _SAME))
    overview, rows, _ = read([tmp_path])
    assert len(rows) == 3
    assert [run.name for run in overview.groups[0].current] == ["go"]
    assert "py.json" in overview.results.skipped[0]


def test_of_two_conform_reports_about_the_same_cases_the_later_counts(tmp_path: Path) -> None:
    conform_file(tmp_path / "old.json", {"a": Result.FAIL}, day=1)
    conform_file(tmp_path / "new.json", {"a": Result.PASS}, day=2)
    _, _, found = read([tmp_path])
    assert [statement.grade for statement in found] == [Grade.GOOD]


_HEAD: dict[str, Any] = {
    "started_at": "2026-01-31T00:00:00Z", "exit_code": 0, "harness_version": "0", "command": [],
}  # fmt: skip


def fuzz_report(**changes: Any) -> dict[str, Any]:
    return _HEAD | {
        "schema_version": "memconform/fuzz-report@1", "sdks": ["go"], "contract": "1", "seed": 1,
        "examples": 10, "requests": 50, "took_s": 1.0, "against": "oracle", "disagreement": None,
    } | changes  # fmt: skip


def _mutant(fate: str) -> dict[str, Any]:
    return {
        "id": fate, "rule": "core.health", "level": "must", "profile": "core", "breaks": "it",
        "fate": fate, "cases": 1, "took_s": 1.0,
    }  # fmt: skip


def mutation_report(*fates: str, **changes: Any) -> dict[str, Any]:
    return _HEAD | {
        "schema_version": "memconform/mutation-report@1", "sdk": "py", "contract": "1",
        "took_s": 1.0, "cases": 1, "cases_tried": 1, "left_out": 0,
        "killed": fates.count("killed"), "total": len(fates), "survivors": [], "false_alarms": [],
        "by_profile": {}, "mutants": [_mutant(fate) for fate in fates],
    } | changes  # fmt: skip


@pytest.mark.parametrize(
    ("document", "grades"),
    [
        (fuzz_report(), {Grade.GOOD}),
        (fuzz_report(exit_code=3), {Grade.UNKNOWN}),
        (fuzz_report(examples=0), {Grade.UNKNOWN}),
        (mutation_report("killed"), {Grade.GOOD}),
        (mutation_report("killed", "survived"), {Grade.BAD}),
        (mutation_report("killed", "untestable"), {Grade.UNKNOWN}),
        (mutation_report(), {Grade.UNKNOWN}),
    ],
)
def test_only_what_was_measured_is_good(
    tmp_path: Path, document: dict[str, Any], grades: set[Grade]
) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps(document))
    _, _, found = read([path])
    assert {statement.grade for statement in found} == grades


def test_an_edited_mutation_score_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps(mutation_report("survived", killed=1)))
    with pytest.raises(UsageError):
        read([path])


def test_a_run_without_an_applicable_question_is_not_good(tmp_path: Path) -> None:
    run = write_run(tmp_path / "go.json", "go", [question("q", QuestionStatus.NOT_APPLICABLE)])
    _, _, found = read([run])
    assert {statement.grade for statement in found} == {Grade.UNKNOWN}


def test_an_sdk_that_passed_no_check_is_not_good(tmp_path: Path) -> None:
    path = conform_file(tmp_path / "c.json", {"a": Result.NOT_APPLICABLE})
    _, _, found = read([path])
    assert {statement.grade for statement in found} == {Grade.UNKNOWN}


def test_a_check_that_could_not_be_tested_is_no_regression(tmp_path: Path) -> None:
    before = conform_file(tmp_path / "old.json", {"a": Result.PASS, "b": Result.PASS})
    now = conform_file(tmp_path / "new.json", {"a": Result.UNTESTABLE, "b": Result.PASS}, day=2)
    _, _, found = read([now], before)
    assert Grade.BAD not in {statement.grade for statement in found}
    assert any("could not be tested in 1 check that its baseline" in s.text for s in found)


def test_a_baseline_that_matches_nothing_is_reported(tmp_path: Path) -> None:
    old = write_run(tmp_path / "old.json", "go", _SAME, run_id="old", dataset="fish")
    now = write_run(tmp_path / "go.json", "go", _SAME, started_at="2026-02-01T00:00:00+00:00")
    _, _, found = read([now], old)
    assert found[0].grade is Grade.UNKNOWN
    assert found[0].text == "no result could be compared with the baseline"


def test_the_key_of_a_group_does_not_depend_on_what_else_is_reported(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one" / "go.json", "go", _SAME)
    other = write_run(tmp_path / "two" / "py.json", "py", _SAME, dataset="ants", mode="hybrid")
    alone, _, _ = read([one])
    both, _, _ = read([one, other], folder=tmp_path)
    keys = {group.name: group.key for group in both.groups}
    assert alone.groups[0].key == keys["birds, ask-basic, bm25"]
    assert len(set(keys.values())) == 2


def test_pipes_and_devices_of_a_folder_are_passed_over(tmp_path: Path) -> None:
    write_run(tmp_path / "go.json", "go", _SAME)
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    overview, _, _ = read([tmp_path])
    assert len(overview.results.sources) == 1
