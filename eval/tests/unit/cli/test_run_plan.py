"""What fills the brain of a run where flags say so, and where none does."""

import json
from pathlib import Path
from unittest import mock

import pytest

from memconform.cli.run import plan
from memconform.cli.run.command import RunOptions
from memconform.daemons.sdk_runner import SdkRunner
from memconform.datasets.registry import open_dataset
from memconform.datasets.selection import SelectedQuestions, Selection, select
from memconform.errors import UsageError
from memconform.ingest.documents import CorpusFolder, ReferenceAnswers

OURS = mock.Mock(spec=SdkRunner, managed=True)
FOREIGN = mock.Mock(spec=SdkRunner, managed=False)


def selected(name: str | Path) -> SelectedQuestions:
    return select(open_dataset(str(name)), Selection())


def seeding(
    dataset: SelectedQuestions,
    *runners: SdkRunner,
    brain: str | None = None,
    corpus: Path | None = None,
    reference: bool = False,
) -> object:
    options = mock.Mock(spec=RunOptions, brain=brain, corpus=corpus, seed_reference_brain=reference)
    return plan._corpus(options, dataset, list(runners))


def test_a_managed_daemon_gets_the_dataset_s_own_documents() -> None:
    lme = selected("lme")
    assert seeding(lme, OURS) == CorpusFolder(lme.dataset.path.with_suffix("") / "corpus")
    assert seeding(lme, OURS, OURS) == seeding(lme, OURS)
    smoke = selected("smoke")
    assert seeding(smoke, OURS) == ReferenceAnswers(smoke.dataset)


@pytest.mark.parametrize("name", ["lme", "smoke"])
def test_external_daemons_are_seeded_only_on_request(name: str) -> None:
    dataset = selected(name)
    assert seeding(dataset, FOREIGN) is None
    assert seeding(dataset, OURS, FOREIGN) is None
    assert seeding(dataset, FOREIGN, reference=True) == ReferenceAnswers(dataset.dataset)
    assert seeding(dataset, FOREIGN, corpus=Path("notes")) == CorpusFolder(Path("notes"))


def test_a_named_brain_is_asked_as_it_is() -> None:
    lme = selected("lme")
    assert seeding(lme, OURS, brain="mine") is None
    assert seeding(lme, OURS, brain="mine", reference=True) == ReferenceAnswers(lme.dataset)
    assert seeding(lme, OURS, brain="mine", corpus=Path("lme")) == seeding(lme, OURS)


def test_flags_decide_before_the_default() -> None:
    lme = selected("lme")
    assert seeding(lme, OURS, reference=True) == ReferenceAnswers(lme.dataset)
    assert seeding(lme, OURS, corpus=Path("notes")) == CorpusFolder(Path("notes"))


def test_a_dataset_without_documents_fills_nothing(tmp_path: Path) -> None:
    row = {"id": "a", "question": "What?", "expected_substrings": ["that"]}
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps(row) + "\n")
    assert seeding(selected(bare), OURS) is None


def test_a_dataset_with_some_reference_answers_fills_nothing(tmp_path: Path) -> None:
    """All others would be incorrect because their documents are missing."""
    rows: list[dict[str, object]] = [
        {"id": f"q{n}", "question": "What?", "expected_substrings": ["that"]} for n in range(10)
    ]
    rows[3]["reference_answer"] = "It is that."
    some = tmp_path / "some.jsonl"
    some.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert seeding(selected(some), OURS) is None
    for row in rows:
        row["reference_answer"] = "It is that."
    rows.append({"id": "none", "question": "And this?", "abstain": True})
    some.write_text("".join(json.dumps(row) + "\n" for row in rows))
    every = selected(some)
    assert seeding(every, OURS) == ReferenceAnswers(every.dataset)


@pytest.mark.parametrize("brain", ["eval\n", "a/b", "", "..", "x" * 129])
def test_rejects_an_invalid_brain_id(brain: str) -> None:
    """A pattern that ends in `$` fits before the end of a line too."""
    options = mock.Mock(
        spec=RunOptions, brain=brain, scorer="exact", resume=None, corpus=None, ids=()
    )
    with pytest.raises(UsageError, match="brain"):
        plan.select_questions(options)
