"""A person overrules the judge at the terminal, and what the report makes of it."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from memconform.cli.main import cli
from memconform.errors import ExitCode, MemconformError, NothingSelectedError, UsageError
from memconform.replay.overrides import FILE_NAME, answer_digest
from memconform.replay.stored_results import read_lme_result
from memconform.scoring.judge.records import JudgeVote
from memconform.stats.prevalence import rogan_gladen
from memconform.stats.raters import cohen_kappa
from tests.unit.lme_arbitrations import (
    WRONG,
    arbitration_of,
    judged_questions,
    run_arbitrate,
    stored_overrides,
)
from tests.unit.lme_results import question, write_lme


@pytest.fixture
def result(tmp_path: Path) -> Path:
    return write_lme(tmp_path / "result-go.json", judged_questions())


# The terminal.


def test_verdicts_are_kept_beside_the_result(result: Path) -> None:
    before = result.read_bytes()
    report = arbitration_of(result, "--by", "Ada", keys="c the date is right\ni\nx\ns\nq\n")
    first, second = stored_overrides(result)
    assert (first["question"], first["verdict"], first["note"]) == (
        *("a-0", "correct", "the date is right"),
    )
    assert (first["by"], first["judge"], first["sdk"]) == ("Ada", "incorrect", "go")
    assert first["answer_sha256"] == answer_digest(judged_questions()[0])
    assert (second["question"], second["verdict"]) == ("a-1", "incorrect")
    assert result.read_bytes() == before
    assert (report.selected, report.arbitrated, report.by) == (10, 2, ["Ada"])
    assert [each.question for each in report.overruled] == ["a-0"]
    assert report.score.correct == 6
    assert report.score_with_overrides.correct == 7


def test_a_screen_has_question_reference_answer_and_reason(result: Path) -> None:
    shown = run_arbitrate(result, "--by", "Ada", keys="q\n").output
    for text in ("What of a-0?", "the a-0", "It is a-0, incorrect.", "as it says", "1 of 10"):
        assert text in shown
    assert "What of a-1?" not in shown


def test_it_continues_where_it_stopped(result: Path) -> None:
    run_arbitrate(result, "--by", "Ada", keys="c\nc\nq\n")
    shown = run_arbitrate(result, "--by", "Ben", keys="i\n").output
    assert "1 of 8: a-2" in shown
    assert [(each["question"], each["by"]) for each in stored_overrides(result)] == [
        *(("a-0", "Ada"), ("a-1", "Ada"), ("a-2", "Ben")),
    ]


def test_the_end_of_the_input_quits(result: Path) -> None:
    assert arbitration_of(result, "--by", "Ada", keys="c\n").arbitrated == 1


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
    assert [each["question"] for each in stored_overrides(result)] == ["a-0"]


def test_without_a_name_it_only_reports(result: Path) -> None:
    report = arbitration_of(result, keys="c\nc\n")
    assert report.arbitrated == 0
    assert report.agreement is None
    assert not result.with_name(FILE_NAME).exists()


def test_hostile_text_stays_behind_its_mark(tmp_path: Path) -> None:
    answer = "a\n::error::b\x1b[2J\n1 of 10: forged"
    path = write_lme(tmp_path / "result-go.json", judged_questions(answer=answer))
    shown = run_arbitrate(path, "--by", "Ada", keys="q\n").output
    assert "\x1b" not in shown
    assert "::error" not in shown
    assert "\n1 of 10: forged" not in shown


# Which answers.


def test_only_the_answers_that_the_judge_fails(result: Path) -> None:
    report = arbitration_of(result, "--only", "incorrect", "--by", "Ada", keys="c\ni\ni\ni\n")
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
    shown = run_arbitrate(path, "--only", "disagreements", "--by", "Ada", keys="s\ns\ns\n").output
    assert [f"of 3: a-{n} " in shown for n in range(6)] == [True] * 3 + [False] * 3


def test_an_answer_that_no_judge_measured_can_be_measured_by_hand(tmp_path: Path) -> None:
    questions = [question("a-0", "judge_error"), question("a-1", "not_run"), question("a-2")]
    path = write_lme(tmp_path / "result-go.json", questions)
    report = arbitration_of(path, "--by", "Ada", keys="c\nc\n")
    assert (report.selected, report.arbitrated, report.compared) == (2, 2, 1)
    assert report.score.measured == 1
    assert (report.score_with_overrides.measured, report.score_with_overrides.correct) == (2, 2)
    # The question without an answer is not wrong.
    assert report.score_with_overrides.rate is None


def test_all_answers_give_kappa_and_error_rates_but_need_no_correction(result: Path) -> None:
    report = arbitration_of(result, "--by", "Ada", keys="c\ni\ni\ni\nc\nc\nc\nc\nc\ni\n")
    judge = [n >= WRONG for n in range(10)]
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
    report = arbitration_of(result, "--by", "Ada", keys="c\ni\ni\ni\nc\nq\n")
    assert not report.representative
    assert report.kappa is None
    assert any("all is no random sample" in note for note in report.notes)


# A random sample.


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return write_lme(tmp_path / "result-go.json", judged_questions(40))


def _sampled(large: Path, size: int) -> str:
    return run_arbitrate(large, "--sample", str(size), "--by", "A", keys="s\n" * size).output


def test_a_judge_no_better_than_chance_corrects_nothing(large: Path) -> None:
    names = _names(_sampled(large, 30))
    keys = "".join("c\n" if int(name[2:]) % 9 else "i\n" for name in names)
    report = arbitration_of(large, "--sample", "30", "--by", "Ada", keys=keys)
    assert report.representative
    assert report.kappa is not None
    assert report.corrected is None
    assert any("not clearly better than chance" in note for note in report.notes)


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
    report = arbitration_of(path, "--sample", "60", "--by", "Ada", keys=keys)
    assert report.corrected is not None
    assert report.score.rate is not None
    assert report.corrected.low < report.corrected.value < report.score.rate.value
    passed = sum(int(name[2:]) % 2 == 0 for name in names)
    expected = rogan_gladen(
        50, 100, sensitivity=(passed - 2, passed - 2), specificity=(60 - passed, 62 - passed)
    )
    assert expected is not None
    assert report.corrected.value == pytest.approx(100 * expected.rate)
    assert report.false_accepts is not None
    assert (report.false_accepts.errors, report.false_accepts.items) == (2, 62 - passed)


def test_a_smaller_sample_begins_the_larger_one(large: Path) -> None:
    five, ten = (_names(_sampled(large, size)) for size in (5, 10))
    assert ten[:5] == five
    other = run_arbitrate(large, "--sample", "5", "--seed", "7", "--by", "A", keys="s\n" * 5).output
    assert _names(other) != five


def test_a_sample_of_which_some_were_skipped_is_none(large: Path) -> None:
    report = arbitration_of(large, "--sample", "10", "--by", "Ada", keys="c\ns\nc\nq\n")
    assert not report.representative
    assert report.kappa is None
    assert any("a sample judged in part" in note for note in report.notes)


def test_a_sample_judged_in_part_is_none(large: Path) -> None:
    """Its verdicts may be of answers that were chosen because the judge rejected them."""
    report = arbitration_of(large, "--sample", "10", "--by", "Ada", keys="c\nc\nq\n")
    assert not report.representative
    assert report.arbitrated == 2
    assert report.kappa is None


# In a review.


def test_a_review_uses_overrides_only_if_asked(tmp_path: Path) -> None:
    before = write_lme(tmp_path / "before" / "result-go.json", judged_questions())
    after = write_lme(tmp_path / "after" / "result-go.json", judged_questions())
    run_arbitrate(after, "--by", "Ada", keys="c\nc\nq\n")
    compare = ["diff", str(before), str(after), "--json", "-"]
    runner = CliRunner()
    plain, overruled = (
        json.loads(runner.invoke(cli, [*compare, *flags], standalone_mode=False).stdout)
        for flags in ([], ["--overrides"])
    )
    assert plain["fixes"] == []
    assert plain["after"]["overridden"] == 0
    assert [flip["question"] for flip in overruled["fixes"]] == ["a-0", "a-1"]
    assert overruled["after"]["overridden"] == 2
    assert overruled["reasons"] == [
        "after: 2 verdicts by a person",
        "people overruled the judge of one result only, which may be all that changed",
        "2 flips with the same answer: only the verdict changed",
    ]


def test_an_overruled_abstention_is_one_in_a_review(tmp_path: Path) -> None:
    files = [
        write_lme(tmp_path / name / "result-go.json", [question("a-0", "abstain_incorrect")])
        for name in ("before", "after")
    ]
    run_arbitrate(files[1], "--by", "Ada", keys="c\n")
    flags = [str(files[0]), str(files[1]), "--overrides", "--json", "-"]
    ended = CliRunner().invoke(cli, ["diff", *flags], standalone_mode=False)
    [fix] = json.loads(ended.stdout)["fixes"]
    assert (fix["before"], fix["after"]) == ("abstain_incorrect", "abstain_correct")


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
        run_arbitrate(result, *flags)


def test_a_sample_larger_than_the_result(result: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run_arbitrate(result, "--sample", "11")
    assert caught.value.code == "bad_selection"


def test_no_answer_to_show(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "result-go.json", [question("a-0")])
    with pytest.raises(NothingSelectedError):
        run_arbitrate(path, "--only", "incorrect")
    with pytest.raises(MemconformError) as caught:
        run_arbitrate(write_lme(path, [question("a-0", "not_run")]))
    assert caught.value.exit_code is ExitCode.NOTHING_SELECTED


def test_the_result_stays_readable(result: Path) -> None:
    run_arbitrate(result, "--by", "Ada", keys="c\ni\nq\n")
    assert read_lme_result(result).questions == judged_questions()
