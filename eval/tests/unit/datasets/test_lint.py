import json
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner

from memconform.cli.datasets.command import command
from memconform.datasets.lint import chance, lint_questions
from memconform.datasets.question import Question
from memconform.datasets.question_row import QuestionRow
from memconform.datasets.registry import corpus_of, open_dataset
from memconform.errors import UsageError
from memconform.ingest.documents import CorpusFolder
from tests.conftest import CHECKOUT

_DOCUMENTS = {
    "gold.md": "Ada keeps her blue bicycle in the shed by the canal.",
    "other.md": "Ben keeps his green bicycle under the stairs.",
    "near.md": "Ada painted the shed door blue.",
    "far.md": "Soup is served at noon.",
    "tea.md": "Tea is served at four.",
    **{f"filler{n}.md": f"Filler number {n}." for n in range(7)},
}


def _question(**row: object) -> Question:
    good = {
        "id": "q",
        "question": "Where does Ada keep her blue bicycle?",
        "expected_substrings": ["by the canal"],
        "evidence": ["gold.md"],
    }
    return QuestionRow.model_validate(good | row).to_question()


def test_a_good_question_has_no_faults() -> None:
    report = lint_questions([_question(tags=["a", "b"])], _DOCUMENTS)
    assert report.faults == ()
    assert (report.questions, report.documents, report.tags) == (1, 12, {"a": 1, "b": 1})
    assert report.fewest_distractors == 1


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"expected_substrings": ["bicycle"]}, "'bicycle' is in the question itself"),
        ({"expected_substrings": []}, "nothing is expected"),
        (
            {"expected_substrings": ["by\u200bthe canal"]},
            "contains U+200B, which no answer will contain",
        ),
        (
            {"expected_substrings": ["by the\u00ad canal"]},
            "contains U+00AD, which no answer will contain",
        ),
        ({"abstain": True}, "abstains but has"),
        ({"evidence": ["gone.md"]}, "evidence gone.md is not in the corpus"),
        ({"evidence": ["far.md"]}, "evidence far.md contains no expected string"),
        ({"evidence": ["gold.md", "far.md"]}, "evidence far.md contains no expected string"),
        (
            {"expected_substrings": ["by the canal", "at noon"], "match": "all"},
            "'at noon' is in none of the evidence",
        ),
    ],
)
def test_each_fault_is_named(row: dict[str, object], says: str) -> None:
    report = lint_questions([_question(**row)], _DOCUMENTS)
    assert any(says in fault.message for fault in report.faults), report.faults


def test_a_question_without_a_distractor_is_listed_and_no_fault() -> None:
    """Lint ended in 2 for a set that ships with the project, and is easy by intent."""
    easy = lint_questions([_question(question="When do we eat?")], _DOCUMENTS)
    assert (easy.without_distractor, easy.fewest_distractors, easy.faults) == (("q",), 0, ())
    assert lint_questions([_question()], _DOCUMENTS).without_distractor == ()


@pytest.mark.parametrize(
    ("row", "needed"),
    [
        ({"expected_substrings": ["served"]}, [{"d1", "d2"}]),
        ({"expected_substrings": ["x", "y"]}, [{"d1"}, {"d2", "d3"}]),
        ({"expected_substrings": ["x", "y"], "match": "all"}, [{"d1"}, {"d2", "d3"}]),
        ({"expected_substrings": ["x", "y"], "match": "all"}, [{"d1", "d2"}, {"d2", "d3"}]),
        ({"expected_substrings": ["x", "y"], "match": "all"}, [{"d1"}, set()]),
    ],
)
def test_chance_equals_counting_every_draw(row: dict[str, object], needed: list[set[str]]) -> None:
    documents = [f"d{n}" for n in range(9)]
    combine = all if row.get("match") == "all" else any
    draws = [set(draw) for draw in combinations(documents, 5)]
    lucky = sum(combine(bool(draw & paths) for paths in needed) for draw in draws)
    holders = [frozenset(paths) for paths in needed]
    assert chance(_question(**row), holders, 9) == pytest.approx(lucky / len(draws))


def test_luck_is_of_the_questions_that_a_search_is_asked() -> None:
    """Questions to abstain from were counted as ones that chance never passes."""
    abstains = _question(abstain=True, expected_substrings=[], evidence=[])
    # A run refuses a set with such a question.
    nothing_expected = _question(expected_substrings=[])
    alone = lint_questions([_question()], _DOCUMENTS)
    beside = lint_questions([_question(), abstains, nothing_expected], _DOCUMENTS)
    assert alone.chance == pytest.approx(5 / 12)
    assert (beside.chance, beside.highest_chance) == (alone.chance, alone.highest_chance)
    assert (beside.questions, beside.retrievable) == (3, 1)
    none = lint_questions([abstains], _DOCUMENTS)
    assert (none.chance, none.highest_chance, none.retrievable) == (None, None, 0)


def test_luck_draws_no_document_that_a_search_cannot_return() -> None:
    alone = lint_questions([_question()], _DOCUMENTS)
    unsearchable = {f"empty{n}.md": "" for n in range(9)}
    assert lint_questions([_question()], _DOCUMENTS | unsearchable).chance == alone.chance
    lost = lint_questions([_question()], unsearchable)
    assert (lost.chance, lost.retrievable) == (None, 1)


def test_an_answer_in_front_matter_is_not_found_by_luck(tmp_path: Path) -> None:
    row = {"id": "q", "question": "Where is it?", "expected_substrings": ["by the canal"]}
    (tmp_path / "q.jsonl").write_text(json.dumps(row))
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.md").write_text("---\nplace: by the canal\n---\nA shed.")
    (tmp_path / "corpus" / "b.md").write_bytes(b"by the canal \xff")
    arguments = ["lint", str(tmp_path / "q.jsonl"), "--corpus", str(tmp_path / "corpus")]
    ended = CliRunner().invoke(command, [*arguments, "--json", "-"])
    report = json.loads(ended.stdout)
    assert (report["documents"], report["retrievable"], report["chance"]) == (2, 1, 0.0)


def test_lme_is_what_its_readme_says() -> None:
    dataset = open_dataset("lme")
    folder = corpus_of(dataset)
    assert folder is not None
    documents = {
        document.path: document.content.decode() for document in CorpusFolder(folder).documents()
    }
    report = lint_questions(dataset, documents)
    assert report.faults == ()
    assert (report.questions, report.documents, report.retrievable) == (100, 212, 90)
    assert report.chance is not None
    assert round(100 * report.chance, 2) == 2.13
    assert report.tags == {
        "facts": 22,
        "two-documents": 15,
        "temporal": 14,
        "definitional": 12,
        "procedural": 12,
        "abstention": 10,
        "knowledge-update": 9,
        "comparison": 8,
        "preference": 8,
        "multi-session": 5,
    }
    assert sum(question.match == "all" for question in dataset) == 15
    assert sum(question.abstain for question in dataset) == 10


def test_counts_clusters_where_a_question_has_one() -> None:
    rows = [{"id": f"q{n}", "cluster": name} for n, name in enumerate(("a", "a", None, "b", None))]
    assert lint_questions([_question(**row) for row in rows], _DOCUMENTS).clusters == 4
    assert lint_questions([_question(), _question(id="r")], _DOCUMENTS).clusters is None


@pytest.mark.parametrize("place", ["the checkout", "an empty folder"])
def test_what_ships_is_linted_and_described_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """`datasets info smoke` looked for a file of this name, and `lint smoke` ended in 2."""
    monkeypatch.chdir(CHECKOUT if place == "the checkout" else tmp_path)
    for name in ("smoke", "lme"):
        linted = CliRunner().invoke(command, ["lint", name], standalone_mode=False)
        assert linted.return_value == 0, linted.output
        assert "no faults" in linted.output
    for name, counts in (("lme", "212 items, 100 queries"), ("sample", "32 items, 20 queries")):
        described = CliRunner().invoke(command, ["info", name], catch_exceptions=False)
        assert counts in described.output
    with pytest.raises(UsageError, match="a question set, not a benchmark") as raised:
        CliRunner().invoke(command, ["info", "smoke"], catch_exceptions=False)
    assert "datasets lint" in raised.value.hint
