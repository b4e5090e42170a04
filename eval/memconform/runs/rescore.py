"""Rescores stored answers without a daemon."""

import json
import shutil
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memconform.concurrency import interruption, work_through
from memconform.datasets.question import Question
from memconform.datasets.reasoning_blocks import ONLY_REASONING
from memconform.datasets.reasoning_blocks import strip_reasoning as without_reasoning
from memconform.datasets.registry import open_dataset
from memconform.datasets.selection import SelectedQuestions
from memconform.errors import ResultsError, UsageError
from memconform.ingest.records import IndexVerified
from memconform.llm.chat import HALTING_CODES, HaltingError
from memconform.measuring.scenarios import SCENARIOS
from memconform.records import Incident
from memconform.runs.events import RunFinished
from memconform.runs.journal import Header, Journal, read_attempts
from memconform.runs.plan import DEFAULT_FLOOR, Floor, Plan
from memconform.runs.question_runner import is_applicable
from memconform.runs.result_builder import ResultBuilder, RunOutline, question_results
from memconform.runs.results import DaemonRecord, RunSummary
from memconform.runs.stages import AttemptRecords, JudgementRecord
from memconform.runs.stored_run import read_summary
from memconform.scoring.engine import ScoringEngine, ScoringTask
from memconform.scoring.judge.records import JudgeSettings
from memconform.scoring.scorer import Score, Scorer
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.folders import RunFolder, new_run_id
from memconform.storage.journal import read_header

if TYPE_CHECKING:
    from memconform.scoring.judge.calibration import Calibration

_AT_ONCE = 64
"""Answers judged concurrently; each provider's limiter caps its calls."""


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
    scorer: Scorer,
    judge: JudgeSettings | None = None,
    calibrations: Mapping[str, "Calibration | None"] | None = None,
    floors: Sequence[Floor],
    command: Sequence[str],
    strip_reasoning: bool = False,
    progress: Callable[[], None] = lambda: None,
) -> RunFinished:
    """Score every stored answer of a run again; unmeasured attempts stay unmeasured.

    Args:
        journal: the journal of the run to rescore.
        output: the results folder for the new result; the old result is left unchanged.
        dataset: another version of the dataset, for example with a fixed expectation; None uses
            the run's dataset, which must be unchanged.
        scorer: scores the answers; one that calls a service scores several at a time.
        judge: the judges' settings, if they score.
        calibrations: what is known of each judge.
        floors: those of the new result.
        command: the command line, for the provenance.
        strip_reasoning: whether to score answers without their blocks of reasoning.
        progress: called after each attempt.

    Raises:
        UsageError: `dataset_changed` if the questions are not those of the run;
            `journal_unreadable`.
        ResultsError: if the result cannot be read or written.
    """
    header = read_header(journal, Header)
    earlier = _EarlierRun(journal, header, _read_result(journal.with_name("result.json")))
    selected = _selected(earlier, dataset)
    scorer.require_scorable(selected)
    settings = header.settings.model_copy(
        update={
            "dataset_sha256": selected.dataset.sha256,
            "scorer": scorer.name,
            "judge": judge,
            "strip_reasoning": strip_reasoning,
        }
    )
    plan = Plan(
        settings=settings,
        selected=selected,
        output=output,
        scorer=scorer,
        calibrations=calibrations or {},
        floors=tuple(floors),
        command=tuple(command),
        rescored=header.run_id,
    )
    started = datetime.now(UTC)
    run_id = new_run_id(started, header.sdk, f"{settings.scenario}-rescored")
    folder = RunFolder(output, run_id)
    builder = ResultBuilder(RunOutline.of(plan, header.sdk, run_id, started))
    builder.write_manifest(folder)
    rescored = Journal(folder.journal, builder.journal_header())
    questions = dict(enumerate(selected))
    try:
        halted = None
        same = settings.digest() == header.settings_sha256
        async with aclosing(_judged(plan, journal, questions, same=same)) as attempts:
            async for attempt, error in attempts:
                halted = halted or error
                if settings.dataset_sha256 != header.settings.dataset_sha256 and attempt.retrieval:
                    # The first hit belongs to the old expectation, and chunk texts are not stored.
                    attempt.retrieval = attempt.retrieval.model_copy(update={"first_hit": None})
                rescored.copy_attempt(attempt)
                progress()
        # The copied attempts have the old journal's statements applied already.
        rescored.write_statement(IndexVerified(attempts=rescored.written))
        if (wire := journal.with_name("wire")).is_dir():
            shutil.copytree(wire, folder.path / "wire")
    except BaseException:
        rescored.close({"ended": "not rescored"})
        folder.remove()
        raise
    old = earlier.result
    builder.count_unfinished(halted)
    summary: RunSummary = builder.finish(
        folder,
        rescored,
        question_results(plan, rescored),
        _incident(earlier, halted),
        old.daemon if old else _unknown_daemon(),
        old.seeded if old else None,
        old.verification if old else None,
        old.upstream if old else None,
    )
    return RunFinished(summary, builder.highlights, folder.result, folder.result)


def _unknown_daemon() -> DaemonRecord:
    return DaemonRecord(
        name=None,
        version=None,
        build_hash=None,
        ready_ms=None,
        rss_peak_bytes=None,
        cpu_seconds=None,
    )


def _selected(earlier: _EarlierRun, dataset: str | None) -> SelectedQuestions:
    settings = earlier.header.settings
    opened = open_dataset(dataset or earlier.header.dataset_path)
    if dataset is None and opened.sha256 != settings.dataset_sha256:
        raise UsageError(
            f"{opened.path} has changed since {earlier.header.run_id}",
            code="dataset_changed",
            hint="to score against its current content, use --data " + str(opened.path),
        )
    rows = None if settings.rows is None else frozenset(settings.rows)
    return SelectedQuestions(opened, rows, settings.questions, settings.shard)


def _incident(earlier: _EarlierRun, halted: HaltingError | None) -> Incident | None:
    """What keeps the result from being one: an incident of the run, or that judging ended early."""
    old = earlier.result
    if old is None:
        return Incident.of(interruption(f"memconform run --resume {earlier.header.run_id}"))
    if old.incident is not None and old.incident.code not in HALTING_CODES:
        return old.incident
    return Incident.of(halted) if halted is not None else None


async def _judged(
    plan: Plan, journal: Path, questions: dict[int, Question], *, same: bool
) -> AsyncGenerator[tuple[AttemptRecords, HaltingError | None], None]:
    """The attempts of a journal in their order, judged anew.

    Several at a time, if the scorer calls a service. After an error that concerns all calls the
    rest come unjudged, each with that error. `same` says whether the settings are the run's own.
    """
    engine = ScoringEngine(plan.scorer)

    async def judge(numbered: tuple[int, AttemptRecords]) -> tuple[int, AttemptRecords]:
        _, attempt = numbered
        task = _task(plan, attempt, questions, same=same)
        if task is not None:
            scored = await engine.score(task)
            # An old judgement is another scorer's.
            attempt.judgement = _judgement(attempt, scored.score) if scored.score else None
        return numbered

    attempts = enumerate(read_attempts(journal, trusting=True))
    concurrency = 1 if plan.scorer.in_process else _AT_ONCE
    done: dict[int, AttemptRecords] = {}
    following = 0
    async with aclosing(work_through(attempts, judge, concurrency)) as judged:
        async for number, attempt in judged:
            done[number] = attempt
            while following in done:
                yield done.pop(following), engine.halted
                following += 1


def _task(
    plan: Plan, attempt: AttemptRecords, questions: dict[int, Question], *, same: bool
) -> ScoringTask[None] | None:
    """What is judged of an attempt, again or for the first time.

    None if it has no answer, or none that could be judged, which the attempt then says.
    """
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
    if answer is None:
        return None
    if answer.redacted:
        # The stored text is masked, and the mask may hide part of the expected text. The judgement
        # of the text itself stays, unless it was made by other rules.
        if not same:
            reason = "the answer was stored with secrets masked, and cannot be judged anew"
            attempt.judgement = _judgement(attempt, _unjudged(reason))
        return None
    if not is_applicable(question, scenario):
        raise UsageError(
            f"question {question.id!r} now abstains, which {scenario.name} cannot measure",
            code="dataset_changed",
            hint="keep the question's original value of abstain",
        )
    text = answer.text
    if plan.settings.strip_reasoning and scenario.text_kind == "answer":
        text = without_reasoning(text)
        if answer.text and not text:
            attempt.judgement = _judgement(attempt, _unjudged(ONLY_REASONING))
            return None
    return ScoringTask(key=None, question=question, text=text, kind=scenario.text_kind)


def _unjudged(reason: str) -> Score:
    return Score(None, QuestionStatus.JUDGE_ERROR, reason)


def _judgement(attempt: AttemptRecords, score: Score) -> JudgementRecord:
    return JudgementRecord.of(
        score, row=attempt.row, attempt=attempt.attempt, id=attempt.question_id
    )


def stored_floors(journal: Path) -> tuple[Floor, ...]:
    """The floors of a run, also of one that was killed.

    Raises:
        ResultsError: if its result cannot be read.
    """
    result = _read_result(journal.with_name("result.json"))
    if result is not None and result.floors:
        return tuple(Floor(floor.floor, floor.tag) for floor in result.floors)
    try:
        manifest = json.loads(journal.with_name("manifest.json").read_bytes())
        return tuple(Floor.parse(str(each)) for each in manifest["floors"])
    except (OSError, ValueError, KeyError, TypeError):
        # Earlier versions did not write them; a journal may have been copied alone.
        return (DEFAULT_FLOOR,)


def stored_answers(journal: Path, dataset: str | None) -> Iterator[tuple[Question, str]]:
    """The answers of a run that can be scored again, each with its question.

    Raises:
        UsageError: `dataset_changed` if the dataset is not that of the run;
            `journal_unreadable`.
    """
    header = read_header(journal, Header)
    earlier = _EarlierRun(journal, header, None)
    questions = dict(enumerate(_selected(earlier, dataset)))
    for attempt in read_attempts(journal, trusting=True):
        answer = attempt.answer
        if answer is not None and not answer.redacted and attempt.row in questions:
            yield questions[attempt.row], answer.text


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
