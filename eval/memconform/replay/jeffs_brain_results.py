"""Results that the runner of jeffs-brain/memory (`memory eval lme run`) stored, for `diff`.

Its file has no gold sessions, time or build. What it does not say stays unknown, and is compared
with nothing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from memconform.contract.wire import JsonValue
from memconform.errors import UsageError
from memconform.replay.records import JudgeVerdict, LmeQuestion
from memconform.stats.stored_figures import is_same_figure
from memconform.validation_faults import first_fault

RUNNER = "jeffs-brain"

_KEYS = {"dataset_sha", "ingest_mode", "overall_score", "questions_run", "by_category"}
"""By which a file is told from others; `questions` is null where nothing was asked."""
_SDK = re.compile(r"(?:^|-)(go|py|ts)(?:-|$)")

_Verdict = Literal[
    "correct", "partial", "incorrect", "abstain_correct", "abstain_incorrect", "error", "skip", ""
]
_VERDICTS: Mapping[str, JudgeVerdict] = {
    "correct": "correct",
    # Neither counts as right there.
    "partial": "incorrect",
    "incorrect": "incorrect",
    "abstain_correct": "abstain_correct",
    "abstain_incorrect": "abstain_incorrect",
}


class _Category(BaseModel, defer_build=True):
    run: int
    correct: int


class _Question(BaseModel, defer_build=True):
    id: str
    category: str
    question: str
    question_date: str = ""
    ground_truth: str
    agent_answer: str
    judge_verdict: _Verdict = ""
    judge_rationale: str = ""
    human_verdict: _Verdict = ""
    latency_ms: float
    error: str = ""

    @property
    def is_right(self) -> bool:
        return self.judge_verdict in ("correct", "abstain_correct")


class _Result(BaseModel, defer_build=True):
    dataset_sha: str
    ingest_mode: str
    judge_model: str = ""
    questions_run: int
    overall_score: float
    by_category: dict[str, _Category]
    questions: list[_Question] = Field(min_length=1)


class _Manifest(BaseModel, defer_build=True):
    """What the file beside a result says of it; scripts and versions write more or less."""

    dataset_sha: str
    sdk: str | None = None
    judge_prompt_version: int | None = None
    reader_model: str | None = None
    benchmark_mode: str | None = None
    actor_endpoint_style: str | None = None
    actor_retrieval_mode: str | None = None
    actor_topk: int | None = None
    actor_candidatek: int | None = None
    actor_rerank_topn: int | None = None
    actor_scope: str | None = None
    actor_project: str | None = None
    actor_path_prefix: str | None = None
    actor_question_sessions: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JeffsBrainResult:
    """A stored result of that runner, with its questions as ours have them."""

    sdk: str
    dataset_sha: str
    judge_model: str
    """Empty if answers were compared with the references."""
    prompt_version: int | None
    """Version of the judge's prompt; None if no manifest states it."""
    settings: Mapping[str, JsonValue]
    """Those that are known, by the names of `ReplaySettings`."""
    questions: Sequence[LmeQuestion]
    overridden: int
    """Verdicts that a person overruled."""

    @property
    def rubric(self) -> str:
        """By what answers were judged."""
        if not self.judge_model:
            return f"{RUNNER} exact match"
        version = self.prompt_version
        return f"{RUNNER} judge, version {'unknown' if version is None else version}"


def read_jeffs_brain_result(path: Path, *, overrides: bool = False) -> JeffsBrainResult | None:
    """Read a result of that runner; None for any other file.

    Args:
        path: of the result; what the manifest beside it says is used too.
        overrides: whether verdicts of people count in place of the judge's.

    Raises:
        UsageError: if it has no questions, is damaged, or states other scores than its questions
            have (`result_unreadable`).
    """
    try:
        loaded = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(loaded, dict) or "schema_version" in loaded or not loaded.keys() >= _KEYS:
        return None
    try:
        result = _Result.model_validate(loaded)
    except ValidationError as error:
        raise _unreadable(path, first_fault(error)) from error
    for fault in _faults(result):
        raise _unreadable(path, fault, "contradicts itself")
    manifest = _manifest_of(path, result)
    overruled = [
        question
        for question in result.questions
        if overrides and question.human_verdict not in ("", "skip", question.judge_verdict)
    ]
    ids = {question.id for question in overruled}
    return JeffsBrainResult(
        sdk=manifest.sdk or _sdk_of(path),
        dataset_sha=result.dataset_sha,
        judge_model=result.judge_model,
        prompt_version=manifest.judge_prompt_version,
        settings=_settings(result, manifest),
        questions=[_question(each, by_person=each.id in ids) for each in result.questions],
        overridden=len(overruled),
    )


def _question(stored: _Question, *, by_person: bool) -> LmeQuestion:
    given = stored.human_verdict if by_person else stored.judge_verdict
    verdict = _VERDICTS.get(given)
    code = ""
    if stored.error and not by_person:
        # Whatever its judge made of no answer: `error`, or that it is wrong.
        verdict, code = "not_run", "reported_error"
    elif verdict is None:
        verdict, code = "judge_error", "judge_error"
    return LmeQuestion(
        id=stored.id,
        category=stored.category,
        question=stored.question,
        question_date=stored.question_date or None,
        reference_answers=[stored.ground_truth],
        abstention="_abs" in stored.id,
        answer=None if stored.error else stored.agent_answer,
        exact_match=None,
        judge_verdict=verdict,
        code=code,
        reason=stored.error or stored.judge_rationale,
        served_model="",
        answer_session_ids=[],
        hits=[],
        first_gold_rank=None,
        gold_retrieved=None,
        shown=0,
        left_out=0,
        retrieval_ms=None,
        reader_ms=None,
        judge_ms=None,
    )


def _faults(result: _Result) -> Iterator[str]:
    """What a result states otherwise than its questions do."""
    questions = result.questions
    ids = [question.id for question in questions]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        yield f"question {twice!r} is there twice"
    if result.questions_run != len(questions):
        yield f"questions_run is {result.questions_run}, and there are {len(questions)}"
    score = sum(question.is_right for question in questions) / len(questions)
    if not is_same_figure(result.overall_score, score):
        yield f"overall_score is {result.overall_score}, and its questions give {score}"
    for name, category in result.by_category.items():
        own = [question for question in questions if question.category == name]
        right = sum(question.is_right for question in own)
        if (category.run, category.correct) != (len(own), right):
            yield (
                f"by_category {name} is {category.correct} of {category.run}, and its questions"
                f" give {right} of {len(own)}"
            )


def _manifest_of(path: Path, result: _Result) -> _Manifest:
    """The manifest beside a result, named as its scripts name both; empty if there is none."""
    names = (path.name.replace("result", "manifest"), f"{path.stem}-manifest.json")
    for name in names:
        beside = path.with_name(name)
        if beside == path:
            continue
        try:
            manifest = _Manifest.model_validate_json(beside.read_bytes())
        except (OSError, ValidationError):
            continue
        if manifest.dataset_sha == result.dataset_sha:
            return manifest
    return _Manifest(dataset_sha=result.dataset_sha)


def _sdk_of(path: Path) -> str:
    named = _SDK.findall(path.stem)
    return named[-1] if named else RUNNER


def _settings(result: _Result, manifest: _Manifest) -> dict[str, JsonValue]:
    retrieval: dict[str, JsonValue] = {
        "mode": manifest.actor_retrieval_mode,
        "top_k": manifest.actor_topk,
        "candidate_k": manifest.actor_candidatek,
        "rerank_top_n": manifest.actor_rerank_topn,
        "scope": manifest.actor_scope,
        "project": manifest.actor_project,
        "path_prefix": manifest.actor_path_prefix,
        "session_filter": manifest.actor_question_sessions,
    }
    settings: dict[str, JsonValue] = {
        "benchmark_mode": manifest.benchmark_mode,
        "endpoint_style": manifest.actor_endpoint_style,
        "ingest_mode": result.ingest_mode,
        "retrieval": _known(retrieval) or None,
        "reader": manifest.reader_model,
        "judge": result.judge_model or None,
    }
    return _known(settings)


def _known(values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in values.items() if value not in (None, "")}


def _unreadable(path: Path, excerpt: str, what: str = "") -> UsageError:
    return UsageError(
        f"{path} {what or f'is no result of {RUNNER} with questions'}",
        code="result_unreadable",
        hint="give the file that `memory eval lme run` wrote, after questions were asked",
        excerpt=excerpt,
    )
