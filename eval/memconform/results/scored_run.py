"""One subject of a stored result in the form of a run: an SDK, an arm, answers under a rubric."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from memconform.bench.digests import digest_of_names
from memconform.errors import ExitCode, UsageError
from memconform.llm.records import ModelSettings
from memconform.printing.plurals import plural
from memconform.records import Failure, Incident, Record
from memconform.results.loaded_runs import LoadedRun
from memconform.runs.results import (
    DaemonRecord,
    LatencySummary,
    Provenance,
    QuestionResult,
    RunSummary,
)
from memconform.runs.verdict import Tally
from memconform.scoring.judge.records import JudgeSettings
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.provenance import HostOrigin
from memconform.storage.result_file import read_head, read_lines
from memconform.validation_faults import first_fault

_Report = TypeVar("_Report", bound=Record)
_Line = TypeVar("_Line", bound=Record)
SCENARIO = "scored-answers"
DAEMONS_READER = "the daemon's own reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRun:
    """What a report says of one subject, under the names that runs have."""

    path: Path
    origin: HostOrigin
    run_id: str
    sdk: str
    subject: str = ""
    """What selects it behind the path, if the file has several."""
    started_at: datetime
    took_s: float
    dataset: str
    dataset_path: str = ""
    dataset_sha256: str
    mode: str
    reader: ModelSettings | str | None
    """What answered: a model, or a sentence; None if the report does not know it."""
    judge: JudgeSettings | str
    """What scored the answers: judges, or a sentence."""
    method: dict[str, object]
    """How the answers were made. It may differ between results that are compared."""
    questions: Sequence[QuestionResult]
    stated: tuple[int, int, int]
    """Expected, measured and correct questions by the report."""
    incident: Incident | None = None
    reasons: Sequence[str] = ()
    brain: str = ""
    latency: QuantileSummary | None = None
    version: str | None = None
    build_hash: str | None = None
    is_control: bool = False

    def load(self) -> LoadedRun:
        """The run with its questions in the order of their ids, which all verbs have in common.

        Raises:
            UsageError: if the report's counts are not those of the questions
                (`result_unreadable`).
        """
        tally = Tally()
        for question in self.questions:
            tally.add(question)
        actual = (tally.total, tally.measured, tally.passed)
        if actual != self.stated:
            raise contradiction(
                self.path,
                f"{self.run_id}: expected, measured and correct are {self.stated}, and the"
                f" questions give {actual}",
            )
        questions = tuple(sorted(self.questions, key=lambda question: question.id))
        return LoadedRun(
            self.sdk,
            self.path,
            self._summary(tally),
            questions,
            self.subject,
            is_control=self.is_control,
        )

    def _summary(self, tally: Tally) -> RunSummary:
        measured, total, passed = tally.measured, tally.total, tally.passed
        has_rate = measured > 0 and self.incident is None
        exit_code = ExitCode.OK if measured == total else ExitCode.DAEMON
        return RunSummary(
            run_id=self.run_id,
            sdk=self.sdk,
            scenario=SCENARIO,
            mode=self.mode,
            dataset=self.dataset,
            scorer=self._scorer,
            brain=self.brain,
            started_at=self.started_at.isoformat(),
            finished_at=(self.started_at + timedelta(seconds=self.took_s)).isoformat(),
            total=total,
            passed=passed,
            pass_rate=passed / total if has_rate else None,
            pass_rate_interval=tally.interval() if has_rate else (0.0, 1.0),
            pass_rate_answered=passed / measured if measured else None,
            mean_score=tally.score.value if has_rate else None,
            counts={status: tally.counts[status] for status in QuestionStatus},
            unstable=0,
            served_modes={},
            latency=LatencySummary(done=self.latency, first_event=None, first_delta=None),
            floors=[],
            exit_code=exit_code if self.incident is None else self.incident.exit_code,
            reasons=list(self.reasons),
            incident=self.incident,
            daemon=DaemonRecord(
                name=None,
                version=self.version,
                build_hash=self.build_hash,
                ready_ms=None,
                rss_peak_bytes=None,
                cpu_seconds=None,
            ),
            seeded=None,
            provenance=Provenance(
                **{name: getattr(self.origin, name) for name in HostOrigin.model_fields},
                dataset_path=self.dataset_path,
                dataset_sha256=self.dataset_sha256,
                rescored_from=None,
                resumed_from=None,
                settings=self._settings(),
                settings_sha256="",
            ),
        )

    @property
    def _scorer(self) -> str:
        return "judge" if isinstance(self.judge, JudgeSettings) else "exact"

    def _settings(self) -> dict[str, object]:
        """What decides whether two results are comparable, and how their answers were made."""
        ids = [question.id for question in self.questions]
        judge, reader = self.judge, self.reader
        return {
            "scenario": SCENARIO,
            "scorer": self._scorer,
            "dataset_sha256": self.dataset_sha256,
            "questions": f"{plural(len(ids), 'question')}, {digest_of_names(ids)[:12]}",
            "judge": judge if isinstance(judge, str) else judge.model_dump(mode="json"),
            "reader": reader.model_dump(mode="json")
            if isinstance(reader, ModelSettings)
            else reader,
            "method": self.method,
        }


def scored_question(
    *,
    id: str,  # noqa: A002 - the field's name
    status: QuestionStatus,
    code: str,
    reason: str,
    **more: Any,  # noqa: ANN401 - further fields
) -> QuestionResult:
    """A question of a result that another verb than `run` wrote.

    Args:
        id: of the question.
        status: how it ended.
        code: why it was not measured, if it was not.
        reason: of the judges, or what the code says.
        more: further fields of `QuestionResult`.
    """
    measured, passed = status.measured, status is QuestionStatus.CORRECT
    empty: dict[str, Any] = {
        **dict.fromkeys(("answer", "latency_ms", "timings", "trace")),
        "citations": [],
        "ranking": [],
    }
    return QuestionResult(
        id=id,
        verdict=status,
        passed=passed,
        score=float(passed) if measured else None,
        error=None if measured else Failure(code=code, message=reason),
        reason=reason if measured else "",
        **empty | more,
    )


def contradiction(path: Path, excerpt: str) -> UsageError:
    """The error for a result whose figures are not those of its questions."""
    return UsageError(
        f"{path} contradicts itself",
        code="result_unreadable",
        hint="give the result as memconform wrote it: results/runs/<run-id>/result.json",
        excerpt=excerpt,
    )


def read_lines_of(
    path: Path, report: type[_Report], line: type[_Line], stage: str
) -> tuple[_Report, list[_Line]]:
    """Read the report of a result, and its lines of one stage.

    Raises:
        UsageError: if it is unreadable (`result_unreadable`).
    """
    try:
        # pydantic's own parser refuses half of a surrogate pair, which a reply may have.
        rows = map(json.loads, read_lines(path))
        lines = [line.model_validate(row) for row in rows if row.get("stage") == stage]
        return report.model_validate(json.loads(read_head(path))), lines
    except ValidationError as error:
        raise _unreadable(path, first_fault(error)) from error
    except (ValueError, OSError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: Path, excerpt: str) -> UsageError:
    return UsageError(
        f"{path} is not a result with its answers",
        code="result_unreadable",
        hint="give results/runs/<run-id>/result.json, the run's folder or its id; the file of"
        " --json has no answers",
        excerpt=excerpt,
    )
