"""Results of `lme run` and `lme tri`: one SDK each."""

from pathlib import Path

from memconform.replay.records import LmeQuestion, LmeResult
from memconform.replay.stored_results import read_lme_result
from memconform.results.loaded_runs import LoadedRun
from memconform.results.scored_run import DAEMONS_READER, ScoredRun, scored_question
from memconform.runs.results import QuestionResult, RankedChunk

_NO_READER = "nobody: what was retrieved is judged"


def read_replay(path: Path) -> dict[str, LoadedRun]:
    """The run of the file's SDK, by its name; raises UsageError as `read_lme_result` does."""
    replay = read_lme_result(path)
    return {replay.sdk: _run(path, replay)}


def _run(path: Path, replay: LmeResult) -> LoadedRun:
    settings, retrieval = replay.settings, replay.settings.retrieval
    # Searches of agents run concurrently, and their latencies contain each other.
    is_timed = not settings.agentic
    return ScoredRun(
        path=path,
        origin=replay,
        # Its folder may hold several SDKs, and a continued replay begins anew.
        run_id=f"{replay.started_at:%Y%m%dT%H%M%SZ}-{replay.sdk}-replay",
        sdk=replay.sdk,
        started_at=replay.started_at,
        took_s=replay.took_s,
        dataset=f"LongMemEval {replay.dataset_sha[:8]}",
        dataset_sha256=replay.dataset_sha,
        mode=retrieval.mode.value,
        reader=DAEMONS_READER
        if settings.endpoint_style == "full"
        else settings.reader or _NO_READER,
        judge=settings.judge or "the reference answers",
        method={
            "verb": "lme",
            **retrieval.model_dump(mode="json", exclude={"rank_by"}),
            "brain": settings.brain[:12],
            "agentic": settings.agentic,
            "prompt": settings.reader_prompt,
            "evidence_tokens": settings.evidence_tokens,
            "contract": settings.contract,
        },
        questions=[_question(question, is_timed=is_timed) for question in replay.questions],
        stated=(
            replay.questions_run,
            replay.measured,
            replay.scores.overall.correct,
        ),
        incident=replay.incident,
        reasons=replay.failures,
        brain=settings.brain,
        latency=replay.latency.retrieval if is_timed else None,
        version=replay.version,
        build_hash=replay.build_hash,
        # A control's part has its name, and no mode; an SDK may be called `oracle`, too.
        is_control=replay.sdk == settings.benchmark_mode and replay.mode_rule is None,
    ).load()


def _question(question: LmeQuestion, *, is_timed: bool) -> QuestionResult:
    return scored_question(
        id=question.id,
        question=question.question,
        tags=[question.category],
        question_date=question.question_date,
        cluster=question.cluster,
        status=question.status,
        code=question.code,
        reason=question.reason,
        answer=question.answer,
        latency_ms=question.retrieval_ms if is_timed else None,
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
        judges=question.votes,
    )
