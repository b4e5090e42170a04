"""Collects verdicts and builds the report of a scoring."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from memconform.bench.wmb.plan import WmbPlan
from memconform.bench.wmb.records import (
    AnswersFile,
    LostQuestion,
    QuestionFile,
    WmbOutcome,
    WmbScore,
    WmbVerdict,
)
from memconform.errors import ExitCode, MemconformError, gravest
from memconform.records import Failure, Incident
from memconform.scoring.judge.tally import JudgingTally
from memconform.scoring.statuses import QuestionStatus, failure_lines, judge_failure
from memconform.scoring.wmb import readme_outcomes, score_answers
from memconform.scoring.wmb_rows import ScoredAnswers, row_faults
from memconform.storage.folders import RunFolder
from memconform.storage.provenance import Start
from memconform.storage.result_file import write_result
from memconform.storage.sink import json_bytes, replacing


@dataclass(frozen=True, slots=True)
class WmbFinished:
    """The last event of a scoring."""

    report: WmbScore
    result: Path


class WmbReportBuilder:
    """Builds the report of one scoring."""

    def __init__(self, plan: WmbPlan, run_id: str) -> None:
        self._plan = plan
        self._run_id = run_id
        self._start = Start()
        self._verdicts: dict[tuple[str, str], WmbVerdict] = {}
        self.halted: MemconformError | None = None
        """Why judging ended early."""

    def add(self, verdict: WmbVerdict) -> None:
        """Add the next verdict."""
        self._verdicts[verdict.question, verdict.memories] = verdict

    def write(self, folder: RunFolder) -> WmbFinished:
        """Write the report, followed by every verdict, to the run's folder.

        Raises:
            ResultsError: if it cannot be written (`results_unwritable`).
        """
        plan = self._plan
        scored = plan.scored(
            {
                pair: each.status is QuestionStatus.CORRECT
                for pair, each in self._verdicts.items()
                if each.status.measured
            }
        )
        report = self._report(scored)
        outcomes = self._outcomes(scored) if "readme" in plan.profiles else []
        with replacing(folder.result) as target:
            rows = chain(self._verdicts.values(), outcomes)
            write_result(target, report, map(json_bytes, rows))
        return WmbFinished(report, folder.result)

    def _outcomes(self, scored: ScoredAnswers) -> Iterator[WmbOutcome]:
        counted = scored.counted
        lost = {
            each.question: Failure(code=each.code, message=each.message)
            for each in self._plan.answers.lost
        } | {
            name: Failure(code="not_run", message="the run left it out")
            for name in self._plan.answers.not_asked
        }
        for name, right in readme_outcomes(scored).items():
            question, row = self._plan.key.questions[name], counted.get(name)
            verdict = None if row is None else self._verdicts.get((name, row.whole))
            failure = lost.get(name) or Failure(code="not_run", message="it was not judged")
            if row is not None and row.error is not None:
                failure = Failure(code="error_text", message=row.error)
            elif verdict is not None:
                failure = Failure(code="judge_error", message=verdict.reason)
            reason = "" if verdict is None else verdict.reason
            yield WmbOutcome(
                question=name,
                text=question.question,
                category=question.category,
                right=right,
                code=failure.code if right is None else "",
                reason=failure.message if right is None else reason,
            )

    def _report(self, scored: ScoredAnswers) -> WmbScore:
        plan = self._plan
        needed = plan.shown_digests()
        verdicts = {pair: each for pair, each in self._verdicts.items() if pair in needed}
        statuses = Counter(each.status for each in verdicts.values())
        if unjudged := len(needed) - len(verdicts):
            statuses[QuestionStatus.NOT_RUN] += unjudged
        tally = JudgingTally(plan.scorer.settings, {}, calibratable=False)
        for verdict in verdicts.values():
            tally.add(verdict.votes, [verdict.status])
        tally.add_unfinished(self.halted)
        answers = self._answers(scored)
        profiles = {name: score_answers(scored, name) for name in plan.profiles}
        counts = [profile.counts() for profile in profiles.values()]
        partial = any(measured < expected for expected, measured, _ in counts)
        return WmbScore(
            run_id=self._run_id,
            **self._start.header(plan.command),
            label=plan.label,
            settings=plan.settings,
            data=self._questions(),
            answers=answers,
            resumed_from=plan.resumed.parent.name if plan.resumed else None,
            profiles=profiles,
            **self._undisputed(scored),
            judging=tally.summary(void=True),
            statuses=dict(statuses),
            failures=failure_lines(
                judge_failure(each.question, each.reason)
                for each in verdicts.values()
                if each.status is QuestionStatus.JUDGE_ERROR
            ),
            incident=Incident.of(self.halted) if self.halted else None,
            exit_code=int(
                gravest(
                    [
                        *([self.halted.exit_code] if self.halted else []),
                        *([ExitCode.DAEMON] if partial and not self.halted else []),
                        *([ExitCode.DAEMON] if statuses[QuestionStatus.JUDGE_ERROR] else []),
                        *([ExitCode.DAEMON] if answers.lost else []),
                        *([ExitCode.DAEMON] if answers.failed else []),
                    ]
                )
            ),
        )

    def _undisputed(self, scored: ScoredAnswers) -> dict[str, Any]:
        errata = self._plan.errata
        if errata is None:
            return {}
        rest = scored.without(errata.entries)
        return {
            "errata": errata.name,
            "omitted": dict(Counter(entry.reason for entry in errata.entries.values())),
            "undisputed": {name: score_answers(rest, name) for name in self._plan.profiles},
        }

    def _questions(self) -> QuestionFile:
        key = self._plan.key
        return QuestionFile(
            path=str(key.path.resolve()),
            sha256=key.sha256,
            questions=len(key.questions),
            by_type=dict(Counter(each.category for each in key.questions.values())),
        )

    def _answers(self, scored: ScoredAnswers) -> AnswersFile:
        stored, faults = self._plan.answers, row_faults(scored)
        return AnswersFile(
            path=str(stored.path.resolve()),
            sha256=stored.sha256,
            rows=len(stored.rows),
            missing=faults.missing,
            unknown=faults.unknown,
            repeated=faults.repeated,
            contradicted=faults.contradicted,
            reordered=faults.reordered,
            run=stored.run.run_id if stored.run else None,
            system=stored.run.system if stored.run else None,
            index=stored.run.index if stored.run else None,
            lost=list(stored.lost),
            not_asked=list(stored.not_asked),
            empty=faults.empty,
            failed=[
                LostQuestion(question=name, code="error_text", message=row.error)
                for name, row in scored.counted.items()
                if row.error is not None
            ],
        )
