"""Stored answers to WMB-100K: their rows as digests, and the record of the run that made them."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from memconform.bench.wmb.records import LostQuestion, WmbRun
from memconform.datasets.error_text import error_message
from memconform.datasets.files import PieceReader
from memconform.datasets.question import Question
from memconform.datasets.wmb import WmbKey, is_document
from memconform.datasets.wmb_answers import AnswerRow, RowOrigin, read_answer_rows
from memconform.errors import NothingSelectedError, UsageError
from memconform.scoring.wmb import SCRIPT_CHARACTERS
from memconform.scoring.wmb_rows import ScoredRow

RUN_ENDING = ".run.json"
"""The record of the run that made `answers.json` is `answers.run.json`."""


def run_record_of(answers: Path) -> Path:
    """Where the record of the run that made a file of answers lies."""
    return answers.with_name(answers.name.partition(".json")[0] + RUN_ENDING)


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """A file of answers, without its texts."""

    path: Path
    sha256: str
    rows: list[ScoredRow]
    run: WmbRun | None
    """The record of the run that made them; None for those of other programs."""
    lost: tuple[LostQuestion, ...] = ()
    """Questions that a run lost, or may have lost."""
    not_asked: tuple[str, ...] = ()
    """Questions that a run left out."""

    def require_answers(self, key: WmbKey) -> None:
        """Raise NothingSelectedError if no row belongs to a question."""
        if not any(row.question in key.questions for row in self.rows):
            first = self.rows[0].question if self.rows else None
            raise NothingSelectedError(
                f"no answer of {self.path} belongs to a question of {key.path}",
                code="nothing_selected",
                hint=f"its first id is {first!r}, the first question"
                f" {next(iter(key.questions), '')!r}",
            )


def read_stored_answers(path: Path, questions: Mapping[str, Question]) -> StoredAnswers:
    """Read the rows of answers, of which only digests are kept, and the record of their run.

    Args:
        path: the file of answers.
        questions: those of the benchmark, by id; a status or an exception that one of them names
            is no error message.

    Raises:
        UsageError: as `read_answer_rows`; `wmb_answers_changed` if the record is of other answers.
    """
    rows = []
    answered: dict[RowOrigin, set[str]] = {}
    with PieceReader(path) as source:
        for row in read_answer_rows(source):
            rows.append(_scored_row(row, questions.get(row.question)))
            if row.origin is not None:
                answered.setdefault(row.origin, set()).add(row.question)
        sha256 = source.sha256
    if (run := _run(run_record_of(path), sha256)) is not None:
        return StoredAnswers(path, sha256, rows, run, tuple(run.lost), tuple(run.not_asked))
    names = {row.question for row in rows}
    missing = [name for name in questions if name not in names] if answered else []
    lost = {name: each for name in missing if (each := _maybe_lost(name, answered)) is not None}
    not_asked = tuple(name for name in missing if name not in lost)
    return StoredAnswers(path, sha256, rows, None, tuple(lost.values()), not_asked)


def _maybe_lost(name: str, answered: Mapping[RowOrigin, Collection[str]]) -> LostQuestion | None:
    """A question without a row, if a run has fewer rows than it asked questions, and no record.

    Which of its questions it lost, and which it left out, only its record knows.
    """
    part = "A" if is_document(name) else "B"
    for origin, questions in answered.items():
        if len(questions) < origin.asked and origin.parts in (part, "both"):
            return LostQuestion(
                question=name,
                code="record_missing",
                message=f"{origin.run} asked {origin.asked} questions, and {len(questions)} have a"
                f" row; put its *{RUN_ENDING} beside the answers to see which it lost",
            )
    return None


def _scored_row(row: AnswerRow, question: Question | None) -> ScoredRow:
    return ScoredRow(
        question=row.question,
        returned_nothing=row.returned_nothing,
        latency_ms=row.latency_ms,
        whole=memories_digest(text := row.text),
        cut=memories_digest(text[:SCRIPT_CHARACTERS]),
        error=row.fault or _error_of(row, question),
    )


def _error_of(row: AnswerRow, question: Question | None) -> str | None:
    """The error message that a row has as its response, or as all of its memories."""
    if question is None:
        return None
    known = replace(question, answers=(question.rubric or "",))
    first = None
    for memory in row.memories:
        message = error_message(known, memory)
        if message is None:
            return None if row.is_joined else error_message(known, row.response)
        first = first or message
    return first or (None if row.is_joined else error_message(known, row.response))


def _run(path: Path, sha256: str) -> WmbRun | None:
    try:
        run = WmbRun.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise UsageError(
            f"{path} is not the record of a run of `wmb run`",
            code="wmb_answers_changed",
            hint="remove it if the answers are not memconform's",
        ) from error
    if run.answers_sha256 != sha256:
        raise UsageError(
            f"{path} is the record of other answers than those beside it",
            code="wmb_answers_changed",
            hint="copy both files of the run again, or remove the record if the answers are not"
            " memconform's",
        )
    return run


def memories_digest(text: str) -> str:
    """A digest of what a judge is shown."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]
