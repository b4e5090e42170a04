"""Verdicts of a person: from a table, and as they are stored."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from memconform import redaction
from memconform.cli.main import cli
from memconform.errors import UsageError
from memconform.replay.arbitration_csv import COLUMNS
from memconform.replay.overrides import FILE_NAME, answer_digest
from tests.unit.lme_arbitrations import (
    arbitration_of,
    judged_questions,
    run_arbitrate,
    stored_overrides,
)
from tests.unit.lme_results import question, write_lme

_SECRET = "canary-0123456789"  # noqa: S105 - one that must not leak


@pytest.fixture
def result(tmp_path: Path) -> Path:
    return write_lme(tmp_path / "result-go.json", judged_questions())


# The table.


def _table(result: Path, *flags: str) -> tuple[Path, list[list[str]]]:
    target = result.with_name("answers.csv")
    run_arbitrate(result, "--export", str(target), *flags)
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
    report = arbitration_of(result, "--import", str(target), "--by", "Ada")
    assert [
        (each["question"], each["verdict"], each["note"]) for each in stored_overrides(result)
    ] == [
        *(("a-0", "correct", "so it is"), ("a-2", "incorrect", "")),
    ]
    assert report.arbitrated == 2
    # A second import of the same says nothing new.
    run_arbitrate(result, "--import", str(target), "--by", "Ada")
    assert len(stored_overrides(result)) == 2


@pytest.mark.parametrize(
    "answer", ["=1+1", "+1", "-1", "@x", "\t=1", " =1", "'=1", "''-1", "\uff1d1", "007", "\r\nx"]
)
def test_a_spreadsheet_executes_no_cell(tmp_path: Path, answer: str) -> None:
    path = write_lme(tmp_path / "result-go.json", judged_questions(5, answer=answer))
    target, rows = _table(path)
    assert rows[1][3] == f"'{answer}"
    rows[1][5] = "correct"
    _write(target, rows)
    assert arbitration_of(path, "--import", str(target), "--by", "Ada").arbitrated == 1


@pytest.mark.parametrize("answer", ["it's", "'tis", "a=1", "", "x\ud800", "say \"x\", 'y'\n\nz  "])
def test_any_answer_is_recognized_again(tmp_path: Path, answer: str) -> None:
    path = write_lme(tmp_path / "result-go.json", judged_questions(5, answer=answer))
    target, rows = _table(path)
    assert not rows[1][3].startswith("''")
    rows[1][5] = "correct"
    _write(target, rows)
    assert arbitration_of(path, "--import", str(target), "--by", "Ada").arbitrated == 1


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
        run_arbitrate(result, "--import", str(target), "--by", "Ada")
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
        run_arbitrate(result, "--import", str(target), "--by", "Ada")
    assert caught.value.code == "arbitration_invalid"


@pytest.mark.parametrize("flag", ["--export", "--json"])
@pytest.mark.parametrize("name", ["result-go.json", FILE_NAME])
def test_no_output_replaces_the_result_or_its_verdicts(result: Path, flag: str, name: str) -> None:
    run_arbitrate(result, "--by", "Ada", keys="c\nq\n")
    before = [result.read_bytes(), *stored_overrides(result)]
    with pytest.raises(UsageError) as caught:
        run_arbitrate(result, flag, str(result.with_name(name)))
    assert caught.value.code == "bad_export"
    assert [result.read_bytes(), *stored_overrides(result)] == before


def test_a_table_that_somebody_fills_in_is_not_replaced(result: Path) -> None:
    target, rows = _table(result)
    rows[1][5] = "correct"
    _write(target, rows)
    with pytest.raises(UsageError, match="would be replaced"):
        run_arbitrate(result, "--export", str(target))
    assert arbitration_of(result, "--import", str(target), "--by", "Ada").arbitrated == 1


def test_a_table_may_go_to_standard_output(result: Path) -> None:
    shown = CliRunner().invoke(
        cli, ["lme", "arbitrate", str(result), "--export", "-"], standalone_mode=False
    )
    assert len(list(csv.reader(shown.stdout.lstrip("\ufeff").splitlines()))) == 11


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
        (lambda text: text.replace(answer_digest(judged_questions()[0]), "0" * 64), "other_answer"),
    ],
)
def test_damaged_verdicts_are_refused(
    result: Path, damage: Callable[[str], str], code: str
) -> None:
    run_arbitrate(result, "--by", "Ada", keys="c\nc\nq\n")
    _damaged(result, damage)
    with pytest.raises(UsageError, match="line 1") as caught:
        run_arbitrate(result)
    assert caught.value.code == code


def test_a_line_that_was_cut_short_is_asked_again(result: Path) -> None:
    run_arbitrate(result, "--by", "Ada", keys="c\nc\nq\n")
    _damaged(result, lambda text: text[:-20])
    report = arbitration_of(result, "--by", "Ada", keys="i\n")
    assert report.arbitrated == 2
    assert [each["verdict"] for each in stored_overrides(result)] == ["correct", "incorrect"]


def test_a_last_line_without_its_end_is_kept(result: Path) -> None:
    run_arbitrate(result, "--by", "Ada", keys="c\nc\nq\n")
    _damaged(result, str.rstrip)
    assert arbitration_of(result, "--by", "Ada", keys="i\n").arbitrated == 3
    assert [each["verdict"] for each in stored_overrides(result)] == [
        "correct",
        "correct",
        "incorrect",
    ]


def test_the_last_verdict_counts(result: Path) -> None:
    target, rows = _table(result)
    for verdict in ("correct", "incorrect"):
        rows[1][5] = verdict
        _write(target, rows)
        report = arbitration_of(result, "--import", str(target), "--by", "Ada")
    assert report.overruled == []
    assert len(stored_overrides(result)) == 2


def test_verdicts_on_another_sdk_do_not_count(result: Path) -> None:
    run_arbitrate(result, "--by", "Ada", keys="c\nq\n")
    other = write_lme(
        result.with_name("result-ts.json"), judged_questions(answer="Other."), sdk="ts"
    )
    assert arbitration_of(other).arbitrated == 0
    assert arbitration_of(result).arbitrated == 1


@pytest.fixture
def _secret() -> Iterator[None]:
    redaction.hide(_SECRET)
    yield
    redaction.forget()


@pytest.mark.usefixtures("_secret")
def test_a_secret_is_masked_in_verdicts_and_tables(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "result-go.json", judged_questions(5))
    # A result of a process that did not know the secret.
    plain = path.read_text().replace("It is a-1, incorrect.", f"It is {_SECRET}.")
    path.write_text(plain)
    shown = run_arbitrate(path, "--by", "Ada", keys=f"c {_SECRET}\nq\n").output
    assert _SECRET not in path.with_name(FILE_NAME).read_text() + shown
    target, rows = _table(path)
    assert _SECRET not in target.read_text()
    rows[2][5] = "correct"
    _write(target, rows)
    assert arbitration_of(path, "--import", str(target), "--by", "Ada").arbitrated == 2


def test_an_abstention_stays_one(tmp_path: Path) -> None:
    path = write_lme(tmp_path / "result-go.json", [question("a-0", "abstain_incorrect")])
    report = arbitration_of(path, "--by", "Ada", keys="c\n")
    assert report.score_with_overrides.correct == 1
