"""Verdicts of people on answers of a result, kept beside it and never in it."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from memconform.errors import UsageError
from memconform.records import Record
from memconform.replay.records import JudgeVerdict, LmeQuestion, LmeResult
from memconform.storage.append_only import append_lines, is_cut
from memconform.validation_faults import first_fault

OVERRIDE_SCHEMA: Literal["memconform/lme-override@1"] = "memconform/lme-override@1"
FILE_NAME = "overrides.jsonl"

PersonVerdict = Literal["correct", "incorrect"]


class Override(Record):
    """One verdict of a person; the last one on an answer counts."""

    schema_version: Literal["memconform/lme-override@1"] = OVERRIDE_SCHEMA
    sdk: str
    """A folder may hold results of several."""
    question: str
    answer_sha256: str
    """Hash of the judged answer."""
    judge: JudgeVerdict
    """The judge's verdict, which the person saw."""
    verdict: PersonVerdict
    note: str
    by: str
    at: datetime

    def repeats(self, other: "Override | None") -> bool:
        """Whether it says again what another one says, at another time."""
        return other is not None and other.model_copy(update={"at": self.at}) == self


Overrides = Mapping[str, Override]
"""By question id."""


def answer_digest(question: LmeQuestion) -> str:
    """SHA-256 of the answer, which may not be UTF-8 text."""
    return hashlib.sha256((question.answer or "").encode("utf-8", "surrogatepass")).hexdigest()


def overrides_file(result: Path) -> Path:
    """The file of the overrides of a result."""
    return result.with_name(FILE_NAME)


def read_overrides(path: Path, result: LmeResult) -> dict[str, Override]:
    """Read the verdicts on a result's answers; none if the file does not exist.

    A last line that was cut short, because its writer was killed, is ignored.

    Raises:
        UsageError: if a line is damaged, or names an unknown question (`overrides_invalid`), or is
            about an answer that the result does not have (`other_answer`).
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _invalid(f"{path}: {error.strerror}") from error
    questions = {question.id: question for question in result.questions}
    overrides: dict[str, Override] = {}
    *lines, last = content.split(b"\n")
    for number, line in enumerate([*lines, last] if last and not is_cut(last) else lines, 1):
        try:
            override = Override.model_validate(json.loads(line))
        except ValidationError as error:
            raise _invalid(f"{path}: line {number}: {first_fault(error)}") from error
        except (ValueError, RecursionError) as error:
            raise _invalid(f"{path}: line {number}: {error}") from error
        if override.sdk != result.sdk:
            continue
        question = questions.get(override.question)
        if question is None or question.answer is None:
            raise _invalid(f"{path}: line {number}: no answer to {override.question!r}")
        if override.answer_sha256 != answer_digest(question):
            raise UsageError(
                f"{path}: line {number} is about another answer to {override.question!r} than the"
                " result has",
                code="other_answer",
                hint="keep the file beside the result that was judged; move it away to judge the"
                " new answers",
            )
        overrides[override.question] = override
    return overrides


def add_overrides(path: Path, known: Overrides, added: Iterable[Override]) -> int:
    """Append verdicts that are not repetitions, and return how many these are.

    Raises:
        ResultsError: if they cannot be written (`results_unwritable`).
    """
    lines = [each for each in added if not each.repeats(known.get(each.question))]
    if lines:
        append_lines(path, *lines)
    return len(lines)


def with_overrides(result: LmeResult, overrides: Overrides) -> LmeResult:
    """The result with verdicts of people in place of the judge's; its figures are unchanged."""
    questions = [_overruled(each, overrides.get(each.id)) for each in result.questions]
    return result.model_copy(update={"questions": questions})


def _overruled(question: LmeQuestion, override: Override | None) -> LmeQuestion:
    if override is None:
        return question
    verdict = f"abstain_{override.verdict}" if question.abstention else override.verdict
    return question.model_copy(update={"judge_verdict": verdict})


def _invalid(message: str) -> UsageError:
    return UsageError(
        message,
        code="overrides_invalid",
        hint=f"{FILE_NAME} is written by `lme arbitrate`; restore it, or move it away",
    )
