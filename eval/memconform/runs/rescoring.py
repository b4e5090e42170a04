"""Rescores stored answers without a daemon."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memconform.datasets.model import Question
from memconform.datasets.registry import open_dataset
from memconform.datasets.selection import SelectedQuestions
from memconform.errors import ResultsError, UsageError
from memconform.ingest.records import IndexVerified
from memconform.runs.events import RunFinished
from memconform.runs.journal import Header, Journal, read_attempts, read_header
from memconform.runs.judging import stored_response
from memconform.runs.plan import DEFAULT_FLOOR, Floor, Plan
from memconform.runs.question_runner import is_applicable
from memconform.runs.reading import read_summary
from memconform.runs.result_builder import ResultBuilder
from memconform.runs.results import DaemonRecord, RunSummary
from memconform.runs.stages import AttemptRecords, JudgementRecord
from memconform.scenarios import SCENARIOS
from memconform.scoring import scorer_of
from memconform.storage.folders import RunFolder, new_run_id

_UNKNOWN_DAEMON = DaemonRecord(
    name=None,
    version=None,
    build_hash=None,
    ready_ms=None,
    rss_peak_bytes=None,
    cpu_seconds=None,
)


@dataclass(frozen=True, slots=True)
class _EarlierRun:
    """A finished or interrupted run on disk; without a result if it was killed."""

    journal: Path
    header: Header
    result: RunSummary | None


async def rescore(
    journal: Path,
    *,
    output: Path,
    dataset: str | None,
    floors: Sequence[Floor],
    command: Sequence[str],
) -> RunFinished:
    """Score every stored answer of a run again; unmeasured attempts stay unmeasured.

    Args:
        journal: the journal of the run to rescore.
        output: the results folder for the new result; the old result is left unchanged.
        dataset: another version of the dataset, for example with a fixed expectation; None uses
            the run's dataset, which must be unchanged.
        floors: if empty, the floors of the run, or the default if it has no result.
        command: the command line, for the provenance.

    Raises:
        UsageError: `dataset_changed` if the questions are not those of the run.
        ResultsError: if the run cannot be read or the result cannot be written.
    """
    header = read_header(journal)
    earlier = _EarlierRun(journal, header, _read_result(journal.with_name("result.json")))
    selected = _selected(earlier, dataset)
    scorer = scorer_of(header.settings.scorer)
    scorer.require_scorable(selected)
    settings = header.settings.model_copy(update={"dataset_sha256": selected.dataset.sha256})
    plan = Plan(
        settings=settings,
        selected=selected,
        output=output,
        scorer=scorer,
        floors=tuple(floors) or _floors(earlier),
        command=tuple(command),
        rescored=header.run_id,
    )
    started = datetime.now(UTC)
    run_id = new_run_id(started, header.sdk, f"{settings.scenario}-rescored")
    folder = RunFolder(output, run_id)
    builder = ResultBuilder(plan, header.sdk, run_id, started)
    builder.write_manifest(folder)
    rescored = Journal(folder.journal, builder.journal_header())
    questions = dict(enumerate(selected))
    try:
        for attempt in read_attempts(journal, trusting=True):
            await _judge_again(plan, attempt, questions)
            if settings.dataset_sha256 != header.settings.dataset_sha256 and attempt.retrieval:
                # The first hit belongs to the old expectation, and chunk texts are not stored.
                attempt.retrieval = attempt.retrieval.model_copy(update={"first_hit": None})
            rescored.copy_attempt(attempt)
        # The copied attempts have the old journal's statements applied already.
        rescored.write_statement(IndexVerified(attempts=rescored.written))
        if (wire := journal.with_name("wire")).is_dir():
            shutil.copytree(wire, folder.path / "wire")
    except BaseException:
        rescored.close({"ended": "not rescored"})
        folder.remove()
        raise
    old = earlier.result
    summary: RunSummary = builder.finish(
        folder,
        rescored,
        old.incident if old else None,
        old.daemon if old else _UNKNOWN_DAEMON,
        old.seeded if old else None,
        old.verification if old else None,
    )
    return RunFinished(summary, builder.highlights, folder.result, folder.result)


def _selected(earlier: _EarlierRun, dataset: str | None) -> SelectedQuestions:
    settings = earlier.header.settings
    opened = open_dataset(dataset or earlier.header.dataset_path)
    if dataset is None and opened.sha256 != settings.dataset_sha256:
        raise UsageError(
            f"{opened.path} has changed since {earlier.header.run_id}",
            code="dataset_changed",
            hint="to score against its current content, use --dataset " + str(opened.path),
        )
    rows = None if settings.rows is None else frozenset(settings.rows)
    return SelectedQuestions(opened, rows, settings.questions)


async def _judge_again(plan: Plan, attempt: AttemptRecords, questions: dict[int, Question]) -> None:
    """Judge an attempt, again or for the first time, if it has an answer."""
    scenario = SCENARIOS[plan.settings.scenario]
    question = questions.get(attempt.row)
    if question is None or question.id != attempt.question_id:
        raise UsageError(
            f"row {attempt.row} of the selection was question {attempt.question_id!r}"
            f" but is now {repr(question.id) if question else 'missing'}",
            code="dataset_changed",
            hint="rescoring needs the same question ids in the same order",
        )
    answer = attempt.answer
    if answer is None or answer.redacted:
        # The stored text is masked, and the mask may hide part of the expected text.
        return
    if not is_applicable(question, scenario):
        raise UsageError(
            f"question {question.id!r} now abstains, which {scenario.name} cannot measure",
            code="dataset_changed",
            hint="keep the question's original value of abstain",
        )
    score = await plan.scorer.score(question, stored_response(answer, scenario.text_kind))
    attempt.judgement = JudgementRecord.of(
        score, row=attempt.row, attempt=attempt.attempt, id=question.id
    )


def _floors(earlier: _EarlierRun) -> tuple[Floor, ...]:
    if earlier.result is None:
        return (DEFAULT_FLOOR,)
    return tuple(Floor(floor.floor, floor.tag) for floor in earlier.result.floors)


def _read_result(path: Path) -> RunSummary | None:
    """Read the result next to a journal; None if the run was killed before writing one.

    Raises:
        ResultsError: `result_unreadable` if it cannot be read or has an unknown schema.
    """
    if not path.is_file():
        return None
    try:
        return read_summary(path)
    except (ValueError, OSError) as error:
        raise ResultsError(
            f"{path} is not a result of this version",
            code="result_unreadable",
            hint="use the version of memconform that wrote it",
        ) from error
