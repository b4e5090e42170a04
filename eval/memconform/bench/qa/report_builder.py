"""Collects judgements and builds the report of scored answers."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from memconform.bench.qa.authors_log import official_figures, substring_labels
from memconform.bench.qa.plan import QaPlan, RubricRun, key_file
from memconform.bench.qa.records import (
    Judgement,
    OfficialFigures,
    QaReport,
    RubricReport,
    TextRecord,
    TextScores,
)
from memconform.bench.qa.scores import span, views
from memconform.errors import ExitCode, MemconformError, gravest
from memconform.records import Incident
from memconform.scoring.accuracy import qa_scores
from memconform.scoring.judge.tally import JudgingTally
from memconform.scoring.statuses import QuestionStatus, failure_lines, judge_failure
from memconform.storage.folders import RunFolder
from memconform.storage.provenance import Start
from memconform.storage.result_file import write_result
from memconform.storage.sink import json_bytes, replacing


@dataclass(frozen=True, slots=True)
class QaFinished:
    """The last event of a scoring."""

    report: QaReport
    result: Path
    judgements: dict[str, list[Judgement]]
    """By rubric, in the order of the answers; unjudged ones are `not_run`."""


class QaReportBuilder:
    """Builds the report of one scoring."""

    def __init__(self, plan: QaPlan, run_id: str) -> None:
        self._plan = plan
        self._run_id = run_id
        self._start = Start()
        self._judgements: dict[tuple[str, str], Judgement] = {}
        self.halted: MemconformError | None = None
        """Why judging ended early."""
        self.halted_rubric: str | None = None
        """The rubric by which it was judged then."""

    def add(self, judgement: Judgement) -> None:
        """Add the next judgement."""
        self._judgements[judgement.rubric, judgement.question] = judgement

    def write(self, folder: RunFolder) -> QaFinished:
        """Write the report, followed by every judgement, to the run's folder.

        Raises:
            ResultsError: if it cannot be written (`results_unwritable`).
        """
        judgements = {name: self._rows(name) for name in self._plan.rubrics}
        texts, records = self._text_scores()
        report = self._report(judgements, texts)
        rows = chain(records, *judgements.values())
        with replacing(folder.result) as target:
            write_result(target, report, map(json_bytes, rows))
        return QaFinished(report, folder.result, judgements)

    def _rows(self, rubric: str) -> list[Judgement]:
        reason = self.halted.code if self.halted else ""
        return [
            self._judgements.get((rubric, question.id))
            or Judgement(
                rubric=rubric,
                question=question.id,
                text=question.question,
                answer=self._plan.selection.hypotheses.answers[question.id],
                category=question.category,
                status=QuestionStatus.NOT_RUN,
                score=None,
                reason=reason,
                votes=[],
            )
            for question in self._plan.selection.answered
        ]

    def _report(
        self, judgements: dict[str, list[Judgement]], texts: dict[str, TextScores]
    ) -> QaReport:
        plan = self._plan
        selection = plan.selection
        rubrics = [self._rubric(name, run, judgements[name]) for name, run in plan.rubrics.items()]
        return QaReport(
            run_id=self._run_id,
            **self._start.header(plan.command),
            settings=plan.settings,
            data=key_file(selection.key, selection.disputed),
            hypotheses=selection.answer_file(),
            resumed_from=plan.resumed.parent.name if plan.resumed else None,
            rubrics=rubrics,
            text=texts,
            span=span(judgements),
            incident=Incident.of(self.halted) if self.halted else None,
            exit_code=int(self._exit_code(judgements)),
        )

    def _rubric(self, name: str, run: RubricRun, judgements: list[Judgement]) -> RubricReport:
        selection = self._plan.selection
        passed = {
            each.question: each.status is QuestionStatus.CORRECT
            for each in judgements
            if each.status.measured
        }
        tally = JudgingTally(
            run.settings,
            run.calibrations or {},
            calibratable=run.calibrations is not None,
        )
        for each in judgements:
            tally.add(each.votes, [each.status])
        if name == self.halted_rubric:
            tally.add_unfinished(self.halted)
        official = None
        if selection.key.suite == "longmemeval" and name == "longmemeval":
            official = self._official(run, passed)
        by_view = {
            view: qa_scores(
                questions, passed, selection.key.clusters, categories=selection.key.categories
            )
            for view, questions in views(selection.expected, selection.disputed).items()
        }
        return RubricReport(
            name=name,
            prompts=run.prompts,
            statuses=dict(Counter(each.status for each in judgements)),
            failures=failure_lines(
                judge_failure(each.question, each.reason)
                for each in judgements
                if each.status is QuestionStatus.JUDGE_ERROR
            ),
            views=by_view,
            # Its corrected rate is of all answers, and means nothing where some are missing.
            judging=tally.summary(void=by_view["all"].overall.rate is None),
            official=official,
            substring_labels=substring_labels(judgements) if run.prompts == "official" else None,
        )

    def _official(self, run: RubricRun, passed: dict[str, bool]) -> OfficialFigures | None:
        questions = self._plan.selection.key.questions
        return official_figures(passed, questions, [log_model(run)])

    def _text_scores(self) -> tuple[dict[str, TextScores], list[TextRecord]]:
        selection = self._plan.selection
        if selection.key.suite != "locomo":
            return {}, []
        # The extra `qa`, which LongMemEval does not need.
        from memconform.bench.qa.text_scores import text_records, text_scores  # noqa: PLC0415

        records = text_records(selection.answered, selection.hypotheses.answers)
        return {
            view: text_scores(questions, records, selection.key.clusters)
            for view, questions in views(selection.expected, selection.disputed).items()
        }, records

    def _exit_code(self, judgements: dict[str, list[Judgement]]) -> ExitCode:
        codes = [self.halted.exit_code] if self.halted else []
        selection = self._plan.selection
        statuses = {row.status for rows in judgements.values() for row in rows}
        missing = len(selection.expected) - len(selection.answered)
        # Answers that were not run are so because judging was halted, which has a code of its own.
        if missing or QuestionStatus.JUDGE_ERROR in statuses:
            codes.append(ExitCode.DAEMON)
        return gravest(codes)


def log_model(run: RubricRun) -> str:
    """The model that an official log names: without the provider, as the released script does."""
    return "+".join(judge.model.partition(":")[2] for judge in run.settings.models)
