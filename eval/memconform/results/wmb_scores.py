"""Scores of WMB-100K by the README's rules; the script's count rows, and no questions."""

import json
from pathlib import Path
from typing import Literal

from memconform.bench.wmb.records import WmbOutcome, WmbScore
from memconform.errors import UsageError
from memconform.results.loaded_runs import LoadedRun
from memconform.results.scored_run import ScoredRun, read_lines_of, scored_question
from memconform.runs.results import QuestionResult
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.folders import ROW_MARK
from memconform.storage.result_file import read_lines

_PROFILE: Literal["readme"] = "readme"


def has_outcomes(path: Path) -> bool:
    """Whether a result has outcomes; one of an earlier version has not, nor has that of --json."""
    try:
        return any(json.loads(row).get("stage") == "outcome" for row in read_lines(path))
    except (ValueError, OSError):
        return False


def read_wmb_score(path: Path) -> dict[str, LoadedRun]:
    """The run of the README's profile, by its name.

    Raises:
        UsageError: if it is unreadable, has no outcomes by these rules, or its figures are not
            those of its outcomes (`result_unreadable`).
    """
    report, outcomes = read_lines_of(path, WmbScore, WmbOutcome, "outcome")
    profile = report.profiles.get(_PROFILE)
    if profile is None or not outcomes:
        raise UsageError(
            f"{path} has no outcomes by the README's rules",
            code="result_unreadable",
            hint="write it again: memconform score … --rubric wmb --profile both --resume RUN",
        )
    answers = report.answers
    expected, measured, correct = profile.counts()
    run = ScoredRun(
        path=path,
        origin=report,
        run_id=f"{report.run_id}{ROW_MARK}{_PROFILE}",
        sdk=answers.system or Path(answers.path).stem,
        subject=_PROFILE,
        started_at=report.started_at,
        took_s=report.took_s,
        dataset=f"WMB-100K {report.data.sha256[:8]}",
        dataset_path=report.data.path,
        dataset_sha256=report.data.sha256,
        mode="-",
        reader="nobody: what was retrieved is judged",
        judge=report.settings.judge,
        method={"verb": "score of a file for WMB-100K", "index": answers.index},
        questions=[_question(outcome) for outcome in outcomes],
        stated=(expected, measured, correct),
        incident=report.incident if measured < expected else None,
        reasons=report.failures,
    )
    return {_PROFILE: run.load()}


def _question(outcome: WmbOutcome) -> QuestionResult:
    status = QuestionStatus.CORRECT if outcome.right else QuestionStatus.INCORRECT
    return scored_question(
        id=outcome.question,
        question=outcome.text,
        tags=[outcome.category],
        # Questions of one category are about one conversation.
        cluster=outcome.question.partition(".")[0],
        status=QuestionStatus.NOT_RUN if outcome.right is None else status,
        code=outcome.code,
        reason=outcome.reason,
    )
