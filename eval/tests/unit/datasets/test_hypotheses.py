"""Stored answers, and logs of their evaluation: what is read, and what is refused."""

import json
from pathlib import Path

import pytest

from memconform.datasets.hypotheses import read_hypotheses, read_label_log
from memconform.errors import UsageError


def _file(folder: Path, *rows: object) -> Path:
    path = folder / "hypotheses.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def _answer(name: str, text: object) -> dict[str, object]:
    return {"question_id": name, "hypothesis": text}


def test_answers_are_read_in_their_order_with_other_keys_ignored(tmp_path: Path) -> None:
    path = _file(tmp_path, _answer("b", "two"), _answer("a", "one") | {"n_tokens": 3})
    hypotheses = read_hypotheses(path)
    assert list(hypotheses.answers.items()) == [("b", "two"), ("a", "one")]
    assert len(hypotheses.sha256) == 64


def test_a_json_array_and_blank_lines_are_read_as_the_released_script_reads_them(
    tmp_path: Path,
) -> None:
    array = tmp_path / "array.json"
    array.write_text(json.dumps([_answer("a", "one")], indent=1))
    assert read_hypotheses(array).answers == {"a": "one"}
    lines = tmp_path / "lines.jsonl"
    lines.write_text(f"\n{json.dumps(_answer('a', 'one'))}\n\n")
    assert read_hypotheses(lines).answers == {"a": "one"}


def test_a_repeated_answer_counts_once_and_is_reported(tmp_path: Path) -> None:
    hypotheses = read_hypotheses(_file(tmp_path, *[_answer("a", "one")] * 2))
    assert hypotheses.answers == {"a": "one"}
    assert hypotheses.repeated == ["a"]


def test_two_answers_to_one_question_are_refused_with_both_lines(tmp_path: Path) -> None:
    path = _file(tmp_path, _answer("a", "one"), _answer("b", "x"), _answer("a", "two"))
    with pytest.raises(UsageError, match="line 3: 'a' has another answer than on line 1"):
        read_hypotheses(path)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"question_id": "a"}', "line 2: 'hypothesis' is missing"),
        ('{"question_id": "a", "hypothesis": null}', "line 2: 'hypothesis' must be text"),
        ('{"question_id": 7, "hypothesis": "x"}', "line 2: 'question_id' must be text"),
        ('{"question_id": "a", "hypothesis": "x"', "line 2: "),
        ('{"question_id": "a", "question_id": "b", "hypothesis": "x"}', "line 2: the key"),
        ('["a", "x"]', "line 2 is not a JSON object"),
        ('{"question_id": "a", "hypothesis": "\\ud800"}', "line 2 contains an unpaired surrogate"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, fault: str) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(f'{{"question_id": "z", "hypothesis": "ok"}}\n{line}\n')
    with pytest.raises(UsageError, match=fault) as caught:
        read_hypotheses(path)
    assert caught.value.code == "dataset_invalid"


def test_a_file_without_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no answer"):
        read_hypotheses(_file(tmp_path))


def _label(name: str, label: object, model: object = "m") -> dict[str, object]:
    return _answer(name, "x") | {"autoeval_label": {"model": model, "label": label}}


def test_a_log_holds_labels_and_their_models(tmp_path: Path) -> None:
    log = read_label_log(_file(tmp_path, _label("a", True), _label("b", False, "n")))  # noqa: FBT003
    assert log.labels == {"a": True, "b": False}
    assert log.models == ["m", "n"]


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([_answer("a", "x")], "line 1: 'a' has no autoeval_label"),
        ([_label("a", "yes")], "line 1: 'a' has no autoeval_label"),
        ([_label("a", True, None)], "line 1: 'model' must be text"),  # noqa: FBT003
        ([_label("a", True), _label("a", True)], "line 2: 'a' occurs twice"),  # noqa: FBT003
        ([], "holds no label"),
    ],
)
def test_a_bad_log_is_refused(tmp_path: Path, rows: list[object], fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        read_label_log(_file(tmp_path, *rows))
