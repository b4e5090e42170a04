"""Two results of the replay, compared: through the command, and the checks of stored results."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memconform.cli.diff.command import latency_codes
from memconform.cli.main import cli
from memconform.errors import ExitCode, UsageError
from memconform.records import Incident
from memconform.replay.records import LmeQuestion
from memconform.replay.review_records import LmeReview
from memconform.replay.stored_results import find_result_file, read_lme_result
from memconform.stats.latency_ratio import LatencyRatio
from memconform.stats.paired_comparison import RateInterval
from memconform.storage.sink import replacing
from tests.unit.lme_results import RETRIEVAL, SETTINGS, question, result_of, write_lme

_CATEGORIES = ("temporal", "preference")
_NAMES = [f"{category}-{n}" for category in _CATEGORIES for n in range(10)]


def _questions(wrong: int = 0, **fields: Any) -> list[LmeQuestion]:
    """Twenty questions, of which so many are answered wrong; the first ten are temporal."""
    return [
        question(name, "incorrect" if n < wrong else "correct", **fields)
        for n, name in enumerate(_NAMES)
    ]


def _review(before: Path, after: Path, *flags: str) -> tuple[ExitCode, LmeReview]:
    target = after.with_name("review.json")
    args = ["diff", str(before), str(after)]
    code = cli([*args, "--json", str(target), *flags], standalone_mode=False)
    report = LmeReview.model_validate_json(target.read_bytes())
    assert report.exit_code == code
    jsonschema.validate(json.loads(target.read_bytes()), LmeReview.model_json_schema())
    return code, report


def _pair(
    tmp_path: Path, before: list[LmeQuestion], after: list[LmeQuestion], **after_is: Any
) -> tuple[Path, Path]:
    return (
        write_lme(tmp_path / "before" / "result-go.json", before),
        write_lme(tmp_path / "after" / "result-go.json", after, **after_is),
    )


def test_a_significant_drop_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = _review(*_pair(tmp_path, _questions(), _questions(wrong=10)))
    assert code is ExitCode.FAILED
    assert [flip.question for flip in report.regressions] == _NAMES[:10]
    assert report.fixes == []
    assert (report.overall.first_only, report.overall.second_only) == (10, 0)
    # Holm over the two categories; each question of the other has the same answer in both.
    assert report.by_category["temporal"].holm_p == pytest.approx(
        2 * report.by_category["temporal"].mid_p
    )
    assert report.by_category["preference"].verdict == "identical"
    shown = capsys.readouterr()
    assert "significantly worse: 10 regressions, 0 fixes" in shown.out
    assert "temporal-0 (temporal): correct -> incorrect, rank of gold 1 -> 1" in shown.err


def test_an_equally_large_gain_does_not_fail(tmp_path: Path) -> None:
    code, report = _review(*_pair(tmp_path, _questions(wrong=10), _questions()))
    assert code is ExitCode.OK
    assert [flip.question for flip in report.fixes] == _NAMES[:10]
    assert report.overall.verdict == "drift"


@pytest.mark.parametrize(("cluster", "verdict"), [(None, "drift"), ("history", "inconclusive")])
def test_questions_that_share_a_history_do_not_count_one_by_one(
    tmp_path: Path, cluster: str | None, verdict: str
) -> None:
    sides = [_questions(wrong, cluster=cluster) for wrong in (0, 10)]
    _, report = _review(*_pair(tmp_path, *sides))
    assert report.overall.verdict == verdict


def test_a_question_that_was_not_measured_is_not_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = [question(name, "judge_error") for name in _NAMES[:10]] + _questions()[10:]
    code, report = _review(*_pair(tmp_path, _questions(), after))
    assert code is ExitCode.DAEMON
    assert report.regressions == []
    assert report.overall.compared == 10
    assert report.overall.verdict != "identical"
    assert [each.question for each in report.not_measured] == _NAMES[:10]
    assert report.not_measured[0].before == ""
    assert report.not_measured[0].after == "llm_failed"
    assert "10 not measured" in capsys.readouterr().out
    assert report.after.accuracy.rate is None


def test_questions_of_one_result_are_named(tmp_path: Path) -> None:
    before, after = _questions()[:15], _questions()[5:]
    code, report = _review(*_pair(tmp_path, before, after))
    assert code is ExitCode.OK
    assert report.only_before == _NAMES[:5]
    assert report.only_after == _NAMES[15:]
    assert {each.verdict for each in report.by_category.values()} == {"inconclusive"}
    assert report.overall.compared == 10
    assert report.overall.verdict != "identical"


def test_nothing_in_common(tmp_path: Path) -> None:
    code, report = _review(*_pair(tmp_path, _questions()[:5], _questions()[5:]))
    assert code is ExitCode.NOTHING_SELECTED
    assert report.overall.compared == 0


def test_inconclusive_fails_only_if_asked(tmp_path: Path) -> None:
    pair = _pair(tmp_path, _questions(), _questions(wrong=1))
    assert _review(*pair)[0] is ExitCode.OK
    assert _review(*pair, "--fail-on", "inconclusive")[0] is ExitCode.INCONCLUSIVE


def test_an_incident_is_not_ok(tmp_path: Path) -> None:
    incident = Incident(code="daemon_died", message="it is gone", hint="", excerpt="", exit_code=3)
    code, report = _review(*_pair(tmp_path, _questions(), _questions(), incident=incident))
    assert code is ExitCode.DAEMON
    assert "after: daemon_died: it is gone" in report.reasons


def test_what_differs_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"retrieval": RETRIEVAL.model_copy(update={"top_k": 5}), "brain": "other"}
    pair = _pair(tmp_path, _questions(), _questions(), sdk="ts", settings=settings)
    code, report = _review(*pair)
    assert code is ExitCode.OK
    assert [(c.name, c.before, c.after) for c in report.changes] == [
        ("sdk", "go", "ts"),
        ("brain", "brain", "other"),
        ("retrieval.top_k", "20", "5"),
    ]
    assert "what differs: retrieval.top_k: 20 -> 5" in capsys.readouterr().err


def test_another_model_of_the_same_rubric_is_a_difference(tmp_path: Path) -> None:
    assert SETTINGS.judge is not None
    [model] = SETTINGS.judge.models
    judge = SETTINGS.judge.model_copy(
        update={"models": [model.model_copy(update={"model": "openai:other"})]}
    )
    _, report = _review(*_pair(tmp_path, _questions(), _questions(), settings={"judge": judge}))
    assert [change.name for change in report.changes] == ["judge.models.1.model"]


def test_a_flip_of_the_same_answer_is_a_flip_of_the_judge(tmp_path: Path) -> None:
    sides = [_questions(wrong, answer="It is so.") for wrong in (0, 2)]
    _, report = _review(*_pair(tmp_path, *sides))
    assert [flip.same_answer for flip in report.regressions] == [True, True]
    assert "2 flips with the same answer: only the verdict changed" in report.reasons


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset_sha256": "e" * 64}, "different data"),
        ({"judge": None}, "rubric rubric and by exact match"),
        (
            {"judge": SETTINGS.judge and SETTINGS.judge.model_copy(update={"prompt": "lenient"})},
            "rubric rubric and by rubric lenient",
        ),
    ],
)
def test_results_of_other_data_or_rubrics_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        _review(*_pair(tmp_path, _questions(), _questions(), settings=settings))
    assert caught.value.code == "unlike_runs"


@pytest.mark.parametrize(
    "changed", [{"question": "Who?"}, {"reference_answers": ["x"]}, {"category": "other"}]
)
def test_another_question_of_the_same_id_is_refused(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    after = [question(_NAMES[0], **changed), *_questions()[1:]]
    with pytest.raises(UsageError, match="differs") as caught:
        _review(*_pair(tmp_path, _questions(), after))
    assert caught.value.code == "unlike_runs"


def test_one_result_is_no_comparison(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "result-go.json", _questions())
    with pytest.raises(UsageError) as caught:
        _review(path, tmp_path)
    assert caught.value.code == "one_run_twice"


def test_markdown_has_the_flips_and_no_markup_of_an_answer(tmp_path: Path) -> None:
    hostile = [
        question(_NAMES[0], "incorrect", answer="<img src=x>\n| a | \x1b[2J"),
        *_questions()[1:],
    ]
    target = tmp_path / "review.md"
    _review(*_pair(tmp_path, _questions(), hostile), "--markdown", str(target))
    text = target.read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if "temporal-0" in line)
    assert r"\<img src=x\> \| a \| " in row
    assert "\x1b" not in text


def test_hostile_text_stays_on_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = [question(_NAMES[0], "incorrect", answer="a\n::error::b \x1b[2J"), *_questions()[1:]]
    _review(*_pair(tmp_path, _questions(), hostile))
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert r"after: a\n::error::b \x1b[2J" in shown


# Stored results.


def test_a_result_is_found_in_its_folder(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "result-go.json", _questions())
    assert find_result_file(str(path)) == path
    assert find_result_file(str(tmp_path)) == path
    assert find_result_file(f"{tmp_path}#go") == path
    assert find_result_file(f"{path}#go") == path


@pytest.mark.parametrize(
    ("reference", "code"),
    [("", "several_results"), ("#py", "unknown_run"), ("/none", "unknown_run")],
)
def test_a_result_that_is_not_there(tmp_path: Path, reference: str, code: str) -> None:
    for sdk in ("go", "ts"):
        write_lme(tmp_path / f"result-{sdk}.json", _questions())
    with pytest.raises(UsageError) as caught:
        find_result_file(f"{tmp_path}{reference}")
    assert caught.value.code == code
    assert find_result_file(f"{tmp_path}#ts") == tmp_path / "result-ts.json"


def test_a_result_on_one_line_is_read(tmp_path: Path) -> None:
    result = result_of(_questions())
    path = tmp_path / "result-go.json"
    with replacing(path) as target:
        target.write_json(result, indent=None)
    assert read_lme_result(path) == result


def _edit(change: Callable[[dict[str, Any]], None]) -> Callable[[str], str]:
    def edited(text: str) -> str:
        loaded = json.loads(text)
        change(loaded)
        return json.dumps(loaded)

    return edited


@pytest.mark.parametrize(
    ("damage", "excerpt"),
    [
        (lambda text: text[: len(text) // 2], "line "),
        (lambda _: "[]", "names no schema"),
        (lambda text: text.replace("lme-result@1", "lme-result@2"), "this memconform reads"),
        (lambda text: text.replace("lme-result@1", "qa-report@1"), "not memconform/lme-result@1"),
        (_edit(lambda r: r.update(extra=1)), "extra"),
        (_edit(lambda r: r.update(overall_score=0.9)), "overall_score"),
        (_edit(lambda r: r.update(overall_interval=[0.1, 0.2])), "overall_score"),
        (_edit(lambda r: r.update(measured=19)), "measured"),
        (_edit(lambda r: r.update(questions_run=19)), "questions_run"),
        (_edit(lambda r: r["scores"]["overall"].update(correct=19)), "scores.overall.correct"),
        (_edit(lambda r: r["scores"]["overall"]["rate"].update(low=90.0)), "rate.low"),
        (_edit(lambda r: r["by_category"]["temporal"].update(score=0.1)), "by_category"),
        (_edit(lambda r: r["questions"][0].update(judge_verdict="correct")), "scores.overall"),
        (_edit(lambda r: r["questions"].pop()), "temporal|preference"),
        (_edit(lambda r: r["questions"].append(r["questions"][0])), "there twice"),
        (_edit(lambda r: r.update(dataset_sha="x")), "dataset_sha"),
    ],
)
def test_a_damaged_or_edited_result_is_refused(
    tmp_path: Path, damage: Callable[[str], str], excerpt: str
) -> None:
    path = write_lme(tmp_path / "result-go.json", _questions(wrong=3))
    read_lme_result(path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(UsageError) as caught:
        read_lme_result(path)
    assert caught.value.code == "result_unreadable"
    assert caught.value.excerpt
    pattern = excerpt.split("|")
    assert any(part in caught.value.excerpt for part in pattern)


def test_a_result_of_an_earlier_version_has_no_clusters(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "result-go.json", _questions())
    loaded = json.loads(path.read_bytes())
    for each in loaded["questions"]:
        del each["cluster"]
    path.write_text(json.dumps(loaded))
    assert read_lme_result(path).questions[0].cluster is None


@pytest.mark.parametrize("clustered", [True, False])
def test_intervals_may_be_by_history_or_by_question(tmp_path: Path, clustered: bool) -> None:  # noqa: FBT001 - a parameter
    questions = [
        question(f"a-{n}", "incorrect" if n // 3 % 2 else "correct", cluster=f"h{n // 3}")
        for n in range(60)
    ]
    single = [each.model_copy(update={"cluster": None}) for each in questions]
    path = write_lme(tmp_path / "result-go.json", questions if clustered else single)
    loaded = json.loads(path.read_bytes())
    for each in loaded["questions"]:
        each["cluster"] = f"h{int(each['id'][2:]) // 3}"
    path.write_text(json.dumps(loaded))
    read_lme_result(path)


_SLOWER = [question(name, retrieval_ms=2.0 + n / 100) for n, name in enumerate(_NAMES)]


def test_latency_is_compared_question_by_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`diff` said that it compares none, although each question has one."""
    pair = _pair(tmp_path, _questions(), _SLOWER)
    code, report = _review(*pair, "--fail-on", "latency:2.5")
    assert code is ExitCode.OK
    assert report.latency is not None
    assert report.latency.questions == 20
    assert 2.0 < report.latency.ratio.low < report.latency.ratio.value < 2.2
    assert "retrieval latency: 2.09x that before (95 %: " in capsys.readouterr().err
    assert _review(*pair, "--fail-on", "latency:1.5")[0] is ExitCode.FAILED
    assert "retrieval latency: 2.09x" in _markdown(tmp_path, *pair)


def _markdown(folder: Path, before: Path, after: Path) -> str:
    target = folder / "review.md"
    _review(before, after, "--markdown", str(target))
    return target.read_text()


@pytest.mark.parametrize(
    ("before", "after", "settings"),
    [
        # Searches of an agent run concurrently, so that their latencies contain each other.
        (_questions(), _SLOWER, {"agentic": True}),
        # One is the time of a search, the other that of a search and a reader.
        (_questions(), _SLOWER, {"endpoint_style": "full"}),
        (_questions(), _questions(retrieval_ms=None), {}),
        (_questions()[:9], _SLOWER[:9], {}),
    ],
    ids=["agent", "other endpoint", "no latency", "few"],
)
def test_latencies_that_cannot_be_compared_are_not(
    tmp_path: Path,
    before: list[LmeQuestion],
    after: list[LmeQuestion],
    settings: dict[str, object],
    capsys: pytest.CaptureFixture[str],
) -> None:
    pair = _pair(tmp_path, before, after, settings=settings)
    code, report = _review(*pair, "--fail-on", "latency:1.5")
    assert report.latency is None
    assert code is ExitCode.INCONCLUSIVE
    assert "the latency ratio is undecided: it needs 10 questions" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("low", "compared", "is_whole", "codes"),
    [
        (1.1, 20, True, []),
        (1.3, 20, True, [ExitCode.FAILED]),
        # A question without a latency may be the slow one.
        (1.1, 20, False, [ExitCode.INCONCLUSIVE]),
        (1.1, 21, True, [ExitCode.INCONCLUSIVE]),
        (1.3, 21, True, [ExitCode.INCONCLUSIVE, ExitCode.FAILED]),
    ],
)
def test_a_limit_of_latency_is_decided_by_all_questions(
    low: float, compared: int, codes: list[ExitCode], *, is_whole: bool
) -> None:
    interval = RateInterval(value=1.4, low=low, high=1.5)
    latency = LatencyRatio(questions=20, ratio=interval)
    assert list(latency_codes(latency, 1.2, compared=compared, is_whole=is_whole)) == codes
