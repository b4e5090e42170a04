"""The project's own question sets as benchmarks."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from memconform.datasets.benchmarks import open_benchmark
from memconform.datasets.haystacks import Haystack
from memconform.errors import UsageError


def _set(folder: Path, *rows: dict[str, Any], documents: tuple[str, ...] = ("a/b.md",)) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps({"question": "Who?"} | row) + "\n" for row in rows))
    for name in documents:
        document = folder / "mine" / "corpus" / name
        document.parent.mkdir(parents=True, exist_ok=True)
        document.write_text(f"text of {name}", encoding="utf-8")
    return path


def _only(path: Path, name: str | None = None) -> Haystack:
    [haystack] = open_benchmark(path, name, {})
    return haystack


def test_a_question_set_is_a_haystack_of_its_documents(tmp_path: Path) -> None:
    row = {
        "id": "q1",
        "question_date": "2025-03-20",
        "evidence": ["a/b.md", "a/b.md"],
        "tags": ["facts", "two"],
        "reference_answer": "Ann.",
        "expected_substrings": ["Ann"],
    }
    path = _set(tmp_path, row, documents=("a/b.md", "c.md", "_hidden.md", ".git/x"))
    haystack = _only(path)
    assert haystack.id == "mine"
    assert [(item.id, item.text) for item in haystack.items] == [
        ("a/b.md", "text of a/b.md"),
        ("c.md", "text of c.md"),
    ]
    [query] = haystack.queries
    assert (query.id, query.category, query.tags) == ("q1", "facts", ("facts", "two"))
    assert (query.gold, query.answers) == (("a/b.md",), ("Ann.",))
    assert query.question_date == "2025-03-20"
    assert haystack.dropped == ()


@pytest.mark.parametrize(
    ("match", "answers"), [("any", ("Ann", "Annie")), ("all", ("Ann; Annie",))]
)
def test_expected_strings_are_the_answers_if_there_are_no_others(
    tmp_path: Path, match: str, answers: tuple[str, ...]
) -> None:
    row = {"id": "q", "evidence": ["a/b.md"], "expected_substrings": ["Ann", "Annie"]}
    assert _only(_set(tmp_path, row | {"match": match})).queries[0].answers == answers


def test_a_row_without_gold_is_kept_and_reported(tmp_path: Path) -> None:
    rows = (
        {"id": "none"},
        {"id": "abstain", "abstain": True},
        {"id": "elsewhere", "evidence": ["a/c.md"]},
    )
    haystack = _only(_set(tmp_path, *rows))
    assert [(query.id, query.gold, query.abstain) for query in haystack.queries] == [
        ("none", (), False),
        ("abstain", (), True),
        ("elsewhere", ("a/c.md",), False),
    ]
    assert [(entry.id, entry.why) for entry in haystack.dropped] == [
        ("none", "it has no evidence, and so no gold"),
        ("elsewhere", "document a/c.md does not exist"),
    ]


def test_a_tag_of_a_row_makes_it_no_other_format(tmp_path: Path) -> None:
    path = _set(tmp_path, {"id": "q", "evidence": ["a/b.md"], "tags": ["items", "questions"]})
    assert open_benchmark(path, None, {}).format.name == "jsonl"
    path.write_text("\ufeff" + path.read_text(), encoding="utf-8")
    assert open_benchmark(path, None, {}).format.name == "jsonl"


def test_comments_before_the_rows_make_it_no_other_format(tmp_path: Path) -> None:
    path = _set(tmp_path, {"id": "q", "evidence": ["a/b.md"]})
    rows = path.read_text()
    for head in ("# a comment\n\n", "\ufeff# a comment\n", "\n  # [1]\n#\n"):
        path.write_text(head + rows, encoding="utf-8")
        assert open_benchmark(path, None, {}).format.name == "jsonl"
        assert [query.id for query in _only(path).queries] == ["q"]
    path.write_text("# nothing but a comment\n")
    with pytest.raises(UsageError, match="looks like none of the known formats"):
        open_benchmark(path, None, {})


def test_a_benchmark_of_its_own_has_the_digest_of_its_file(tmp_path: Path) -> None:
    benchmark = open_benchmark(_set(tmp_path, {"id": "q", "evidence": ["a/b.md"]}), None, {})
    list(benchmark)
    assert len(benchmark.sha256) == 64


def test_a_question_set_without_documents_is_refused(tmp_path: Path) -> None:
    path = _set(tmp_path, {"id": "q"}, documents=())
    with pytest.raises(UsageError, match=r"mine/corpus is missing"):
        _only(path)
    (tmp_path / "mine" / "corpus").mkdir(parents=True)
    with pytest.raises(UsageError, match="contains no document"):
        _only(path)


def test_a_document_that_is_not_text_is_reported(tmp_path: Path) -> None:
    path = _set(tmp_path, {"id": "q"})
    (tmp_path / "mine" / "corpus" / "z.png").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"z\.png"):
        _only(path)


def test_an_invalid_line_is_reported(tmp_path: Path) -> None:
    path = _set(tmp_path, {"id": "q"})
    with path.open("a") as file:
        file.write('{"id": "r"}\n')
    with pytest.raises(UsageError) as error:
        _only(path)
    assert "mine.jsonl:2: question: missing" in error.value.excerpt
    path.write_text('{"id": "q", "question": ')
    with pytest.raises(UsageError) as error:
        _only(path)
    assert "mine.jsonl:1: bad JSON" in error.value.excerpt


def test_a_packed_question_set_is_refused(tmp_path: Path) -> None:
    path = _set(tmp_path, {"id": "q"})
    packed = tmp_path / "mine.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(UsageError, match="looks like none of the known formats"):
        _only(packed)


def test_rows_are_independent_unless_they_share_a_cluster(tmp_path: Path) -> None:
    rows = [{"id": "q1"}, {"id": "q2", "cluster": "talk"}, {"id": "q3", "cluster": "talk"}]
    queries = _only(_set(tmp_path, *rows)).queries
    assert [query.cluster for query in queries] == ["q1", "talk", "talk"]
