import errno
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from memconform.contract.wire import Mode
from memconform.errors import ResultsError, UsageError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.records import Failure
from memconform.runs.journal import (
    Header,
    Journal,
    read_attempts,
)
from memconform.runs.plan import Settings
from memconform.runs.proven_attempts import Retraction
from memconform.runs.results import CallTimings
from memconform.runs.stages import (
    AnswerRecord,
    AttemptRecords,
    JudgementRecord,
    RetrievalRecord,
    StageRecord,
)
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.sink import replacing

HEADER = Header(
    run_id="r",
    sdk="py",
    dataset_path="d.jsonl",
    settings=Settings(
        dataset="d",
        dataset_sha256="0",
        questions=3,
        rows=None,
        scenario="ask-basic",
        mode=Mode.AUTO,
        scorer="exact",
        brain="eval",
        top_k=5,
        candidate_k=0,
        rerank_top_n=0,
        allow_fallback=False,
        repeat=1,
        seeding=None,
    ),
    settings_sha256="1",
)


def records(row: int, attempt: int = 0) -> list[StageRecord]:
    return [
        AnswerRecord(row=row, attempt=attempt, text=f"{row}/{attempt} \u2028 é", citations=[]),
        JudgementRecord(
            row=row, attempt=attempt, id="q", verdict=QuestionStatus.CORRECT, score=1.0, error=None
        ),
    ]


def test_attempts_are_read_back_by_question(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", HEADER)
    for row in (2, 0, 1):
        journal.write(*records(row))
    journal.write(*records(2, attempt=1))
    journal.write_statement(IndexVerified(attempts=4))
    assert _stages(journal, 2) == records(2) + records(2, attempt=1)
    assert list(journal.read(7)) == []
    journal.close({})


def test_questions_are_read_while_others_are_written(tmp_path: Path) -> None:
    """The single read handle buffers the file as it was at the last read."""
    journal = Journal(tmp_path / "j", HEADER)
    for row in range(50):
        journal.write(*records(row))
        journal.write_statement(IndexVerified(attempts=row + 1))
        assert _stages(journal, row) == records(row)
        assert _stages(journal, row // 2) == records(row // 2)
    journal.close({})


@pytest.mark.parametrize("lost", [5, 200])
def test_a_journal_truncated_during_the_run_is_refused(tmp_path: Path, lost: int) -> None:
    journal = Journal(tmp_path / "j", HEADER)
    journal.write(*records(0))
    os.truncate(tmp_path / "j", (tmp_path / "j").stat().st_size - lost)
    with pytest.raises(ResultsError, match="was changed during the run"):
        list(journal.read(0))
    journal.close({})


def test_every_line_is_a_record_and_reaches_the_file_at_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", HEADER)
    journal.write(*records(0))
    before_close = [json.loads(line) for line in (tmp_path / "j").read_bytes().splitlines()]
    assert [line["stage"] for line in before_close] == ["header", "answer", "judgement"]
    journal.close({"exit_code": 0})
    footer = json.loads((tmp_path / "j").read_bytes().splitlines()[-1])
    assert footer == {"stage": "footer", "exit_code": 0}


def test_a_journal_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("precious")
    with pytest.raises(ResultsError, match="File exists"):
        Journal(tmp_path / "j", HEADER)
    assert (tmp_path / "j").read_text() == "precious"


def test_a_full_disk_is_a_results_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "j", HEADER)

    class _Full:
        def write(self, _: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def truncate(self, _: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    whole = journal._lines._file
    monkeypatch.setattr(journal._lines, "_file", _Full())
    with pytest.raises(ResultsError, match="No space left") as caught:
        journal.write(*records(0))
    assert caught.value.exit_code == 70
    monkeypatch.setattr(journal._lines, "_file", whole)
    journal.close({})


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "file"
    with replacing(target) as file:
        file.write_text("one")
    with suppress(ZeroDivisionError), replacing(target) as file:
        file.write_text("half of tw")
        raise ZeroDivisionError
    assert target.read_bytes() == b"one"
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def _stages(journal: Journal, row: int) -> list[StageRecord]:
    return [record for attempt in journal.read(row) for record in attempt.records()]


def _verdicts(attempts: Iterable[AttemptRecords]) -> list[str]:
    return [
        record.verdict.value if record.error is None else record.error.code
        for attempt in attempts
        if (record := attempt.judgement)
    ]


def test_an_attempt_counts_once_the_index_was_verified_after_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", HEADER)
    lost = Failure(code="brain_changed", message="it was emptied")
    for row in range(6):
        journal.write(*records(row))
        if row == 1:
            journal.write_statement(IndexVerified(attempts=2))
        if row == 3:
            journal.write_statement(IndexInvalidated(attempts=4, error=lost))
    journal.write_statement(Retraction(number=0, error=Failure(code="not_repeatable", message="x")))
    journal.write_statement(IndexVerified(attempts=5))
    expected = [
        *("not_repeatable", "correct", "brain_changed", "brain_changed"),
        *("correct", "index_not_proven"),
    ]
    assert _verdicts(r for row in range(6) for r in journal.read(row)) == expected
    assert [journal.is_settled(row) for row in range(6)] == [True] * 5 + [False]
    journal.close({})
    assert _verdicts(read_attempts(tmp_path / "j")) == expected
    resumed = Journal(tmp_path / "k", HEADER)
    resumed.adopt(tmp_path / "j")
    assert [resumed.attempts(row) for row in range(6)] == [0, 1, 0, 0, 1, 0]
    assert _verdicts(resumed.read(4)) == ["correct"]
    resumed.close({})


def test_a_lost_document_invalidates_attempts_verified_by_other_documents(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", HEADER)
    for row in range(4):
        journal.write(*records(row))
        journal.write_statement(IndexVerified(attempts=row + 1))
    lost = Failure(code="not_searchable", message="gone")
    journal.write_statement(IndexInvalidated(attempts=4, since=1, error=lost))
    assert _verdicts(r for row in range(4) for r in journal.read(row)) == [
        "correct",
        *["not_searchable"] * 3,
    ]
    journal.close({})


@pytest.mark.parametrize(
    "broken",
    [
        {"score": 7.0},
        {"score": None},
        {"verdict": "timeout"},
        {"score": 0.0},
        {"verdict": "incorrect"},
    ],
)
def test_a_record_that_contradicts_itself_is_refused(
    tmp_path: Path, broken: dict[str, object]
) -> None:
    journal = Journal(tmp_path / "j", HEADER)
    journal.write(*records(0))
    journal.write_statement(IndexVerified(attempts=1))
    journal.close({})
    lines = [json.loads(line) for line in (tmp_path / "j").read_bytes().splitlines()]
    lines[2] |= broken
    (tmp_path / "j").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UsageError, match="line 3 is not a record"):
        list(read_attempts(tmp_path / "j"))


def test_a_journal_without_proofs_is_rescored_but_not_resumed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", HEADER)
    journal.write(*records(0))
    journal.close({})
    text = (tmp_path / "j").read_text().replace("memconform/journal@3", "memconform/journal@1")
    (tmp_path / "j").write_text(text)
    [trusted] = read_attempts(tmp_path / "j", trusting=True)
    assert _verdicts([trusted]) == ["correct"]
    [adopted] = read_attempts(tmp_path / "j")
    assert _verdicts([adopted]) == ["index_not_proven"]


def _retrieval(row: int, attempt: int = 0) -> RetrievalRecord:
    timings = CallTimings(first_byte=1, first_event=None, first_delta=None, done=2)
    return RetrievalRecord(
        row=row, attempt=attempt, id="q", mode="bm25", ranking=[], trace={}, timings=timings
    )


def _judgement(row: int, verdict: QuestionStatus = QuestionStatus.CORRECT) -> JudgementRecord:
    failed = None if verdict.measured else Failure(code=verdict.value, message="m")
    score = {QuestionStatus.CORRECT: 1.0, QuestionStatus.INCORRECT: 0.0}.get(verdict)
    return JudgementRecord(row=row, attempt=0, id="q", verdict=verdict, score=score, error=failed)


def test_stages_of_several_attempts_may_interleave(tmp_path: Path) -> None:
    """With a slow judge, later questions may be answered and judged first."""
    journal = Journal(tmp_path / "j", HEADER)
    assert journal.write(_retrieval(0), records(0)[0]) == 0
    assert journal.write(_retrieval(1), records(1)[0]) == 1
    journal.write_statement(IndexVerified(attempts=2))
    assert not journal.is_settled(0)
    assert journal.write(_judgement(1)) == 1
    assert journal.write(_judgement(0, QuestionStatus.INCORRECT)) == 0
    assert [journal.is_settled(row) for row in (0, 1)] == [True, True]
    assert _verdicts(journal.read(0)) == ["incorrect"]
    assert _stages(journal, 1) == [_retrieval(1), records(1)[0], _judgement(1)]
    journal.close({})
    ended = {(records.row, records.number) for records in read_attempts(tmp_path / "j")}
    assert ended == {(0, 0), (1, 1)}


@pytest.mark.parametrize("judgement", [None, QuestionStatus.JUDGE_ERROR])
def test_an_answer_without_a_judgement_is_adopted_and_judged(
    tmp_path: Path, judgement: QuestionStatus | None
) -> None:
    """Each stage is resumed separately: answered questions are not asked again."""
    journal = Journal(tmp_path / "j", HEADER)
    journal.write(_retrieval(0), records(0)[0])
    if judgement is not None:
        journal.write(_judgement(0, judgement))
    journal.write_statement(IndexVerified(attempts=1))
    # Answered but never proven: the index may have been lost by then.
    journal.write(_retrieval(1), records(1)[0])
    journal.close({})
    resumed = Journal(tmp_path / "k", HEADER)
    resumed.adopt(tmp_path / "j")
    assert [resumed.attempts(row) for row in (0, 1)] == [1, 0]
    assert resumed.unjudged(0) == [(0, records(0)[0])]
    assert [resumed.is_judged(0, repeat) for repeat in (1, 2)] == [False, False]
    resumed.write(_judgement(0))
    assert _verdicts(resumed.read(0)) == ["correct"]
    assert _stages(resumed, 0) == [_retrieval(0), records(0)[0], _judgement(0)]
    assert resumed.unjudged(0) == []
    assert [resumed.is_judged(0, repeat) for repeat in (1, 2)] == [True, False]
    resumed.close({})


def test_a_question_with_a_masked_answer_is_asked_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", HEADER)
    masked = AnswerRecord(row=0, attempt=0, text="***", citations=[], redacted=True)
    journal.write(_retrieval(0), masked)
    journal.write_statement(IndexVerified(attempts=1))
    journal.close({})
    resumed = Journal(tmp_path / "k", HEADER)
    resumed.adopt(tmp_path / "j")
    assert resumed.is_empty
    resumed.close({})


def test_an_adopted_attempt_is_renumbered_from_zero(tmp_path: Path) -> None:
    """It once kept its number, and the next attempt got the same one."""
    journal = Journal(tmp_path / "j", HEADER)
    lost = Failure(code="timeout", message="m")
    journal.write(
        JudgementRecord(
            row=0, attempt=0, id="q", verdict=QuestionStatus.TIMEOUT, score=None, error=lost
        )
    )
    journal.write(*records(0, attempt=1))
    journal.write_statement(IndexVerified(attempts=2))
    journal.close({})
    resumed = Journal(tmp_path / "k", HEADER)
    resumed.adopt(tmp_path / "j")
    assert [attempt.attempt for attempt in resumed.read(0)] == [0]
    resumed.write(*records(0, attempt=resumed.attempts(0)))
    resumed.write_statement(IndexVerified(attempts=2))
    assert [record.attempt for record in _stages(resumed, 0) if record.stage == "answer"] == [0, 1]
    resumed.close({})


def test_attempts_keep_their_order_whichever_is_judged_first(tmp_path: Path) -> None:
    """A resumed run once showed the second attempt of a question as its first."""
    journal = Journal(tmp_path / "j", HEADER)
    for attempt in range(3):
        journal.write(_retrieval(0, attempt), records(0, attempt)[0])
    journal.write_statement(IndexVerified(attempts=3))
    for attempt in (1, 0):
        journal.write(_judgement(0).model_copy(update={"attempt": attempt}))
    journal.close({})
    read = list(read_attempts(tmp_path / "j"))
    assert [records.attempt for records in read] == [0, 1, 2]
    assert [records.measured for records in read] == [True, True, False]
    resumed = Journal(tmp_path / "k", HEADER)
    resumed.adopt(tmp_path / "j")
    assert [record.answer and record.answer.text for record in resumed.read(0)][:2] == [
        "0/0 \u2028 é",
        "0/1 \u2028 é",
    ]
    resumed.close({})


@pytest.mark.parametrize("version", [1, 2])
def test_an_incomplete_attempt_of_an_older_version_is_dropped(tmp_path: Path, version: int) -> None:
    """It was once taken for an unjudged answer to the question ''."""
    journal = Journal(tmp_path / "j", HEADER)
    journal.write(*records(0))
    torn = _retrieval(1).model_copy(update={"id": ""})
    journal.write(torn, records(1)[0])
    journal.write_statement(IndexVerified(attempts=2))
    journal.close({})
    text = (tmp_path / "j").read_text().replace("journal@3", f"journal@{version}")
    (tmp_path / "j").write_text(text)
    assert [records.row for records in read_attempts(tmp_path / "j")] == [0]
