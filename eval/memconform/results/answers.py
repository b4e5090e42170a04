"""Results of `score`: of a bench one run for each arm, of answers to LongMemEval and LoCoMo one
for each rubric."""

from collections.abc import Sequence
from pathlib import Path

from memconform.bench.answering.records import AnswerReport, ArmAnswer, ArmReport
from memconform.bench.qa.records import Judgement, QaReport, RubricReport
from memconform.bench.tasks import ALL
from memconform.datasets.answer_keys import Suite
from memconform.datasets.locomo import conversation_of
from memconform.errors import UsageError
from memconform.records import Incident
from memconform.results.loaded_runs import LoadedRun
from memconform.results.scored_run import DAEMONS_READER, ScoredRun, read_lines_of, scored_question
from memconform.runs.results import QuestionResult
from memconform.scoring.accuracy import Accuracy
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.folders import ROW_MARK

_NAMES: dict[Suite, str] = {"longmemeval": "LongMemEval", "locomo": "LoCoMo"}


def read_answers(path: Path) -> dict[str, LoadedRun]:
    """The run of each arm, by its name.

    Raises:
        UsageError: if it is unreadable, or its figures are not those of its answers
            (`result_unreadable`).
    """
    report, records = read_lines_of(path, AnswerReport, ArmAnswer, "answer")
    return {
        arm.name: _arm(path, report, arm, [each for each in records if each.arm == arm.name])
        for arm in report.arms
    }


def _arm(
    path: Path, report: AnswerReport, arm: ArmReport, records: Sequence[ArmAnswer]
) -> LoadedRun:
    settings, reader = report.settings, report.settings.reader
    overall = arm.views[ALL].overall
    return ScoredRun(
        path=path,
        origin=report,
        run_id=f"{report.run_id}{ROW_MARK}{arm.name}",
        sdk=arm.name,
        subject=arm.name,
        started_at=report.started_at,
        took_s=report.took_s,
        dataset=f"{_NAMES[settings.suite]} {settings.data_sha256[:8]}",
        dataset_path=report.data.path,
        dataset_sha256=settings.data_sha256,
        mode="-",
        reader=DAEMONS_READER if arm.kind == "daemon" else reader.model,
        judge=settings.judge,
        method={
            "verb": "score of a bench",
            "level": settings.level,
            **reader.model_dump(mode="json", exclude={"model", "prompts", "seed"}),
        },
        questions=[
            _question(settings.suite, record, record.code or "judge_error") for record in records
        ],
        stated=_counts(overall),
        incident=_incident(arm.incident or report.incident, overall),
        reasons=arm.failures,
        is_control=arm.kind == "control",
    ).load()


def read_judgements(path: Path) -> dict[str, LoadedRun]:
    """The run of each rubric, by its name; raises UsageError as `read_answers` does.

    Also if no rubric was applied (`result_unreadable`).
    """
    report, records = read_lines_of(path, QaReport, Judgement, "judgement")
    if not report.rubrics:
        raise UsageError(
            f"{path} has no judgements: `score --rubric locomo` compared words alone",
            code="result_unreadable",
            hint="name a judge: memconform score … --rubric locomo --judge MODEL",
        )
    return {
        rubric.name: _rubric(
            path, report, rubric, [each for each in records if each.rubric == rubric.name]
        )
        for rubric in report.rubrics
    }


def _rubric(
    path: Path, report: QaReport, rubric: RubricReport, records: Sequence[Judgement]
) -> LoadedRun:
    settings, answers = report.settings, report.hypotheses
    overall = rubric.views[ALL].overall
    ended = "not_run" if report.incident is None else report.incident.code
    questions = [
        _question(
            settings.suite,
            record,
            "judge_error" if record.status is QuestionStatus.JUDGE_ERROR else ended,
        )
        for record in records
    ]
    missing = {} if settings.partial else dict.fromkeys(answers.missing, "the file has no answer")
    questions += [
        scored_question(
            id=name,
            question="",
            tags=[],
            cluster=_cluster(settings.suite, name),
            status=QuestionStatus.NOT_RUN,
            code="error_text" if name in answers.errors else "no_answer",
            reason=reason,
        )
        for name, reason in (missing | answers.errors).items()
    ]
    return ScoredRun(
        path=path,
        origin=report,
        run_id=f"{report.run_id}{ROW_MARK}{rubric.name}",
        sdk=Path(answers.path).stem,
        subject=rubric.name,
        started_at=report.started_at,
        took_s=report.took_s,
        dataset=f"{_NAMES[settings.suite]} {settings.data_sha256[:8]}",
        dataset_path=report.data.path,
        dataset_sha256=settings.data_sha256,
        mode="-",
        reader=None,
        judge=settings.rubrics[rubric.name],
        method={"verb": "score of a file", "strip_reasoning": settings.strip_reasoning},
        questions=questions,
        stated=_counts(overall),
        incident=_incident(report.incident, overall),
        reasons=rubric.failures,
    ).load()


def _question(suite: Suite, record: ArmAnswer | Judgement, code: str) -> QuestionResult:
    return scored_question(
        id=record.question,
        question=record.text,
        tags=[record.category],
        cluster=_cluster(suite, record.question),
        status=record.status,
        code=code,
        reason=record.reason,
        answer=record.answer,
        judges=record.votes,
    )


def _cluster(suite: Suite, question: str) -> str | None:
    return conversation_of(question) if suite == "locomo" else None


def _counts(accuracy: Accuracy) -> tuple[int, int, int]:
    return accuracy.expected, accuracy.measured, accuracy.correct


def _incident(incident: Incident | None, overall: Accuracy) -> Incident | None:
    """The incident of a subject; one that was measured whole before it is not concerned."""
    return None if overall.measured == overall.expected else incident
