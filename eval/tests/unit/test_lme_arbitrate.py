"""A person overrules the judge: at the terminal, by a table, and what the report makes of it."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result

from memconform import redaction
from memconform.cli.main import cli
from memconform.errors import ExitCode, MemconformError, NothingSelectedError, UsageError
from memconform.replay.arbitration_csv import COLUMNS
from memconform.replay.arbitration_records import LmeArbitration
from memconform.replay.overrides import FILE_NAME, answer_digest
from memconform.replay.records import LmeQuestion
from memconform.replay.stored import read_lme_result
from memconform.scoring.judge.records import JudgeVote
from memconform.stats.prevalence import rogan_gladen
from memconform.stats.raters import cohen_kappa
from tests.unit.lme_results import question, write_lme

_WRONG = 4
_SECRET = "canary-0123456789"  # noqa: S105 - one that must not leak


def _questions(number: int = 10, **fields: Any) -> list[LmeQuestion]:
    """Of these, the first four are wrong by the judge."""
    return [
        question(f"a-{n}", "incorrect" if n < _WRONG else "correct", **fields)
        for n in range(number)
    ]


@pytest.fixture
def result(tmp_path: Path) -> Path:
    return write_lme(tmp_path / "result-go.json", _questions())


def _run(result: Path, *flags: str, keys: str = "") -> Result:
    """The command with a person's keys; errors are raised."""
    args = ["lme", "arbitrate", str(result), *flags]
    ended = CliRunner().invoke(cli, args, input=keys, standalone_mode=False)
    if ended.exception is not None:
        raise ended.exception
    return ended


def _report(result: Path, *flags: str, keys: str = "") -> LmeArbitration:
    target = result.with_name("report.json")
    ended = _run(result, *flags, "--json", str(target), keys=keys)
    report = LmeArbitration.model_validate_json(target.read_bytes())
    jsonschema.validate(json.loads(target.read_bytes()), LmeArbitration.model_json_schema())
    assert ended.return_value == report.exit_code == ExitCode.OK
    return report


def _overrides(result: Path) -> list[dict[str, Any]]:
    lines = result.with_name(FILE_NAME).read_text().splitlines()
    return [json.loads(line) for line in lines]


# The terminal.


def test_verdicts_are_kept_beside_the_result(result: Path) -> None:
    before = result.read_bytes()
    report = _report(result, "--by", "Ada", keys="c the date is right\ni\nx\ns\nq\n")
    first, second = _overrides(result)
    assert (first["question"], first["verdict"], first["note"]) == (
        *("a-0", "correct", "the date is right"),
    )
    assert (first["by"], first["judge"], first["sdk"]) == ("Ada", "incorrect", "go")
    assert first["answer_sha256"] == answer_digest(_questions()[0])
    assert (second["question"], second["verdict"]) == ("a-1", "incorrect")
    assert result.read_bytes() == before
    assert (report.selected, report.arbitrated, report.by) == (10, 2, ["Ada"])
    assert [each.question for each in report.overruled] == ["a-0"]
    assert report.score.correct == 6
    assert report.score_with_overrides.correct == 7


def test_a_screen_has_question_reference_answer_and_reason(result: Path) -> None:
    shown = _run(result, "--by", "Ada", keys="q\n").output
    for text in ("What of a-0?", "the a-0", "It is a-0, incorrect.", "as it says", "1 of 10"):
        assert text in shown
    assert "What of a-1?" not in shown


def test_it_continues_where_it_stopped(result: Path) -> None:
    _run(result, "--by", "Ada", keys="c\nc\nq\n")
    shown = _run(result, "--by", "Ben", keys="i\n").output
    assert "1 of 8: a-2" in shown
    assert [(each["question"], each["by"]) for each in _overrides(result)] == [
        *(("a-0", "Ada"), ("a-1", "Ada"), ("a-2", "Ben")),
    ]


def test_the_end_of_the_input_quits(result: Path) -> None:
    assert _report(result, "--by", "Ada", keys="c\n").arbitrated == 1


def test_an_interruption_loses_nothing(result: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Keys:
        """Presses c, then Ctrl-C."""

        pressed = iter(["c\n"])

        def readline(self) -> str:
            for key in self.pressed:
                return key
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", Keys())
    with pytest.raises((KeyboardInterrupt, click.Abort)):
        cli(["lme", "arbitrate", str(result), "--by", "Ada"], standalone_mode=False)
    assert [each["question"] for each in _overrides(result)] == ["a-0"]


def test_without_a_name_it_only_reports(result: Path) -> None:
    report = _report(result, keys="c\nc\n")
    assert report.arbitrated == 0
    assert report.agreement is None
    assert not result.with_name(FILE_NAME).exists()


def test_hostile_text_stays_behind_its_mark(tmp_path: Path) -> None:
    answer = "a\n::error::b\x1b[2J\n1 of 10: forged"
    path = write_lme(tmp_path / "result-go.json", _questions(answer=answer))
    shown = _run(path, "--by", "Ada", keys="q\n").output
    assert "\x1b" not in shown
    assert "::error" not in shown
    assert "\n1 of 10: forged" not in shown


# Which answers.


def test_only_the_answers_that_the_judge_fails(result: Path) -> None:
    report = _report(result, "--only", "incorrect", "--by", "Ada", keys="c\ni\ni\ni\n")
    assert (report.selected, report.arbitrated) == (4, 4)
    assert report.agreement == 0.75
    assert not report.representative
    assert (report.kappa, report.false_rejects, report.corrected) == (None, None, None)
    assert any("incorrect is no random sample" in note for note in report.notes)
    assert report.score_with_overrides.correct == 7


def _vote(*verdicts: str) -> JudgeVote:
    return JudgeVote.model_validate(
        {
            "model": "m", "served_model": "", "verdict": verdicts[0], "score": None, "reason": "",
            "verdicts": verdicts, "cached": False, "input_tokens": 0, "output_tokens": 0,
            "cost_usd": 0,
        }
    )  # fmt: skip


def test_disagreements_are_of_judges_and_of_the_exact_match(tmp_path: Path) -> None:
    questions = [
        question("a-0", votes=[_vote("correct"), _vote("incorrect")]),
        question("a-1", votes=[_vote("correct", "correct", "incorrect")]),
        question("a-2", "incorrect", exact_match=True),
        question("a-3", votes=[_vote("correct")], exact_match=True),
        question("a-4"),
        question("a-5", "judge_error", exact_match=True),
    ]
    path = write_lme(tmp_path / "result-go.json", questions)
    shown = _run(path, "--only", "disagreements", "--by", "Ada", keys="s\ns\ns\n").output
    assert [f"of 3: a-{n} " in shown for n in range(6)] == [True] * 3 + [False] * 3


def test_an_answer_that_no_judge_measured_can_be_measured_by_hand(tmp_path: Path) -> None:
    questions = [question("a-0", "judge_error"), question("a-1", "not_run"), question("a-2")]
    path = write_lme(tmp_path / "result-go.json", questions)
    report = _report(path, "--by", "Ada", keys="c\nc\n")
    assert (report.selected, report.arbitrated, report.compared) == (2, 2, 1)
    assert report.score.measured == 1
    assert (report.score_with_overrides.measured, report.score_with_overrides.correct) == (2, 2)
    # The question without an answer is not wrong.
    assert report.score_with_overrides.rate is None


def test_all_answers_give_kappa_and_error_rates_but_need_no_correction(result: Path) -> None:
    report = _report(result, "--by", "Ada", keys="c\ni\ni\ni\nc\nc\nc\nc\nc\ni\n")
    judge = [n >= _WRONG for n in range(10)]
    person = [n in {0, 4, 5, 6, 7, 8} for n in range(10)]
    assert report.representative
    assert report.kappa is not None
    assert report.kappa.value == pytest.approx(cohen_kappa(judge, person))
    assert report.false_rejects is not None
    assert (report.false_rejects.errors, report.false_rejects.items) == (1, 6)
    assert report.false_accepts is not None
    assert (report.false_accepts.errors, report.false_accepts.items) == (1, 4)
    assert report.corrected is None


def test_a_part_of_all_answers_is_no_sample(result: Path) -> None:
    report = _report(result, "--by", "Ada", keys="c\ni\ni\ni\nc\nq\n")
    assert not report.representative
    assert report.kappa is None
    assert any("all is no random sample" in note for note in report.notes)


# A random sample.


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return write_lme(tmp_path / "result-go.json", _questions(40))


def _sampled(large: Path, size: int) -> str:
    return _run(large, "--sample", str(size), "--by", "A", keys="s\n" * size).output


def test_a_sample_corrects_the_score(large: Path) -> None:
    keys = "".join(f"{'c' if int(name[2:]) % 9 else 'i'}\n" for name in _names(_sampled(large, 30)))
    names = _names(_sampled(large, 30))
    report = _report(large, "--sample", "30", "--by", "Ada", keys=keys)
    judge = {name: int(name[2:]) >= _WRONG for name in names}
    person = {name: int(name[2:]) % 9 != 0 for name in names}
    right = [judge[name] for name in names if person[name]]
    wrong = [judge[name] for name in names if not person[name]]
    expected = rogan_gladen(
        36, 40, sensitivity=(sum(right), len(right)), specificity=(wrong.count(False), len(wrong))
    )
    assert report.representative
    assert report.kappa is not None
    assert (report.corrected is None) == (expected is None)
    if expected is not None and report.corrected is not None:
        assert report.corrected.value == pytest.approx(100 * expected.rate)


def _names(shown: str) -> list[str]:
    heads = [line.split() for line in shown.splitlines() if " of " in line and ": a-" in line]
    return [head[3] for head in heads]


def test_a_judge_that_errs_a_little_is_corrected(tmp_path: Path) -> None:
    questions = [question(f"a-{n}", "incorrect" if n % 2 else "correct") for n in range(100)]
    path = write_lme(tmp_path / "result-go.json", questions)
    names = _names(_sampled(path, 60))
    assert len(set(names)) == 60
    # The judge passes two answers that are wrong.
    wrongly = [name for name in names if int(name[2:]) % 2 == 0][:2]
    keys = "".join("i\n" if int(n[2:]) % 2 or n in wrongly else "c\n" for n in names)
    report = _report(path, "--sample", "60", "--by", "Ada", keys=keys)
    assert report.corrected is not None
    assert report.score.rate is not None
    assert report.corrected.low < report.corrected.value < report.score.rate.value
    assert report.false_accepts is not None
    assert report.false_accepts.errors == 2


def test_a_smaller_sample_begins_the_larger_one(large: Path) -> None:
    five, ten = (_names(_sampled(large, size)) for size in (5, 10))
    assert ten[:5] == five
    other = _run(large, "--sample", "5", "--seed", "7", "--by", "A", keys="s\n" * 5).output
    assert _names(other) != five


def test_a_sample_of_which_some_were_skipped_is_none(large: Path) -> None:
    report = _report(large, "--sample", "10", "--by", "Ada", keys="c\ns\nc\nq\n")
    assert not report.representative
    assert report.kappa is None
    assert any("1 answer of the sample skipped" in note for note in report.notes)


def test_the_beginning_of_a_sample_is_one(large: Path) -> None:
    report = _report(large, "--sample", "10", "--by", "Ada", keys="c\nc\nq\n")
    assert report.representative
    assert report.arbitrated == 2


# The table.


def _table(result: Path, *flags: str) -> tuple[Path, list[list[str]]]:
    target = result.with_name("answers.csv")
    _run(result, "--export", str(target), *flags)
    with target.open(encoding="utf-8-sig", newline="") as file:
        return target, list(csv.reader(file))


def _write(target: Path, rows: list[list[str]]) -> None:
    with target.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def test_a_table_is_written_and_read(result: Path) -> None:
    target, rows = _table(result)
    assert tuple(rows[0]) == COLUMNS
    assert rows[1] == [
        "a-0", "What of a-0?", "the a-0", "It is a-0, incorrect.", "incorrect", "", "",
    ]  # fmt: skip
    rows[1][5:] = ["Correct ", "so it is"]
    rows[3][5] = "incorrect"
    _write(target, rows)
    report = _report(result, "--import", str(target), "--by", "Ada")
    assert [(each["question"], each["verdict"], each["note"]) for each in _overrides(result)] == [
        *(("a-0", "correct", "so it is"), ("a-2", "incorrect", "")),
    ]
    assert report.arbitrated == 2
    # A second import of the same says nothing new.
    _run(result, "--import", str(target), "--by", "Ada")
    assert len(_overrides(result)) == 2


@pytest.mark.parametrize(
    "answer", ["=1+1", "+1", "-1", "@x", "\t=1", " =1", "'=1", "''-1", "\uff1d1", "007", "\r\nx"]
)
def test_a_spreadsheet_executes_no_cell(tmp_path: Path, answer: str) -> None:
    path = write_lme(tmp_path / "result-go.json", _questions(5, answer=answer))
    target, rows = _table(path)
    assert rows[1][3] == f"'{answer}"
    rows[1][5] = "correct"
    _write(target, rows)
    assert _report(path, "--import", str(target), "--by", "Ada").arbitrated == 1


@pytest.mark.parametrize("answer", ["it's", "'tis", "a=1", "", "x\ud800", "say \"x\", 'y'\n\nz  "])
def test_any_answer_is_recognized_again(tmp_path: Path, answer: str) -> None:
    path = write_lme(tmp_path / "result-go.json", _questions(5, answer=answer))
    target, rows = _table(path)
    assert not rows[1][3].startswith("''")
    rows[1][5] = "correct"
    _write(target, rows)
    assert _report(path, "--import", str(target), "--by", "Ada").arbitrated == 1


def _cell(row: int, column: int, value: str) -> Callable[[list[list[str]]], object]:
    return lambda rows: rows[row].__setitem__(column, value)


@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        (_cell(2, 0, "a-99"), "arbitration_invalid", "row 3: .*'a-99'"),
        (_cell(2, 5, "maybe"), "arbitration_invalid", "row 3: 'maybe' is not"),
        (_cell(2, 6, "a thought"), "arbitration_invalid", "row 3: a note without"),
        (_cell(0, 5, "verdicts"), "arbitration_invalid", "row 1: the columns"),
        (_cell(2, 0, "a-0"), "arbitration_invalid", "row 3: 'a-0' is in row 2 too"),
        (_cell(2, 3, "Something else"), "other_answer", "row 3 has another answer"),
        (lambda rows: rows[2].append("more"), "arbitration_invalid", "row 3: 8 cells"),
        (lambda rows: rows[2].pop(), "arbitration_invalid", "row 3: 6 cells"),
        (lambda rows: rows.clear(), "arbitration_invalid", "row 1: the columns are missing"),
    ],
)
def test_a_table_with_anything_else_changed_is_refused_whole(
    result: Path, damage: Callable[[list[list[str]]], object], code: str, message: str
) -> None:
    target, rows = _table(result)
    rows[1][5] = "correct"
    damage(rows)
    _write(target, rows)
    with pytest.raises(UsageError, match=message) as caught:
        _run(result, "--import", str(target), "--by", "Ada")
    assert caught.value.code == code
    assert not result.with_name(FILE_NAME).exists()


@pytest.mark.parametrize(
    ("content", "message"), [(b"\xff\xfe", "not UTF-8"), (b'id,"', "line 1"), (None, "No such")]
)
def test_a_file_that_is_no_table(result: Path, content: bytes | None, message: str) -> None:
    target = result.with_name("answers.csv")
    if content is not None:
        target.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        _run(result, "--import", str(target), "--by", "Ada")
    assert caught.value.code == "arbitration_invalid"


# The stored verdicts.


def _damaged(result: Path, damage: Callable[[str], str]) -> None:
    file = result.with_name(FILE_NAME)
    file.write_text(damage(file.read_text()))


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda text: text.replace('"correct"', '"maybe"'), "overrides_invalid"),
        (lambda text: text.replace("lme-override@1", "lme-override@2"), "overrides_invalid"),
        (lambda text: text[5:], "overrides_invalid"),
        (lambda text: text.replace('"a-0"', '"a-99"'), "overrides_invalid"),
        (lambda text: text.replace(answer_digest(_questions()[0]), "0" * 64), "other_answer"),
    ],
)
def test_damaged_verdicts_are_refused(
    result: Path, damage: Callable[[str], str], code: str
) -> None:
    _run(result, "--by", "Ada", keys="c\nc\nq\n")
    _damaged(result, damage)
    with pytest.raises(UsageError, match="line 1") as caught:
        _run(result)
    assert caught.value.code == code


def test_a_line_that_was_cut_short_is_asked_again(result: Path) -> None:
    _run(result, "--by", "Ada", keys="c\nc\nq\n")
    _damaged(result, lambda text: text[:-20])
    report = _report(result, "--by", "Ada", keys="i\n")
    assert report.arbitrated == 2
    assert [each["verdict"] for each in _overrides(result)] == ["correct", "incorrect"]


def test_a_last_line_without_its_end_is_kept(result: Path) -> None:
    _run(result, "--by", "Ada", keys="c\nc\nq\n")
    _damaged(result, str.rstrip)
    assert _report(result, "--by", "Ada", keys="i\n").arbitrated == 3
    assert [each["verdict"] for each in _overrides(result)] == ["correct", "correct", "incorrect"]


def test_the_last_verdict_counts(result: Path) -> None:
    target, rows = _table(result)
    for verdict in ("correct", "incorrect"):
        rows[1][5] = verdict
        _write(target, rows)
        report = _report(result, "--import", str(target), "--by", "Ada")
    assert report.overruled == []
    assert len(_overrides(result)) == 2


def test_verdicts_on_another_sdk_do_not_count(result: Path) -> None:
    _run(result, "--by", "Ada", keys="c\nq\n")
    other = write_lme(result.with_name("result-ts.json"), _questions(answer="Other."), sdk="ts")
    assert _report(other).arbitrated == 0
    assert _report(result).arbitrated == 1


@pytest.fixture
def _secret() -> Iterator[None]:
    redaction.hide(_SECRET)
    yield
    redaction.forget()


@pytest.mark.usefixtures("_secret")
def test_a_secret_is_masked_in_verdicts_and_tables(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "result-go.json", _questions(5))
    # A result of a process that did not know the secret.
    plain = path.read_text().replace("It is a-1, incorrect.", f"It is {_SECRET}.")
    path.write_text(plain)
    shown = _run(path, "--by", "Ada", keys=f"c {_SECRET}\nq\n").output
    assert _SECRET not in path.with_name(FILE_NAME).read_text() + shown
    target, rows = _table(path)
    assert _SECRET not in target.read_text()
    rows[2][5] = "correct"
    _write(target, rows)
    assert _report(path, "--import", str(target), "--by", "Ada").arbitrated == 2


def test_an_abstention_stays_one(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "result-go.json", [question("a-0", "abstain_incorrect")])
    report = _report(path, "--by", "Ada", keys="c\n")
    assert report.score_with_overrides.correct == 1


# In a review.


def test_a_review_uses_overrides_only_if_asked(tmp_path: Path) -> None:
    before = write_lme(tmp_path / "before" / "result-go.json", _questions())
    after = write_lme(tmp_path / "after" / "result-go.json", _questions())
    _run(after, "--by", "Ada", keys="c\nc\nq\n")
    compare = ["lme", "review", "--before", str(before), "--after", str(after), "--json", "-"]
    runner = CliRunner()
    plain, overruled = (
        json.loads(runner.invoke(cli, [*compare, *flags], standalone_mode=False).stdout)
        for flags in ([], ["--overrides"])
    )
    assert plain["fixes"] == []
    assert plain["after"]["overridden"] == 0
    assert [flip["question"] for flip in overruled["fixes"]] == ["a-0", "a-1"]
    assert overruled["after"]["overridden"] == 2
    assert "after: 2 verdicts by a person" in overruled["reasons"]


# The command line.


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--only", "incorrect", "--sample", "3"], "--only or --sample"),
        (["--export", "a.csv", "--import", "b.csv"], "--export or --import"),
        (["--import", "b.csv"], "--by NAME"),
    ],
)
def test_flags_that_contradict_each_other(result: Path, flags: list[str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        _run(result, *flags)


def test_a_sample_larger_than_the_result(result: Path) -> None:
    with pytest.raises(UsageError) as caught:
        _run(result, "--sample", "11")
    assert caught.value.code == "bad_selection"


def test_no_answer_to_show(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "result-go.json", [question("a-0")])
    with pytest.raises(NothingSelectedError):
        _run(path, "--only", "incorrect")
    with pytest.raises(MemconformError) as caught:
        _run(write_lme(path, [question("a-0", "not_run")]))
    assert caught.value.exit_code is ExitCode.NOTHING_SELECTED


def test_the_result_stays_readable(result: Path) -> None:
    _run(result, "--by", "Ada", keys="c\ni\nq\n")
    assert read_lme_result(result).questions == _questions()
