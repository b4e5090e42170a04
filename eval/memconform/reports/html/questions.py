"""Data of the question table and of the questions' pages, one group of runs after the other."""

import hashlib
import json
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from pydantic import ValidationError

from memconform.contract.ask import AskRequest
from memconform.contract.core import SearchRequest
from memconform.reports.html.blocks import Blocks
from memconform.reports.overview.groups import QuestionRow, RunGroup
from memconform.results.divergence import Stage
from memconform.results.loaded_runs import LoadedRun
from memconform.runs.results import QuestionResult
from memconform.scoring.statuses import QuestionStatus

STATUSES = [status.value for status in QuestionStatus]
STAGES = ["", *(stage.value for stage in Stage)]
"""The first one is that of questions on which no pair differs."""

DETAILS_PER_BLOCK = 100
"""Questions in a block of details: one is decoded when a question is opened."""

_WIRE_LIMIT = 32 * 1024
"""Bytes shown of an exchange; the file beside the result has all of it."""


@dataclass(slots=True)
class GroupData:
    """Collects the rows of a group in columns, and writes them to blocks."""

    number: int
    group: RunGroup
    blocks: Blocks
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    tags: list[list[int]] = field(default_factory=list)
    tag_names: dict[str, int] = field(default_factory=dict)
    status: list[list[int]] = field(default_factory=list)
    score: list[list[float | None]] = field(default_factory=list)
    latency: list[list[float | None]] = field(default_factory=list)
    first_hit: list[list[int | None]] = field(default_factory=list)
    stages: list[list[int]] = field(default_factory=list)
    """For each question, the stages at which pairs of runs differ."""
    outliers: list[int] = field(default_factory=list)
    answers: list[list[str | int | None]] = field(default_factory=list)
    evidence: list[list[str]] = field(default_factory=list)
    _details: list[dict[str, Any]] = field(default_factory=list)
    _detail_blocks: int = 0

    def __post_init__(self) -> None:
        runs = len(self.group.current)
        for column in (self.status, self.score, self.latency, self.first_hit):
            column.extend([] for _ in range(runs))

    def add(self, row: QuestionRow) -> None:
        """Take one question."""
        first = row.results[0]
        self.ids.append(first.id)
        self.texts.append(first.question)
        self.tags.append([self.tag_names.setdefault(t, len(self.tag_names)) for t in first.tags])
        for index, result in enumerate(row.results):
            self.status[index].append(STATUSES.index(result.verdict.value))
            self.score[index].append(None if result.score is None else round(result.score, 4))
            self.latency[index].append(_milliseconds(result.latency_ms))
            self.first_hit[index].append(result.first_hit)
        stages = {STAGES.index(pair.divergence.stage.value) for pair in row.divergences}
        self.stages.append(sorted(stages))
        self.outliers.append(row.outlier)
        self.answers.append(_shared([result.answer for result in row.results]))
        # One string for all questions that found a document.
        paths = {intern(chunk.path): None for result in row.results for chunk in result.ranking}
        self.evidence.append(list(paths))
        self._add_details(row)

    def finish(self) -> None:
        """Write what is left, and the columns."""
        self._write_details()
        number = self.number
        regressed, fixed = self._changes()
        self.blocks.add(
            f"questions-{number}",
            {
                "ids": self.ids,
                "texts": self.texts,
                "tags": self.tags,
                "tagNames": list(self.tag_names),
                "status": self.status,
                "score": self.score,
                "latency": self.latency,
                "firstHit": self.first_hit,
                "stages": self.stages,
                "outliers": self.outliers,
                "regressed": regressed,
                "fixed": fixed,
                "detailsPerBlock": DETAILS_PER_BLOCK,
            },
        )
        self.blocks.add(f"answers-{number}", {"answers": self.answers, "evidence": self.evidence})

    def _changes(self) -> tuple[list[list[int]], list[list[int]]]:
        """By run, the positions of questions that regressed, and of those that it fixes."""
        positions = {name: index for index, name in enumerate(self.ids)}
        changes = [self.group.changes.get(run.name) for run in self.group.current]
        regressed = [
            [positions[q] for q in change.regressions] if change is not None else []
            for change in changes
        ]
        fixed = [
            [positions[q] for q in change.fixes] if change is not None else [] for change in changes
        ]
        return regressed, fixed

    def _add_details(self, row: QuestionRow) -> None:
        results = [
            _details(run, result)
            for run, result in zip(self.group.current, row.results, strict=True)
        ]
        divergences = [
            [pair.first, pair.second, pair.divergence.stage.value, pair.divergence.detail]
            for pair in row.divergences
        ]
        self._details.append({"runs": results, "divergences": divergences})
        if len(self._details) == DETAILS_PER_BLOCK:
            self._write_details()

    def _write_details(self) -> None:
        if self._details:
            self.blocks.add(f"details-{self.number}-{self._detail_blocks}", self._details)
            self._detail_blocks += 1
            self._details.clear()


def _milliseconds(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _shared(answers: list[str | None]) -> list[str | int | None]:
    """Answers, those equal to an earlier run's as the number of that run."""
    shared: list[str | int | None] = []
    for index, answer in enumerate(answers):
        earlier = answers.index(answer)
        shared.append(answer if answer is None or earlier == index else earlier)
    return shared


def _details(run: LoadedRun, result: QuestionResult) -> dict[str, Any]:
    """What the page of a question shows of one run, besides the columns of the table."""
    details: dict[str, Any] = {
        "ranking": [
            [chunk.path, chunk.chunk_id, round(chunk.score, 9), chunk.content]
            for chunk in result.ranking
        ],
        "citations": [[cited.path, cited.chunk_id, cited.score] for cited in result.citations],
    }
    if result.timings is not None:
        timings = result.timings
        details["timings"] = [
            _milliseconds(value)
            for value in (
                timings.first_byte,
                timings.first_event,
                timings.first_delta,
                timings.done,
            )
        ]
    optional: dict[str, Any] = {
        "trace": result.trace,
        "reason": result.reason,
        "redacted": result.redacted,
        "attempts": [
            [a.verdict.value, a.score, _milliseconds(a.latency_ms)] for a in result.attempts
        ],
        "votes": [
            [v.model, v.served_model, v.verdict, v.score, v.reason, v.attempt]
            for v in result.judges
        ],
        "request": _request_body(run, result),
    }
    if result.error is not None:
        error = result.error
        optional["error"] = [error.code, error.message, error.body, error.curl]
        optional["wire"] = _wire(run, error.wire)
    return details | {key: value for key, value in optional.items() if value}


def _wire(run: LoadedRun, name: str | None) -> str:
    """The saved exchange of a failed question; empty if its file is not beside the result."""
    if name is None:
        return ""
    folder = run.path.parent.resolve()
    try:
        path = (folder / name).resolve()
        if not (path.is_relative_to(folder) and path.is_file()):
            return ""
        with path.open("rb") as file:
            data = file.read(_WIRE_LIMIT + 1)
    except (OSError, ValueError):
        # ValueError: a name with NUL.
        return ""
    text = data[:_WIRE_LIMIT].decode("utf-8", "replace")
    return f"{text}\n(the rest is in {name})" if len(data) > _WIRE_LIMIT else text


def _request_body(run: LoadedRun, result: QuestionResult) -> str:
    """The request's body, rebuilt from the settings; empty unless its digest is as recorded."""
    if result.seen is None:
        return ""
    settings, summary = run.summary.provenance.settings, run.summary
    is_search = summary.scenario == "search-retrieve-only"
    try:
        common: dict[str, Any] = {
            "top_k": settings.get("top_k"),
            "mode": summary.mode,
            "candidate_k": settings.get("candidate_k") or None,
            "rerank_top_n": settings.get("rerank_top_n") or None,
            "question_date": result.question_date if summary.scenario != "ask-basic" else None,
        }
        request: SearchRequest | AskRequest
        if is_search:
            request = SearchRequest(query=result.question, **common)
        else:
            reader = "augmented" if summary.scenario == "ask-augmented" else None
            request = AskRequest(question=result.question, reader_mode=reader, **common)
    except ValidationError:
        return ""
    # As httpx encodes JSON; the digest says whether it was sent so.
    body = json.dumps(request.to_body(), ensure_ascii=False, separators=(",", ":"))
    head = b"POST search\n" if is_search else b"POST ask\n"
    try:
        digest = hashlib.sha256(head + body.encode()).hexdigest()
    except UnicodeEncodeError:
        return ""
    return body if digest == result.seen.request else ""
