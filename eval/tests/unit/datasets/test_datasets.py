import hashlib
import json
from pathlib import Path

import pytest

from memconform.datasets import jsonl
from memconform.datasets.invisible import hidden_characters
from memconform.datasets.question import Dataset
from memconform.datasets.registry import open_dataset, shipped
from memconform.datasets.selection import Selection, select
from memconform.errors import NothingSelectedError, UsageError


def _write(folder: Path, *lines: str | bytes) -> Path:
    path = folder / "set.jsonl"
    encoded = (line.encode() if isinstance(line, str) else line for line in lines)
    path.write_bytes(b"\n".join(encoded) + b"\n")
    return path


def _row(number: int, **more: object) -> str:
    return json.dumps({"id": f"q{number}", "question": f"question {number}?", **more})


def _numbered(folder: Path, count: int) -> Dataset:
    tags = (["even"], ["odd"])
    return open_dataset(str(_write(folder, *(_row(n, tags=tags[n % 2]) for n in range(count)))))


def test_rows_are_read_in_order_again_and_again(tmp_path: Path) -> None:
    dataset = _numbered(tmp_path, 5)
    assert (dataset.size, dataset.name) == (5, "set")
    for _ in range(2):
        assert [question.id for question in dataset] == [f"q{n}" for n in range(5)]


def test_blank_lines_and_a_byte_order_mark_are_harmless(tmp_path: Path) -> None:
    path = _write(tmp_path, b"\xef\xbb\xbf" + _row(1).encode(), "", "  ", _row(2))
    assert [question.id for question in open_dataset(str(path))] == ["q1", "q2"]


def test_comments_are_skipped_wherever_they_stand(tmp_path: Path) -> None:
    lines = ("# licence: CC0", _row(1), '#{"id": "q9", "question": "no row?"}', "  # ä", "\t", "#")
    path = _write(tmp_path, b"\xef\xbb\xbf" + lines[0].encode(), *lines[1:], _row(2))
    dataset = open_dataset(str(path))
    assert (dataset.size, [question.id for question in dataset]) == (2, ["q1", "q2"])
    assert dataset.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    [row] = list(select(dataset, Selection(ids=("q2",))))
    assert row.id == "q2"


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    path = _write(tmp_path, "# one", "", _row(1), "# four", "{", _row(1))
    with pytest.raises(UsageError, match="2 invalid lines") as caught:
        open_dataset(str(path))
    assert f"{path}:5: bad JSON" in caught.value.excerpt
    assert f"{path}:6: id 'q1' is also on line 3" in caught.value.excerpt


def test_a_comment_after_a_row_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_dataset(str(_write(tmp_path, f"{_row(1)} # a note", "// nor this", "# \n".strip())))
    assert ":1: bad JSON" in caught.value.excerpt
    assert ":2: bad JSON" in caught.value.excerpt
    assert ":3: " not in caught.value.excerpt


def test_a_comment_is_utf8_too(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_dataset(str(_write(tmp_path, b"# caf\xe9", _row(1))))
    assert ":1: not UTF-8 at byte 5" in caught.value.excerpt


def test_a_file_of_comments_has_no_question(tmp_path: Path) -> None:
    dataset = open_dataset(str(_write(tmp_path, "# to be written", "")))
    assert dataset.size == 0
    with pytest.raises(NothingSelectedError):
        select(dataset, Selection())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "x"', "bad JSON at column"),
        ("[1]", "a row must be a JSON object, not list"),
        ("null", "a row must be a JSON object, not NoneType"),
        ('{"id": "x"}', "question: missing"),
        (_row(9, expected_substring=["a"]), "did you mean 'expected_substrings'?"),
        (_row(9, expected_substrings="a"), "expected_substrings"),
        (_row(9, expected_substrings=[""]), "must not be blank"),
        (_row(9, match="word"), "match"),
        (_row(9, question_date="May 8"), "neither YYYY-MM-DD nor"),
        (_row(1), "id 'q1' is also on line 1"),
        (b'{"id": "\xff"}', "not UTF-8 at byte 8"),
        ('{"id": "\\ud800", "question": "x?"}', "contains an unpaired surrogate"),
        ('{"id": ' + "[" * 100_000, "nests too deeply"),
        (_row(9)[:-1] + ', "id": "q8"}', "the key 'id' occurs twice in one object, at column"),
        (
            _row(9)[:-1] + ', "\\u0069d": "q8"}',
            "the key 'id' occurs twice in one object, at column",
        ),
        (_row(9)[:-1] + ', "match": NaN}', "NaN is not JSON"),
        (
            _row(9, expected_substrings=["\u200b"]),
            "must not be blank: '\\u200b' has no visible character",
        ),
        (_row(9, expected_substrings=["\u2800 \ufe0f"]), "must not be blank"),
        (_row(9, question="\u3164"), "must not be blank"),
        (_row(9, cluster=""), "cluster: must not be blank"),
        (_row(9, cluster=3), "cluster: "),
        (_row(9, id="q1\u200b"), "id 'q1\\u200b' looks the same as 'q1' on line 1"),
        (_row(9, id="q1 "), "looks the same as 'q1' on line 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str | bytes, says: str) -> None:
    path = _write(tmp_path, _row(1), line, _row(2))
    with pytest.raises(UsageError) as caught:
        open_dataset(str(path))
    assert f"{path}:2: " in caught.value.excerpt
    assert says in caught.value.excerpt


def test_a_cluster_that_only_looks_like_another_is_named(tmp_path: Path) -> None:
    """Its question would count as independent of the others of the conversation."""
    rows = (
        _row(1, cluster="talk"),
        _row(2, cluster="talk"),
        _row(3, cluster="talk\u200b"),
        _row(4),
    )
    with pytest.raises(UsageError, match="1 invalid line") as caught:
        open_dataset(str(_write(tmp_path, *rows)))
    assert ":3: cluster 'talk\\u200b' looks the same as 'talk' on line 1" in caught.value.excerpt
    good = open_dataset(str(_write(tmp_path, *rows[:2], rows[3])))
    assert [question.cluster for question in good] == ["talk", "talk", None]


def test_ids_that_differ_in_unicode_normalization_only_are_one_id_twice(tmp_path: Path) -> None:
    path = _write(tmp_path, _row(1, id="caf\u00e9"), _row(2, id="cafe\u0301"), _row(3, id="cafe"))
    with pytest.raises(UsageError, match="1 invalid line") as caught:
        open_dataset(str(path))
    assert f"{path}:2: id 'cafe\\u0301' looks the same as 'caf\\xe9'" in caught.value.excerpt


def test_emoji_and_joined_scripts_are_seen(tmp_path: Path) -> None:
    expected = [
        "\U0001f469\u200d\U0001f4bb",
        "\u0646\u0645\u06cc\u200c\u062e",
        "\U0001fae8",
        "\u2764\ufe0f",
    ]
    path = _write(tmp_path, _row(1, expected_substrings=expected))
    assert [question.expected_substrings for question in open_dataset(str(path))] == [
        tuple(expected)
    ]
    assert not any(hidden_characters(text) for text in expected)


def test_of_a_line_that_is_all_fault_little_is_shown(tmp_path: Path) -> None:
    path = _write(tmp_path, *[_row(n, **{"x" * 1_000_000: 1}) for n in range(20)])
    with pytest.raises(UsageError, match="20 invalid lines") as caught:
        open_dataset(str(path))
    assert len(caught.value.excerpt) < 5_000


def test_all_bad_lines_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 invalid lines") as caught:
        open_dataset(str(_write(tmp_path, "{", _row(1), "{")))
    assert ":1: " in caught.value.excerpt
    assert ":3: " in caught.value.excerpt


def test_an_unknown_dataset_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="smok") as caught:
        open_dataset("smok")
    assert caught.value.hint == "did you mean 'smoke'?"


def test_limit_spreads_over_the_set(tmp_path: Path) -> None:
    chosen = select(_numbered(tmp_path, 10), Selection(limit=4))
    assert [question.id for question in chosen] == ["q0", "q2", "q5", "q7"]
    assert chosen.size == 4


def test_ids_and_tags_narrow_together(tmp_path: Path) -> None:
    dataset = _numbered(tmp_path, 10)
    chosen = select(dataset, Selection(ids=("q1", "q2", "q4"), tags=("even",)))
    assert [question.id for question in chosen] == ["q2", "q4"]


def test_a_limit_above_the_size_takes_all(tmp_path: Path) -> None:
    assert select(_numbered(tmp_path, 3), Selection(limit=9)).rows is None


def test_an_unknown_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no question 'q33'"):
        select(_numbered(tmp_path, 10), Selection(ids=("q3", "q33")))


def test_nothing_selected_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError) as caught:
        select(_numbered(tmp_path, 10), Selection(tags=("evn",)))
    assert caught.value.hint == "did you mean 'even'?"
    with pytest.raises(NothingSelectedError):
        select(open_dataset(str(_write(tmp_path, ""))), Selection())


@pytest.mark.parametrize("name", shipped())
def test_no_expected_string_of_a_shipped_set_is_in_its_question(name: str) -> None:
    for question in open_dataset(name):
        for expected in question.expected_substrings:
            assert expected.casefold() not in question.question.casefold()


def test_smoke_has_twenty_questions() -> None:
    assert open_dataset("smoke").size == 20


def test_a_small_dataset_stays_what_it_was_when_it_was_read(tmp_path: Path) -> None:
    dataset = _numbered(tmp_path, 5)
    before = list(dataset)
    dataset.path.unlink()
    assert [question.question for question in before] == [f"question {n}?" for n in range(5)]
    assert list(dataset) == before


def test_a_large_dataset_that_changes_under_way_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "_CACHED_BYTES", 64)
    dataset = _numbered(tmp_path, 5)
    assert len(list(dataset)) == 5
    dataset.path.write_text(dataset.path.read_text().replace("question 3?", "question 4?"))
    with pytest.raises(UsageError, match="changed while it was being used"):
        list(dataset)
    dataset.path.unlink()
    with pytest.raises(UsageError, match="changed while it was being used"):
        list(dataset)
