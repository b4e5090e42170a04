"""Result files of runs, made from questions."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

from memconform.records import Failure
from memconform.runs.results import (
    CallTimings,
    CitedChunk,
    DaemonRecord,
    LatencySummary,
    Provenance,
    QuestionResult,
    RankedChunk,
    RunSummary,
)
from memconform.runs.verdict import Tally
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.result_file import write_result
from memconform.storage.sink import json_bytes, replacing


def question(
    name: str,
    status: QuestionStatus = QuestionStatus.CORRECT,
    *,
    text: str = "Where is the heron?",
    answer: str | None = "By the pond.",
    paths: Sequence[str] = ("a.md", "b.md"),
    **fields: Any,
) -> QuestionResult:
    """A question with a ranking of these paths, best first."""
    measured = status.measured
    ranking = [
        RankedChunk(
            chunk_id=f"{path}#0",
            document_id=path,
            path=path,
            score=1 - rank / 10,
            content=sha256(path.encode()).hexdigest()[:16],
        )
        for rank, path in enumerate(paths)
    ]
    values: dict[str, Any] = {
        "id": name,
        "question": text,
        "tags": ["facts"],
        "verdict": status,
        "passed": status is QuestionStatus.CORRECT,
        "score": float(status is QuestionStatus.CORRECT) if measured else None,
        "answer": answer if measured else None,
        "latency_ms": 2.0 if measured else None,
        "timings": CallTimings(first_byte=1.0, first_event=1.2, first_delta=1.5, done=2.0)
        if measured
        else None,
        "citations": [CitedChunk(chunk_id=f"{paths[0]}#0", path=paths[0], score=1.0)]
        if measured and paths
        else [],
        "ranking": ranking if measured else [],
        "trace": {"effectiveMode": "bm25", "candidateK": 50} if measured else None,
        "error": None
        if measured or status is QuestionStatus.NOT_APPLICABLE
        else Failure(code="timeout", message="no event in 30 s", curl="curl -X POST …"),
    }
    return QuestionResult(**(values | fields))


def write_run(path: Path, sdk: str, questions: Sequence[QuestionResult], **fields: Any) -> Path:
    """Write a run's result as `run` does; `fields` replace those of its summary."""
    counts = Counter(q.verdict for q in questions)
    expected = [q for q in questions if q.verdict.expected]
    scores = [q.score for q in questions if q.score is not None]
    passed = counts[QuestionStatus.CORRECT]
    tally = Tally()
    for result in questions:
        tally.add(result)
    names = {
        "dataset": fields.get("dataset", "birds"),
        "scenario": fields.get("scenario", "ask-basic"),
        "mode": fields.get("mode", "bm25"),
        "scorer": "exact",
    }
    settings = names | {"dataset_sha256": "d", "questions": len(questions), "top_k": 5}
    values: dict[str, Any] = names | {
        "schema_version": "memconform/result@1",
        "run_id": f"run-{sdk}",
        "sdk": sdk,
        "brain": "b",
        "started_at": "2026-01-31T10:00:00+00:00",
        "finished_at": "2026-01-31T10:01:00+00:00",
        "total": len(expected),
        "passed": passed,
        "pass_rate": passed / len(expected) if scores else None,
        "pass_rate_interval": tally.interval() if scores else (0.0, 1.0),
        "pass_rate_answered": passed / len(scores) if scores else None,
        "mean_score": fmean(scores) if scores else None,
        "counts": {status: counts[status] for status in QuestionStatus},
        "unstable": 0,
        "served_modes": {"bm25": len(scores)},
        "latency": LatencySummary(done=None, first_event=None, first_delta=None),
        "floors": [],
        "exit_code": 0 if len(scores) == len(expected) else 3,
        "reasons": [],
        "incident": None,
        "daemon": DaemonRecord(
            name=sdk,
            version="1",
            build_hash=None,
            ready_ms=1.0,
            rss_peak_bytes=None,
            cpu_seconds=None,
        ),
        "seeded": None,
        "provenance": Provenance(
            harness_version="0",
            command=["memconform", "run", "--sdk", sdk, "--dataset", "birds"],
            python_version="3",
            host="h",
            git_revision=None,
            dataset_path="birds.jsonl",
            dataset_sha256="d",
            rescored_from=None,
            resumed_from=None,
            settings=settings,
            settings_sha256="s",
        ),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path.resolve()) as file:
        write_result(file, RunSummary(**(values | fields)), map(json_bytes, questions))
    return path
