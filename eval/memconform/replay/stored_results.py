"""Stored results of the replay: read, and checked against their own questions."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memconform.datasets.question import Question
from memconform.errors import UsageError, nearest
from memconform.replay.records import RESULT_SCHEMA, LmeQuestion, LmeResult
from memconform.scoring.accuracy import Accuracy, QaScores, qa_scores
from memconform.stats.stored_figures import is_same_figure
from memconform.storage.folders import ROW_MARK, result_files, split_reference
from memconform.storage.result_file import schema_of
from memconform.validation_faults import first_fault

_PREFIX, _SUFFIX = "result-", ".json"
_FAMILY, _, _VERSION = RESULT_SCHEMA.rpartition("@")


def find_result_file(reference: str) -> Path:
    """Find the file of `FILE` or `FILE#SDK`, of a folder with one result, or of `FOLDER#SDK`.

    Raises:
        UsageError: if there is none (`unknown_run`), or the folder has several (`several_results`).
    """
    name, sdk = split_reference(reference)
    path = Path(name)
    if path.is_file() and (not sdk or path.name == f"{_PREFIX}{sdk}{_SUFFIX}"):
        return path
    files = result_files(path)
    by_sdk = {file.name.removeprefix(_PREFIX).removesuffix(_SUFFIX): file for file in files}
    if sdk in by_sdk:
        return by_sdk[sdk]
    if sdk or not files:
        raise UsageError(
            f"no result of the replay {reference!r}",
            code="unknown_run",
            hint=nearest(sdk, by_sdk)
            or (f"the folder has {', '.join(by_sdk)}" if by_sdk else "give a result-<sdk>.json"),
        )
    if len(files) > 1:
        raise UsageError(
            f"{name} has results of {', '.join(by_sdk)}",
            code="several_results",
            hint=f"name one: {name}{ROW_MARK}{next(iter(by_sdk))}",
        )
    return files[0]


def read_lme_result(path: Path) -> LmeResult:
    """Read a result, and check that its figures are those of its questions.

    Raises:
        UsageError: if it is unreadable, of another kind or version, or was edited
            (`result_unreadable`).
    """
    try:
        schema = schema_of(path)
        family, _, version = schema.rpartition("@")
        if family != _FAMILY:
            raise _unreadable(path, f"its schema is {schema}, not {RESULT_SCHEMA}")
        if version != _VERSION:
            raise _unreadable(
                path, f"its schema is {schema}; this memconform reads {RESULT_SCHEMA}"
            )
        # pydantic's own parser refuses half of a surrogate pair, which a reader's reply may have.
        result = LmeResult.model_validate(json.loads(path.read_bytes()))
    except ValidationError as error:
        raise _unreadable(path, first_fault(error)) from error
    except (ValueError, OSError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error
    for fault in _faults(result):
        raise _unreadable(path, fault, "contradicts itself")
    return result


def lme_scores(questions: Sequence[LmeQuestion], passed: dict[str, bool] | None = None) -> QaScores:
    """The scores of questions in percent, intervals by cluster where questions share one.

    `passed` says by id which answers are right; without it the recorded verdicts do. The task
    average is over the categories that the questions have.
    """
    if passed is None:
        passed = {each.id: each.correct for each in questions if each.measured}
    names = {each.id: each.cluster for each in questions if each.cluster is not None}
    clusters = {each.id: names.get(each.id, f"\0{each.id}") for each in questions}
    asked = [scored_question(each) for each in questions]
    categories = {each.category for each in asked}
    return qa_scores(asked, passed, clusters if names else None, categories=categories)


def scored_question(question: LmeQuestion) -> Question:
    """The question as far as scores depend on it."""
    return Question(
        id=question.id,
        question=question.question,
        category=question.category,
        abstain=question.abstention,
    )


def _faults(result: LmeResult) -> Iterator[str]:
    """What a result states otherwise than its questions do."""
    ids = [question.id for question in result.questions]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        yield f"question {twice!r} is there twice"
    if set(ids) != set(result.settings.questions):
        lost = min(set(ids) ^ set(result.settings.questions))
        yield f"the settings and the questions differ in {lost!r}"
    if result.dataset_sha != result.settings.dataset_sha256:
        yield "dataset_sha is not that of the settings"
    measured = sum(question.measured for question in result.questions)
    yield from _unequal("questions_run", result.questions_run, len(ids))
    yield from _unequal("measured", result.measured, measured)
    scores = lme_scores(result.questions)
    # The intervals of an engine that counts single questions are no contradiction.
    single = lme_scores([q.model_copy(update={"cluster": None}) for q in result.questions])
    faults = [list(_score_faults(result, each)) for each in (scores, single)]
    yield from min(faults, key=len)


def _score_faults(result: LmeResult, scores: QaScores) -> Iterator[str]:
    stated = result.scores
    task, own_task = scores.task_averaged, stated.task_averaged
    if own_task.rate is None:
        # Not every category of the benchmark was asked, which the questions alone do not say.
        task = task.model_copy(update={"rate": None})
    expected = scores.model_copy(update={"task_averaged": task})
    yield from _unequal("scores", stated.model_dump(), expected.model_dump())
    overall = (result.overall_score, result.overall_interval)
    yield from _fraction("overall_score", *overall, scores.overall)
    yield from _fraction("abstention_score", result.abstention_score, None, scores.abstention)
    if result.task_avg_score is not None:
        average = scores.task_averaged.rate
        yield from _unequal(
            "task_avg_score", 100 * result.task_avg_score, average and average.value
        )
    counts = {
        name: (each.questions, each.measured, each.correct)
        for name, each in result.by_category.items()
    }
    own = {n: (a.expected, a.measured, a.correct) for n, a in scores.by_category.items()}
    yield from _unequal("by_category", counts, own)
    for name, each in result.by_category.items():
        accuracy = scores.by_category.get(name)
        yield from _fraction(f"by_category {name}", each.score, each.interval, accuracy)


def _fraction(
    name: str,
    stated: float | None,
    interval: tuple[float, float] | None,
    accuracy: Accuracy | None,
) -> Iterator[str]:
    """Null is always allowed: a score is null until every question was measured."""
    rate = None if accuracy is None else accuracy.rate
    if stated is not None:
        yield from _unequal(name, 100 * stated, rate and rate.value)
    if interval is not None:
        limits = [100 * limit for limit in interval]
        yield from _unequal(f"the interval of {name}", limits, rate and [rate.low, rate.high])


def _unequal(name: str, stated: Any, actual: Any) -> Iterator[str]:  # noqa: ANN401 - JSON values
    """Name the first place where two values differ by more than rounding."""
    match stated, actual:
        case dict(), dict() if stated.keys() == actual.keys():
            for key in stated:
                yield from _unequal(f"{name}.{key}", stated[key], actual[key])
        case ((list() | tuple()), (list() | tuple())) if len(stated) == len(actual):
            for number, pair in enumerate(zip(stated, actual, strict=True)):
                yield from _unequal(f"{name}.{number}", *pair)
        case ((int() | float()), (int() | float())):
            if not is_same_figure(stated, actual):
                yield f"{name} is {stated}, and its questions give {actual}"
        case _ if stated != actual:
            yield f"{name} is {stated}, and its questions give {actual}"


def _unreadable(path: Path, excerpt: str, what: str = "") -> UsageError:
    return UsageError(
        f"{path} {what or 'is not a result of the replay'}",
        code="result_unreadable",
        hint="give a result-<sdk>.json as `lme run` or `lme tri` wrote it",
        excerpt=excerpt,
    )
