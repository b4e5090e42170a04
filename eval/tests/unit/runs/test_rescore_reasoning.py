"""`rescore --strip-reasoning`: answers of a run without their <think> blocks."""

import json
from pathlib import Path

import pytest

from memconform.datasets.registry import open_dataset
from memconform.ingest.records import IndexVerified
from memconform.runs.journal import Journal
from memconform.runs.plan import DEFAULT_FLOOR, Settings
from memconform.runs.rescore import rescore
from memconform.runs.stages import AnswerRecord, JudgementRecord
from memconform.scoring.exact import ExactScorer
from memconform.scoring.statuses import QuestionStatus
from tests.unit.runs.test_journal import HEADER

_ANSWERS = (
    "<think>Orn or Brel?</think>In Brel.",
    "<think>Brel? No.</think>In Orn.",
    "<think>It may be Brel, bec",
)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    dataset = tmp_path / "set.jsonl"
    rows = (
        {"id": f"q{n}", "question": "Where is it?", "expected_substrings": ["Brel"]}
        for n in range(len(_ANSWERS))
    )
    dataset.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    digest = open_dataset(str(dataset)).sha256
    settings = HEADER.settings.model_copy(update={"dataset_sha256": digest})
    header = HEADER.model_copy(update={"dataset_path": str(dataset), "settings": settings})
    opened = Journal(tmp_path / "journal.jsonl", header)
    for row, answer in enumerate(_ANSWERS):
        opened.write(
            AnswerRecord(row=row, attempt=0, text=answer, citations=[]),
            JudgementRecord(
                row=row,
                attempt=0,
                id=f"q{row}",
                verdict=QuestionStatus.CORRECT,
                score=1.0,
                error=None,
            ),
        )
    opened.write_statement(IndexVerified(attempts=len(_ANSWERS)))
    opened.close({})
    return tmp_path / "journal.jsonl"


@pytest.mark.parametrize(
    ("strip", "verdicts"),
    [(False, ["correct"] * 3), (True, ["correct", "incorrect", "judge_error"])],
)
async def test_reasoning_is_scored_unless_it_is_stripped(
    tmp_path: Path,
    journal: Path,
    strip: bool,  # noqa: FBT001
    verdicts: list[str],
) -> None:
    finished = await rescore(
        journal,
        output=tmp_path / "results",
        dataset=None,
        scorer=ExactScorer(),
        floors=(DEFAULT_FLOOR,),
        command=(),
        strip_reasoning=strip,
    )
    result = json.loads(finished.result.read_text())
    assert [question["verdict"] for question in result["questions"]] == verdicts
    assert result["provenance"]["settings"].get("strip_reasoning", False) is strip


def test_settings_without_the_option_have_the_digest_of_earlier_versions() -> None:
    """A journal of an earlier version can still be resumed."""
    digest = HEADER.settings.digest()
    fields = HEADER.settings.model_dump()
    del fields["strip_reasoning"]
    assert Settings.model_validate(fields).digest() == digest
    stripped = HEADER.settings.model_copy(update={"strip_reasoning": True})
    assert stripped.digest() != digest
