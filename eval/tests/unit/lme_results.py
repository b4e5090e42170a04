"""Results of the replay, made of verdicts."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memconform.llm.records import ModelSettings
from memconform.records import Incident
from memconform.replay.records import (
    CategoryScore,
    CostAccounting,
    Latencies,
    LmeQuestion,
    LmeResult,
    ReplayRetrievalSettings,
    ReplaySettings,
)
from memconform.replay.stored_results import lme_scores
from memconform.scoring.judge.records import JudgeSettings
from memconform.storage.sink import replacing

RETRIEVAL = ReplayRetrievalSettings(
    mode="hybrid", top_k=20, candidate_k=None, rerank_top_n=None, scope=None, project=None,
    path_prefix=None, session_filter=False,
)  # fmt: skip
SETTINGS = ReplaySettings(
    dataset_sha256="d" * 64,
    questions=[],
    benchmark_mode="real-retrieval",
    endpoint_style="retrieve-only",
    ingest_mode="replay",
    brain="brain",
    retrieval=RETRIEVAL,
    reader=ModelSettings(model="openai:reader", sampling={}),
    reader_prompt="prompt",
    evidence_tokens=1000,
    judge=JudgeSettings(models=[ModelSettings(model="openai:judge", sampling={})], prompt="rubric"),
)


def question(name: str, verdict: str = "correct", **fields: Any) -> LmeQuestion:
    """A question; its category is that before the dash of its id."""
    measured = verdict not in ("judge_error", "not_run")
    values: dict[str, Any] = {
        "category": name.partition("-")[0],
        "question": f"What of {name}?",
        "question_date": "2024/01/31 (Wed) 10:00",
        "reference_answers": [f"the {name}"],
        "abstention": verdict.startswith("abstain"),
        "answer": None if verdict == "not_run" else f"It is {name}, {verdict}.",
        "exact_match": None,
        "code": "" if measured else "llm_failed",
        "reason": "as it says",
        "served_model": "",
        "answer_session_ids": ["s1"],
        "hits": [],
        "first_gold_rank": 1,
        "gold_retrieved": True,
        "shown": 1,
        "left_out": 0,
        "retrieval_ms": 1.0,
        "reader_ms": None,
        "judge_ms": None,
    }
    return LmeQuestion.model_validate({"id": name, "judge_verdict": verdict, **values, **fields})


def result_of(
    questions: Sequence[LmeQuestion],
    *,
    sdk: str = "go",
    settings: Mapping[str, Any] | None = None,
    incident: Incident | None = None,
) -> LmeResult:
    """A result whose figures are those of the questions."""
    scores = lme_scores(questions)
    rate = scores.overall.rate
    used = {"questions": [each.id for each in questions], **(settings or {})}
    replay = SETTINGS.model_copy(update=used)
    return LmeResult(
        harness_version="1", command=["memconform"], python_version="3", host="host",
        git_revision=None, started_at=datetime(2026, 1, 31, tzinfo=UTC), exit_code=0, sdk=sdk,
        version="1.2", build_hash="0123", took_s=1.0, dataset_sha=replay.dataset_sha256,
        settings=replay, questions_run=len(questions),
        measured=sum(each.measured for each in questions),
        overall_score=rate.value / 100 if rate else None,
        overall_interval=(rate.low / 100, rate.high / 100) if rate else None,
        task_avg_score=None, abstention_score=None,
        by_category={
            name: CategoryScore(
                questions=each.expected, measured=each.measured, correct=each.correct,
                score=each.rate.value / 100 if each.rate else None,
                interval=(each.rate.low / 100, each.rate.high / 100) if each.rate else None,
            )
            for name, each in scores.by_category.items()
        },
        exact_match=None, scores=scores, retrieval={}, correct_given_gold=None,
        cost_accounting=CostAccounting(total_usd=0.0, by_role={}), latency_p50_ms=None,
        latency=Latencies(retrieval=None, reader=None, judge=None), failures=[],
        incident=incident, questions=list(questions),
    )  # fmt: skip


def write_lme(path: Path, questions: Sequence[LmeQuestion], **settings: Any) -> Path:
    """Write a result of these questions; keyword arguments are those of `result_of`."""
    with replacing(path) as target:
        target.write_json(result_of(questions, **settings))
    return path
