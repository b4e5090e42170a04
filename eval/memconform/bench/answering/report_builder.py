"""Collects answers and builds their report."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from memconform.bench.answering.arms import WITHOUT_EVIDENCE
from memconform.bench.answering.plan import AnswerPlan, Arm
from memconform.bench.answering.records import AnswerReport, ArmAnswer, ArmReport, Role, RoleUse
from memconform.bench.answering.scores import (
    NO_MEMORY,
    ORACLE,
    by_gold,
    kept_gain,
    measured_outcomes,
)
from memconform.bench.qa.records import TextMetric
from memconform.bench.qa.scores import views
from memconform.errors import ExitCode, MemconformError, gravest
from memconform.llm.accounting import CallTotals
from memconform.records import Failure, Incident
from memconform.scoring.accuracy import qa_scores
from memconform.scoring.costs import RoleCost
from memconform.scoring.reader.reader import Reading
from memconform.scoring.statuses import failure_lines
from memconform.storage.folders import RunFolder
from memconform.storage.provenance import Start
from memconform.storage.result_file import write_result
from memconform.storage.sink import json_bytes, replacing


@dataclass(frozen=True, slots=True)
class AnswersFinished:
    """The last event of answering."""

    report: AnswerReport
    result: Path
    answers: dict[str, list[ArmAnswer]]
    """By arm, in the order of the questions; those that were not reached are `not_run`."""


class AnswerReportBuilder:
    """Builds the report of one command."""

    def __init__(self, plan: AnswerPlan, run_id: str) -> None:
        self._plan = plan
        self._run_id = run_id
        self._start = Start()
        self._records: dict[str, dict[str, ArmAnswer]] = defaultdict(dict)
        self._calls: dict[str, dict[str, CallTotals]] = defaultdict(
            lambda: {"reader": CallTotals(), "notes": CallTotals()}
        )
        self.errors: dict[str, MemconformError] = {}
        """By arm, the error that ended it."""
        self.interrupted: MemconformError | None = None

    def add(self, record: ArmAnswer) -> None:
        """Add the next answer."""
        self._records[record.arm][record.question] = record

    def count(self, arm: str, reading: Reading) -> None:
        """Count the calls of a question that was read, answered or not."""
        totals = self._calls[arm]
        totals["reader"].merge(reading.reader)
        totals["notes"].merge(reading.notes)

    def write(self, folder: RunFolder) -> AnswersFinished:
        """Write the report, followed by every answer, to the run's folder.

        Raises:
            ResultsError: if it cannot be written (`results_unwritable`).
        """
        answers = {arm.name: self._rows(arm) for arm in self._plan.arms}
        report = self._report(answers)
        with replacing(folder.result) as target:
            write_result(target, report, map(json_bytes, chain(*answers.values())))
        return AnswersFinished(report, folder.result, answers)

    def _rows(self, arm: Arm) -> list[ArmAnswer]:
        known = self._records[arm.name]
        error = self.errors.get(arm.name) or self.interrupted
        failure = Failure(
            code=error.code if error else "no_answer", message=error.message if error else ""
        )
        rows = [
            known.get(task.question.id) or ArmAnswer.unanswered(arm.name, task.question, failure)
            for task in self._plan.tasks
        ]
        if self._plan.settings.suite != "locomo":
            return rows
        # The extra `qa`, which LongMemEval does not need.
        from memconform.bench.answering.token_f1 import with_f1  # noqa: PLC0415

        return with_f1([task.question for task in self._plan.tasks], rows)

    def _report(self, answers: dict[str, list[ArmAnswer]]) -> AnswerReport:
        plan = self._plan
        arms = [self._arm(arm, answers) for arm in plan.arms]
        return AnswerReport(
            run_id=self._run_id,
            **self._start.header(plan.command),
            settings=plan.settings,
            data=plan.data,
            questions=len(plan.tasks),
            served_models=sorted(
                {row.served_model for rows in answers.values() for row in rows} - {""}
            ),
            benches=list(plan.benches),
            arms=arms,
            incident=Incident.of(self.interrupted) if self.interrupted else None,
            exit_code=int(self._exit_code(answers)),
        )

    def _arm(self, arm: Arm, answers: dict[str, list[ArmAnswer]]) -> ArmReport:
        plan, records = self._plan, answers[arm.name]
        questions = [task.question for task in plan.tasks]
        clusters = plan.key.clusters or None
        right = measured_outcomes(records)
        categories = {question.category for question in questions}
        with_gold, without_gold = (
            (None, None)
            if arm.control in WITHOUT_EVIDENCE or arm.is_daemons_own
            else by_gold(questions, records, clusters)
        )
        kept = None
        # The daemon's reader is another model, whose gain is not that of this one.
        if arm.name not in (ORACLE, NO_MEMORY) and not arm.is_daemons_own:
            oracle, no_memory = (
                measured_outcomes(answers[name]) if name in answers else None
                for name in (ORACLE, NO_MEMORY)
            )
            kept = kept_gain(questions, right, oracle, no_memory, clusters)
        return ArmReport(
            name=arm.name,
            kind=arm.kind,
            measured=len(right) == len(questions),
            views={
                view: qa_scores(chosen, right, clusters, categories=categories)
                for view, chosen in views(questions, plan.disputed).items()
            },
            with_gold=with_gold,
            without_gold=without_gold,
            kept=kept,
            f1=self._f1(records),
            use=self._use(arm, records),
            statuses=dict(Counter(record.status for record in records)),
            failures=failure_lines(
                (record.code or record.status.value, record.question, record.reason)
                for record in records
                if not record.status.measured
            ),
            cut=sum(record.left_out > 0 for record in records),
            incident=Incident.of(self.errors[arm.name]) if arm.name in self.errors else None,
            other_retrieval=sum(arm.is_from_other_items(question.id) for question in questions)
            if arm.is_daemons_own
            else None,
        )

    def _f1(self, records: Sequence[ArmAnswer]) -> TextMetric | None:
        if self._plan.settings.suite != "locomo":
            return None
        from memconform.bench.answering.token_f1 import mean_f1  # noqa: PLC0415 - the extra `qa`

        return mean_f1(records, self._plan.key.clusters)

    def _use(self, arm: Arm, records: Sequence[ArmAnswer]) -> list[RoleUse]:
        """The roles that made calls."""
        costs: dict[Role, RoleCost] = {
            "reader": RoleCost.of_calls(self._calls[arm.name]["reader"]),
            "notes": RoleCost.of_calls(self._calls[arm.name]["notes"]),
            "judge": RoleCost.of_votes(vote for record in records for vote in record.votes),
        }
        return [
            RoleUse(role=role, **cost.model_dump()) for role, cost in costs.items() if cost.calls
        ]

    def _exit_code(self, answers: dict[str, list[ArmAnswer]]) -> ExitCode:
        errors = [*self.errors.values(), *filter(None, [self.interrupted])]
        codes = [error.exit_code for error in errors]
        # What an error that concerns all calls left unmeasured has that error's code.
        known = {error.code for error in errors}
        unmeasured = [r for records in answers.values() for r in records if not r.status.measured]
        if any(record.code not in known for record in unmeasured):
            codes.append(ExitCode.DAEMON)
        return gravest(codes)
