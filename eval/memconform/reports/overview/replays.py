"""Replays as runs, so that their questions are shown and compared like those of `run`."""

from collections import Counter
from datetime import timedelta

from memconform.records import Failure
from memconform.replay.records import LmeQuestion, LmeResult
from memconform.runs.results import (
    DaemonRecord,
    LatencySummary,
    Provenance,
    QuestionResult,
    RankedChunk,
    RunSummary,
)
from memconform.runs.verdict import Tally
from memconform.scoring.statuses import QuestionStatus

SCENARIO = "replay"

_STATUSES = {
    "correct": QuestionStatus.CORRECT,
    "abstain_correct": QuestionStatus.CORRECT,
    "incorrect": QuestionStatus.INCORRECT,
    "abstain_incorrect": QuestionStatus.INCORRECT,
    "judge_error": QuestionStatus.JUDGE_ERROR,
    "not_run": QuestionStatus.NOT_RUN,
}


def run_of_replay(replay: LmeResult) -> tuple[RunSummary, list[QuestionResult]]:
    """The summary and the questions of one SDK's replay."""
    questions = [_question(question) for question in replay.questions]
    counts = Counter(question.verdict for question in questions)
    measured = sum(n for status, n in counts.items() if status.measured)
    passed = counts[QuestionStatus.CORRECT]
    tally = Tally()
    for question in questions:
        tally.add(question)
    has_rate = measured > 0 and replay.incident is None
    settings = replay.settings
    names = {
        "dataset": f"LongMemEval {replay.dataset_sha[:8]}",
        "scenario": SCENARIO,
        "mode": settings.retrieval.mode.value,
        "scorer": "judge" if settings.judge is not None else "exact",
    }
    summary = RunSummary(
        **names,
        # Its folder may hold several SDKs, and a continued replay begins anew.
        run_id=f"{replay.started_at:%Y%m%dT%H%M%SZ}-{replay.sdk}-replay",
        sdk=replay.sdk,
        brain=settings.brain,
        started_at=replay.started_at.isoformat(),
        finished_at=(replay.started_at + timedelta(seconds=replay.took_s)).isoformat(),
        total=len(questions),
        passed=passed,
        pass_rate=passed / len(questions) if has_rate else None,
        pass_rate_interval=tally.interval() if has_rate else (0.0, 1.0),
        pass_rate_answered=passed / measured if measured else None,
        mean_score=passed / measured if has_rate else None,
        counts={status: counts[status] for status in QuestionStatus},
        unstable=0,
        served_modes={},
        latency=LatencySummary(done=replay.latency.retrieval, first_event=None, first_delta=None),
        floors=[],
        exit_code=replay.exit_code,
        reasons=replay.failures,
        incident=replay.incident,
        daemon=DaemonRecord(
            name=None,
            version=replay.version,
            build_hash=replay.build_hash,
            ready_ms=None,
            rss_peak_bytes=None,
            cpu_seconds=None,
        ),
        seeded=None,
        provenance=Provenance(
            harness_version=replay.harness_version,
            command=replay.command,
            python_version=replay.python_version,
            host=replay.host,
            git_revision=replay.git_revision,
            dataset_path="",
            dataset_sha256=replay.dataset_sha,
            rescored_from=None,
            resumed_from=None,
            settings=names | _settings(replay),
            settings_sha256="",
        ),
    )
    return summary, questions


def _settings(replay: LmeResult) -> dict[str, object]:
    """What decides whether two replays are comparable, under the names that runs have."""
    settings = replay.settings
    retrieval = settings.retrieval
    reader = settings.reader.model_dump(mode="json") if settings.reader is not None else None
    return {
        "dataset_sha256": replay.dataset_sha,
        "questions": settings.questions,
        "top_k": retrieval.top_k,
        "candidate_k": retrieval.candidate_k,
        "rerank_top_n": retrieval.rerank_top_n,
        "seeding": settings.brain,
        "upstream": [settings.endpoint_style, settings.agentic, reader, settings.reader_prompt],
        "judge": settings.judge.model_dump(mode="json") if settings.judge is not None else None,
        "contract": settings.contract,
    }


def _question(question: LmeQuestion) -> QuestionResult:
    status = _STATUSES[question.judge_verdict]
    measured = status.measured
    error = None
    if not measured:
        error = Failure(code=question.code, message=question.reason)
    return QuestionResult(
        id=question.id,
        question=question.question,
        tags=[question.category],
        question_date=question.question_date,
        cluster=question.cluster,
        verdict=status,
        passed=status is QuestionStatus.CORRECT,
        score=float(status is QuestionStatus.CORRECT) if measured else None,
        answer=question.answer,
        latency_ms=question.retrieval_ms,
        timings=None,
        citations=[],
        ranking=[
            RankedChunk(
                chunk_id=f"{hit.path}, session {hit.session}",
                document_id=None,
                path=hit.path,
                score=hit.score,
                content=hit.text_sha256[:16],
            )
            for hit in question.hits
        ],
        trace=None,
        error=error,
        reason=question.reason if measured else "",
        judges=question.votes,
    )
