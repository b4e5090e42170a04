"""Results of `answer`, `judge`, `lme` and `wmb score` in the form of runs."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import memconform
from memconform.bench.wmb.records import WmbScore
from memconform.errors import ExitCode, UsageError
from memconform.llm.records import ModelSettings
from memconform.reports.check_status import OutcomeStatus
from memconform.reports.exports.summary import summary_markdown
from memconform.reports.overview.headline import Grade, statements
from memconform.reports.overview.outcomes import outcomes
from memconform.reports.overview.overview import Overview
from memconform.reports.wmb import show_score
from memconform.results.comparison import compare_runs
from memconform.results.loaded_runs import method_lines
from memconform.results.references import load_pair, load_results
from memconform.results.run_diff import diff_runs
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.result_file import WRITERS, read_head
from tests.unit.lme_results import RETRIEVAL, write_lme
from tests.unit.lme_results import question as lme_question
from tests.unit.scored_answers import (
    JUDGE,
    READER,
    SHA,
    write_answer,
    write_judged,
    write_wmb_score,
)

RIGHT, WRONG, LOST = QuestionStatus.CORRECT, QuestionStatus.INCORRECT, QuestionStatus.NOT_RUN
STATUSES = {f"q{number}": RIGHT if number < 4 else WRONG for number in range(6)}
REPLAY: dict[str, Any] = {"reader": READER, "judge": JUDGE}
"""Settings of a replay with the reader and the judge of the arms."""


def _replay(folder: Path, statuses: Mapping[str, QuestionStatus], **settings: Any) -> Path:
    names = {RIGHT: "correct", WRONG: "incorrect", LOST: "not_run"}
    rows = [lme_question(name, names[status]) for name, status in statuses.items()]
    return write_lme(folder / "result-go.json", rows, settings=REPLAY | settings)


def test_an_arm_and_a_replay_of_the_same_questions_are_compared(tmp_path: Path) -> None:
    """The two could not be laid side by side."""
    answers = write_answer(tmp_path, "a", {"go hybrid": STATUSES, "oracle": STATUSES})
    later = {name: STATUSES[name] for name in reversed(STATUSES)} | {"q0": WRONG}
    runs = load_results([f"{answers}#go*", str(_replay(tmp_path, later))], tmp_path)
    assert [run.name for run in runs] == ["go hybrid", "go"]
    report = compare_runs(runs)
    [pair] = report.pairs
    assert (pair.contrast.compared, pair.contrast.first_only, pair.contrast.second_only) == (
        6,
        1,
        0,
    )
    assert diff_runs(runs[0], runs[1]).regressions == ["q0"]
    # What was retrieved is recorded on one side only.
    assert pair.rankings.compared == 0
    assert set(pair.stages) == {"deltas"}
    lines = method_lines(runs)
    assert [line.partition(", ")[0] for line in lines] == [
        "go hybrid: verb score of a bench",
        "go: verb lme",
    ]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"dataset_sha256": "e" * 64}, "different datasets"),
        ({"judge": JUDGE.model_copy(update={"prompt": "other"})}, "differ in judge"),
        ({"judge": None}, "differ in scorer"),
        ({"reader": ModelSettings(model="openai:other", sampling={})}, "differ in reader"),
        ({"endpoint_style": "full", "reader": None}, "differ in reader"),
    ],
)
def test_what_decides_the_scores_is_compared_and_named(
    tmp_path: Path, settings: dict[str, Any], named: str
) -> None:
    answers = write_answer(tmp_path, "a", {"go hybrid": STATUSES})
    runs = load_results([str(answers), str(_replay(tmp_path, STATUSES, **settings))], tmp_path)
    with pytest.raises(UsageError, match=named) as caught:
        compare_runs(runs)
    assert caught.value.code == "unlike_runs"


def test_other_questions_are_named(tmp_path: Path) -> None:
    answers = write_answer(tmp_path, "a", {"go hybrid": STATUSES})
    fewer = {name: STATUSES[name] for name in list(STATUSES)[:5]}
    runs = load_results([str(answers), str(_replay(tmp_path, fewer))], tmp_path)
    with pytest.raises(UsageError, match=r"differ in questions: '6 questions.*'5 questions"):
        compare_runs(runs)


def test_what_was_not_measured_stays_so(tmp_path: Path) -> None:
    partly = STATUSES | {"q1": LOST, "q5": QuestionStatus.JUDGE_ERROR}
    results = [
        write_answer(tmp_path, "a", {"go hybrid": partly}),
        _replay(tmp_path, STATUSES | {"q1": LOST}),
        write_judged(tmp_path, "j", {"strict": partly}),
    ]
    answer, replay, judged = load_results(list(map(str, results)), tmp_path)
    for run, lost in ((answer, ["q1", "q5"]), (replay, ["q1"]), (judged, ["q1", "q5"])):
        questions = list(run.questions())
        assert [q.id for q in questions if not q.verdict.measured] == lost
        assert all(q.score is None and q.error for q in questions if not q.verdict.measured)
        assert run.summary.exit_code == ExitCode.DAEMON
    assert (answer.summary.total, answer.summary.passed) == (6, 3)


def test_an_incident_voids_its_arm_alone(tmp_path: Path) -> None:
    path = write_answer(tmp_path, "a", {"go": STATUSES | {"q5": LOST}, "py": STATUSES}, ended="go")
    go, py = load_results([str(path)], tmp_path)
    assert go.summary.incident is not None
    assert (go.summary.pass_rate, py.summary.pass_rate) == (None, 4 / 6)
    assert not any(question.verdict.measured for question in go.questions())
    report = compare_runs([go, py])
    assert (report.pairs[0].contrast.compared, report.exit_code) == (0, ExitCode.DAEMON)


def test_questions_without_an_answer_are_not_measured(tmp_path: Path) -> None:
    [run] = load_results(
        [str(write_judged(tmp_path, "j", {"s": STATUSES}, missing=("z",)))], tmp_path
    )
    assert (run.summary.total, run.summary.passed, run.summary.counts[LOST]) == (7, 4, 1)
    # Neither what wrote the answers nor the text of a question without one is known.
    arm = write_answer(tmp_path, "a", {"go": STATUSES | {"z": RIGHT}})
    compared = compare_runs([run, *load_results([str(arm)], tmp_path)])
    assert compared.pairs[0].contrast.compared == 6


@pytest.mark.parametrize("kind", ["answer", "judge", "wmb"])
def test_figures_that_are_not_those_of_the_answers_are_refused(tmp_path: Path, kind: str) -> None:
    old, new = '"status":"incorrect"', '"status":"correct"'
    if kind == "answer":
        path = write_answer(tmp_path, "a", {"go": STATUSES})
    elif kind == "judge":
        path = write_judged(tmp_path, "a", {"s": STATUSES})
    else:
        path = write_wmb_score(tmp_path, "a")
        old, new = '"right":true', '"right":false'
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match="contradicts itself") as caught:
        load_results([str(path)], tmp_path)
    assert caught.value.code == "result_unreadable"


def test_a_report_without_its_answers_says_where_they_are(tmp_path: Path) -> None:
    path = write_answer(tmp_path, "a", {"go": STATUSES})
    loaded = json.loads(path.read_text())
    del loaded["questions"]
    alone = tmp_path / "report.json"
    alone.write_text(json.dumps(loaded, indent=1))
    with pytest.raises(UsageError, match="is not a result with its answers"):
        load_results([str(alone)], tmp_path)
    # In a folder it is not counted beside the result that it is the report of.
    with Overview.load([str(tmp_path)], [], tmp_path) as overview:
        assert (len(overview.groups), overview.not_shown) == (1, [])


def test_a_subject_is_named_by_its_mark(tmp_path: Path) -> None:
    write_answer(tmp_path, "a", {"go hybrid": STATUSES, "py hybrid": STATUSES})
    one, other = load_pair("a#go hybrid", "a#py*", tmp_path)
    assert (one.name, other.name) == ("go hybrid", "py hybrid")
    assert load_results([one.reference], tmp_path)[0].summary == one.summary
    with Overview.load([one.reference], [], tmp_path) as overview:
        assert [run.name for run in overview.results.runs] == ["go hybrid"]
    for references, code in (
        (("a", "a#go*"), "several_results"),
        (("a#ts*", "a#go*"), "unknown_row"),
        (("a#go*", "a#go*"), "one_run_twice"),
    ):
        with pytest.raises(UsageError) as caught:
            load_pair(*references, tmp_path)
        assert caught.value.code == code


def test_questions_about_one_conversation_of_locomo_are_a_cluster(tmp_path: Path) -> None:
    statuses = {f"conv-{number % 2}#{number}": RIGHT for number in range(6)}
    path = write_answer(tmp_path, "a", {"go": statuses, "py": statuses}, suite="locomo")
    runs = load_results([str(path)], tmp_path)
    assert {question.cluster for question in runs[0].questions()} == {"conv-0", "conv-1"}
    assert compare_runs(runs).pairs[0].contrast.clusters == 2


def test_a_folder_of_the_replay_stands_for_its_sdks(tmp_path: Path) -> None:
    for sdk in ("go", "py"):
        write_lme(tmp_path / f"result-{sdk}.json", [lme_question("q1")], sdk=sdk)
    assert [run.name for run in load_results([str(tmp_path)], tmp_path)] == ["go", "py"]
    assert [run.name for run in load_results([f"{tmp_path}#py"], tmp_path)] == ["py"]
    with Overview.load([f"{tmp_path}#py"], [], tmp_path) as overview:
        assert [run.name for run in overview.results.runs] == ["py"]


def test_a_report_does_not_mix_ways_to_retrieve(tmp_path: Path) -> None:
    """Another mode or k is a change of settings, and no history of the SDK."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder, top_k in zip(folders, (5, 20), strict=True):
        folder.mkdir()
        retrieval = RETRIEVAL.model_copy(update={"top_k": top_k})
        path = _replay(folder, STATUSES, retrieval=retrieval)
        path.write_text(
            path.read_text().replace("2026-01-31T00:00:00", f"2026-01-{top_k:02}T00:00:00")
        )
    write_answer(tmp_path, "a", {"go hybrid": STATUSES, "py hybrid": STATUSES})
    with Overview.load([str(tmp_path)], [], tmp_path) as overview:
        names = sorted(sorted(run.name for run in group.current) for group in overview.groups)
        keys = {group.key for group in overview.groups}
    assert names == [["go"], ["go", "go hybrid", "py hybrid"]]
    assert len(keys) == 2


def test_a_score_of_wmb_is_its_questions_by_the_readme(tmp_path: Path) -> None:
    [run] = load_results([str(write_wmb_score(tmp_path, "w", lost=1))], tmp_path)
    questions = list(run.questions())
    assert run.summary.dataset == f"WMB-100K {run.summary.provenance.dataset_sha256[:8]}"
    assert run.summary.counts[LOST] == 1
    assert {question.cluster for question in questions} == {"daily_life", "work_career"}
    assert SHA not in run.summary.dataset


def test_score_and_report_count_a_partial_run_of_wmb_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Denominators are fixed: what a run left out is expected and not measured. `score` exited 0,
    and named 10 questions as not measured where a report counted 8."""
    # The last two are probes about documents, which the README never counts.
    path = write_wmb_score(tmp_path, "w", not_asked=10)
    report = WmbScore.model_validate_json(read_head(path))
    [run] = load_results([str(path)], tmp_path)
    expected, measured, _ = report.profiles["readme"].counts()
    assert (expected - measured, expected) == (8, 24)
    assert sum(not question.verdict.measured for question in run.questions()) == 8
    assert report.exit_code == run.summary.exit_code == ExitCode.DAEMON
    errors = {q.error.message for q in run.questions() if q.error is not None}
    assert errors == {"the run left it out"}
    show_score(report)
    assert "not measured: 8 of 24 questions by the readme" in capsys.readouterr().err


def test_a_score_of_wmb_without_outcomes_is_shown_and_not_compared(tmp_path: Path) -> None:
    path = write_wmb_score(tmp_path, "w")
    lines = [line for line in path.read_text().splitlines(keepends=True) if '"outcome"' not in line]
    # The last verdict ended in a comma.
    text = "".join(lines).replace("},\n]", "}\n]")
    path.write_text(text)
    with pytest.raises(UsageError, match="has no outcomes"):
        load_results([str(path)], tmp_path)
    with Overview.load([str(path)], [], tmp_path) as overview:
        assert len(overview.wmb) == 1


def test_every_schema_has_its_command_and_readers() -> None:
    """A file of a kind that nobody lists is "no result"."""
    written = {
        name
        for path in Path(memconform.__file__).parent.rglob("*.py")
        for name in re.findall(
            r'_SCHEMA: Literal\[?[^=]*= "memconform/([a-z-]+)@', path.read_text()
        )
    }
    assert len(written) > 20
    assert written - set(WRITERS) == set()


@pytest.mark.parametrize("agentic", [False, True])
def test_latencies_of_an_agent_are_no_latencies_of_a_search(tmp_path: Path, agentic: bool) -> None:  # noqa: FBT001 - a parameter
    """Its searches run concurrently."""
    [run] = load_results([str(_replay(tmp_path, STATUSES, agentic=agentic))], tmp_path)
    assert {each.latency_ms for each in run.questions()} == {None if agentic else 1.0}


def test_controls_are_shown_apart_and_are_no_failures(tmp_path: Path) -> None:
    """What the reader got wrong without a memory counted as failures, and drifted from a system."""
    wrong = dict.fromkeys(STATUSES, WRONG)
    right = dict.fromkeys(STATUSES, RIGHT)
    path = write_answer(
        tmp_path, "a", {"go hybrid": right, "no-memory": wrong, "full-context": STATUSES}
    )
    with Overview.load([str(path)], [], tmp_path) as overview:
        found = outcomes(overview)
        verdict, *others = statements(overview)
        text = summary_markdown(overview, [verdict, *others], found)
    assert {(o.sdk, o.status) for o in found} == {
        ("go hybrid", OutcomeStatus.PASSED),
        ("no-memory", OutcomeStatus.SKIPPED),
        ("full-context", OutcomeStatus.SKIPPED),
    }
    assert {o.detail for o in found if o.sdk == "no-memory"} == {"control: incorrect"}
    assert {o.message for o in found if o.sdk == "no-memory"} == {"control: incorrect: so"}
    assert verdict.text.startswith("go hybrid passes 6 of 6 questions")
    assert [statement.text.partition(" of ")[0] for statement in others] == [
        "full-context, a control, passes 4",
        "no-memory, a control, passes 0",
    ]
    # Neither good nor bad: no badge is green for what a control scores.
    assert {statement.grade for statement in others} == {Grade.CONTROL}
    assert "controls | 0.667 (" in text
    assert "Failed" not in text


def test_an_answer_that_a_control_lacks_is_not_measured(tmp_path: Path) -> None:
    path = write_answer(tmp_path, "a", {"go": {"q": RIGHT}, "oracle": {"q": LOST}})
    with Overview.load([str(path)], [], tmp_path) as overview:
        statuses = {outcome.sdk: outcome.status for outcome in outcomes(overview)}
    assert statuses == {"go": OutcomeStatus.PASSED, "oracle": OutcomeStatus.ERROR}


def test_a_control_is_compared_with_no_baseline(tmp_path: Path) -> None:
    arms = {"go": STATUSES, "no-memory": STATUSES}
    earlier = write_answer(tmp_path, "a", arms)
    earlier.write_text(earlier.read_text().replace('"started_at": "20', '"started_at": "19', 1))
    wrong = {"no-memory": dict.fromkeys(STATUSES, WRONG)}
    later = write_answer(tmp_path, "b", arms | wrong)
    with Overview.load([str(later)], [str(earlier)], tmp_path) as overview:
        outcomes(overview)
        changes = {sdk for group in overview.groups for sdk in group.changes}
    assert changes == {"go"}


@pytest.mark.parametrize(
    ("sdk", "mode_rule", "is_control"),
    [
        ("oracle", None, True),
        ("go", "bm25: asked for", False),
        ("oracle", "bm25: asked for", False),
    ],
)
def test_a_control_of_a_replay_is_a_control(
    tmp_path: Path,
    sdk: str,
    mode_rule: str | None,
    is_control: bool,  # noqa: FBT001 - a case
) -> None:
    """Failures of an SDK with the oracle's data, or with its name, must count."""
    path = write_lme(
        tmp_path / "result.json",
        [lme_question("q")],
        sdk=sdk,
        settings=REPLAY | {"benchmark_mode": "oracle"},
    )
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mode_rule": mode_rule}))
    [run] = load_results([str(path)], tmp_path)
    assert run.is_control is is_control
