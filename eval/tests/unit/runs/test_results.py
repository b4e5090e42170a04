"""A result with a self-contradictory question is refused, not read as a low score."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memconform.errors import UsageError
from memconform.records import Failure
from memconform.results.loaded_runs import LoadedRun
from memconform.runs.results import (
    Attempt,
    CallTimings,
    QuestionResult,
    RankedChunk,
    RunSummary,
)
from memconform.runs.stored_run import read_questions
from memconform.scoring.statuses import PASS_THRESHOLD, QuestionStatus

_TIMINGS = CallTimings(first_byte=1.0, first_event=None, first_delta=None, done=2.0)


def _question(verdict: QuestionStatus, *scores: float) -> QuestionResult:
    """A question as `aggregate_attempts` builds it; several scores mean several attempts."""
    mean = sum(scores) / len(scores) if scores else None
    attempts = [
        Attempt(
            verdict=QuestionStatus.CORRECT if score >= PASS_THRESHOLD else QuestionStatus.INCORRECT,
            score=score,
            latency_ms=2.0,
        )
        for score in scores
    ]
    return QuestionResult(
        id="q",
        question="?",
        tags=["a"],
        verdict=verdict,
        passed=verdict is QuestionStatus.CORRECT,
        score=mean,
        answer="text" if scores else None,
        latency_ms=2.0 if scores else None,
        timings=_TIMINGS if scores else None,
        citations=[],
        ranking=[RankedChunk(chunk_id="c", document_id="d", path="p", score=1.0)] if scores else [],
        trace=None,
        error=None if scores else Failure(code="timeout", message="late"),
        first_hit=1 if scores else None,
        attempts=attempts if len(scores) > 1 else [],
    )


_QUESTIONS = [
    _question(QuestionStatus.CORRECT, 1.0),
    _question(QuestionStatus.INCORRECT, 0.0),
    _question(QuestionStatus.ABSTAINED, 0.0),
    _question(QuestionStatus.CORRECT, 1.0, 1.0, 0.0),
    _question(QuestionStatus.TIMEOUT),
    _question(QuestionStatus.NOT_APPLICABLE),
]
_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([verdict.value for verdict in QuestionStatus]),
    st.sampled_from([-1.0, 0.0, 0.3, 0.5, 0.9, 1.0, 7.0, 1e308, -1, 0, 1, 2, 7]),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
_SCORED = ("verdict", "passed", "score")


def _side(folder: Path, question: QuestionResult, text: str) -> LoadedRun:
    """A run of one question, with `text` as its line in the file."""
    path = folder / "result.json"
    path.write_text(f'{{\n "questions": [\n{text}\n]\n}}\n')
    head: dict[str, Any] = {
        "total": int(question.verdict.expected),
        "passed": int(question.passed),
        "counts": {question.verdict: 1},
        "mean_score": question.score,
        "incident": None,
    }
    return LoadedRun("sdk", path, RunSummary.model_construct(**head))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@given(
    question=st.sampled_from(_QUESTIONS),
    key=st.sampled_from(sorted(QuestionResult.model_fields)),
    value=_VALUES,
)
def test_a_corrupted_field_is_refused_or_changes_no_score(
    folder: Path, question: QuestionResult, key: str, value: Any
) -> None:
    line = json.loads(question.model_dump_json()) | {key: value}
    side = _side(folder, question, json.dumps(line))
    read = question
    with suppress(UsageError):
        [read] = side.questions()
    assert [getattr(read, name) for name in _SCORED] == [
        getattr(question, name) for name in _SCORED
    ]


@pytest.mark.parametrize(
    ("number", "corrupted", "reason"),
    [
        (0, {"score": 7.0}, "less than or equal to 1"),
        (0, {"score": None}, "correct contradicts score None"),
        (0, {"score": 0.4}, "correct contradicts score 0.4"),
        (0, {"passed": False}, "passed False contradicts correct"),
        (1, {"passed": True}, "passed True contradicts incorrect"),
        (1, {"score": 0.5}, "incorrect contradicts score 0.5"),
        (1, {"verdict": "correct", "passed": True}, "correct contradicts score 0.0"),
        (0, {"verdict": "timeout", "passed": False}, "timeout contradicts score 1.0"),
        (4, {"score": 0.0}, "timeout contradicts score 0.0"),
        (4, {"verdict": "incorrect"}, "incorrect contradicts score None"),
        (0, {"first_hit": 0}, "first_hit 0 of 1 chunks"),
        (0, {"first_hit": 2}, "first_hit 2 of 1 chunks"),
        (3, {"score": 1.0}, "score 1.0 differs from the attempts' mean"),
        (3, {"attempts": [{"verdict": "timeout", "score": None, "latency_ms": None}]}, "mean None"),
        (
            3,
            {"attempts": [{"verdict": "timeout", "score": 0.0, "latency_ms": None}]},
            "contradicts",
        ),
        (3, {"attempts": [{"verdict": "correct", "score": 7.0, "latency_ms": 1.0}]}, "score 7.0"),
        (3, {"attempts": [{"verdict": "correct", "score": 1.0, "latency_ms": -1.0}]}, "-1.0 ms"),
    ],
)
def test_a_question_that_contradicts_itself_is_refused(
    number: int, corrupted: dict[str, Any], reason: str
) -> None:
    line = json.loads(_QUESTIONS[number].model_dump_json())
    assert QuestionResult.model_validate(line) == _QUESTIONS[number]
    with pytest.raises(ValidationError, match=reason):
        QuestionResult.model_validate(line | corrupted)


def test_scores_whose_mean_differs_from_the_summary_are_refused(folder: Path) -> None:
    question = _question(QuestionStatus.CORRECT, 1.0)
    line = json.loads(question.model_dump_json()) | {"score": 0.9}
    side = _side(folder, question, json.dumps(line))
    [read] = read_questions(side.path)
    assert read.score == 0.9
    with pytest.raises(UsageError) as caught:
        list(side.questions())
    assert "reports mean_score 1.0, but its questions give 0.9" in caught.value.excerpt
