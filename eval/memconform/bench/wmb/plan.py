"""What is scored: the questions of WMB-100K, stored answers, and who judges them."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from memconform.bench.wmb.records import LostQuestion, WmbRun, WmbSettings
from memconform.datasets.errata import Errata
from memconform.datasets.error_text import error_message
from memconform.datasets.files import PieceReader
from memconform.datasets.question import Question
from memconform.datasets.wmb import WmbKey, is_document
from memconform.datasets.wmb_answers import AnswerRow, RowOrigin, read_answer_rows
from memconform.datasets.wmb_names import FALSE_MEMORY
from memconform.errors import NothingSelectedError, UsageError
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.wmb import SCRIPT_CHARACTERS, Profile
from memconform.scoring.wmb_rows import ScoredAnswers, ScoredRow

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WmbPlan:
    """Everything that a scoring needs."""

    key: WmbKey
    answers: StoredAnswers
    scorer: JudgeScorer
    prompts: Literal["own", "official"]
    label: str
    profiles: tuple[Profile, ...]
    errata: Errata | None = None
    """Those of the questions that the second view omits; None without such a view."""
    command: tuple[str, ...] = ()
    resumed: Path | None = None
    """The journal that is continued."""

    @property
    def settings(self) -> WmbSettings:
        return WmbSettings(
            questions_sha256=self.key.sha256,
            answers_sha256=self.answers.sha256,
            prompts=self.prompts,
            judge=self.scorer.settings,
        )

    def scored(self, verdicts: dict[tuple[str, str], bool]) -> ScoredAnswers:
        """The answers with what is known of them."""
        return ScoredAnswers(
            questions=self.key.questions,
            rows=self.answers.rows,
            verdicts=verdicts,
            lost=frozenset(each.question for each in self.answers.lost),
            not_asked=frozenset(self.answers.not_asked),
        )

    def shown_digests(self) -> set[tuple[str, str]]:
        """What the profiles need verdicts on: questions, and digests of memories."""
        return {pair for row in self._judged_rows() for pair in row}

    def _judged_rows(self) -> Iterator[list[tuple[str, str]]]:
        """For each row of the file, what is judged of it."""
        counted = {id(row) for row in self.scored({}).counted.values()}
        for row in self.answers.rows:
            question = self.key.questions.get(row.question)
            if question is None or question.category == FALSE_MEMORY or row.returned_nothing:
                yield []
                continue
            digests = []
            if "readme" in self.profiles and id(row) in counted and row.error is None:
                digests.append(row.whole)
            if "script" in self.profiles:
                digests.append(row.cut)
            yield [(row.question, digest) for digest in dict.fromkeys(digests)]

    def texts(self, judged: set[tuple[str, str]]) -> Iterator[tuple[Question, str]]:
        """The memories to judge, each once, with their questions; the file is read again.

        Args:
            judged: what has a verdict already.

        Raises:
            UsageError: if the file has changed (`dataset_changed`).
        """
        wanted = iter(self._judged_rows())
        seen = set(judged)
        with PieceReader(self.answers.path) as source:
            for row in read_answer_rows(source):
                text = row.text
                for pair in next(wanted, []):
                    if pair in seen:
                        continue
                    seen.add(pair)
                    shown = [text, text[:SCRIPT_CHARACTERS]]
                    matching = [each for each in shown if memories_digest(each) == pair[1]]
                    if pair[0] != row.question or not matching:
                        raise self._changed()
                    yield self.key.questions[row.question], matching[0]
            if source.sha256 != self.answers.sha256:
                raise self._changed()

    def _changed(self) -> UsageError:
        return UsageError(
            f"{self.answers.path} changed while it was being used",
            code="dataset_changed",
            hint="run again with --resume; the verdicts are in the journal of the run's folder",
        )
