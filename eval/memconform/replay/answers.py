"""Reads and judges what was retrieved: one reader and one judge for every SDK."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from memconform.datasets.error_text import error_message
from memconform.datasets.expected_text import holds
from memconform.datasets.question import Question
from memconform.llm.accounting import CallTotals
from memconform.llm.chat import HaltingError
from memconform.records import Failure
from memconform.replay.evidence import evidence_text, select_evidence
from memconform.replay.hits import Hit
from memconform.replay.plan import ReplayPlan
from memconform.replay.records import JudgeVerdict, LmeQuestion, ReplayRetrieval
from memconform.scoring.abstention import abstains, abstains_rightly
from memconform.scoring.engine import ScoredAnswer, ScoringEngine, ScoringTask
from memconform.scoring.judge.panel import excused_if_cut
from memconform.scoring.reader.prompts import DECLINES
from memconform.scoring.scorer import DaemonResponse, Score
from memconform.scoring.statuses import QuestionStatus


class RecordSource(Protocol):
    """What was retrieved for questions; each record is read when it is needed."""

    def __contains__(self, question: object, /) -> bool: ...

    def __getitem__(self, question: str, /) -> ReplayRetrieval: ...


class Answering:
    """Answers and judges the questions of one part."""

    def __init__(
        self,
        plan: ReplayPlan,
        records: RecordSource,
        failures: Mapping[str, Failure],
        reader: CallTotals,
    ) -> None:
        """Answer what was retrieved.

        Args:
            plan: of the replay.
            records: of the questions that were measured.
            failures: why others were not, by question.
            reader: what the reader's calls are added to.
        """
        self._plan = plan
        self._records = records
        self._failures = failures
        self._reader = reader
        self._engine = ScoringEngine(plan.judge or WordScorer(), plan.reader)

    @property
    def halted(self) -> HaltingError | None:
        """Why no further call is made, once that is so."""
        return self._engine.halted

    async def run(self) -> AsyncGenerator[LmeQuestion, None]:
        """Yield the questions as they are done."""
        tasks = map(self._task, self._plan.questions)
        scored = self._engine.score_all(tasks, self._plan.concurrency)
        async with aclosing(scored) as answers:
            async for answer in answers:
                if answer.reading is not None:
                    self._reader.merge(answer.reading.reader)
                yield _scored(answer)

    def _task(self, question: Question) -> ScoringTask[LmeQuestion]:
        if question.id not in self._records:
            why = self._failures[question.id]
            return ScoringTask(key=unmeasured(question, why), question=question, failure=why)
        record = self._records[question.id]
        row = _with_retrieval(question, record)
        if (own := record.answer) is not None:
            message = error_message(question, own)
            failure = None if message is None else Failure(code="error_text", message=message)
            return ScoringTask(key=row, question=question, text=own, failure=failure)
        evidence = select_evidence(
            hits_of(self._plan, record), question.question, self._plan.settings.evidence_tokens
        )
        row = row.model_copy(update={"shown": evidence.shown, "left_out": evidence.left_out})
        if not evidence.passages:
            # Whatever a model said, it could not know.
            return ScoringTask(key=row, question=question, text=DECLINES)
        if self._plan.reader is None:
            text = evidence_text(evidence.passages)
            return ScoringTask(key=row, question=question, text=text, kind="retrieval")
        return ScoringTask(key=row, question=question, passages=evidence.passages)


class WordScorer:
    """Compares an answer with the references as whole words, where no judge is asked."""

    name = "words"
    in_process = True

    def require_scorable(self, questions: Iterable[Question]) -> None:
        """Every question has references, or has none and asks to abstain."""

    async def score(self, question: Question, response: DaemonResponse) -> Score:
        """1 if the answer matches, else 0."""
        if matches_exactly(question, response.text):
            return Score(1.0, QuestionStatus.CORRECT)
        return Score(0.0, QuestionStatus.INCORRECT)


def _scored(answer: ScoredAnswer[LmeQuestion]) -> LmeQuestion:
    row, question, text = answer.task.key, answer.task.question, answer.text
    if text is not None:
        matches = matches_exactly(question, text)
        row = row.model_copy(update={"answer": text, "exact_match": matches})
    if answer.reading is not None and text is not None:
        row = row.model_copy(
            update={
                "served_model": answer.reading.served_model,
                "reader_ms": answer.reader_ms,
            }
        )
    if answer.failure is not None:
        return _failed(row, answer.failure).model_copy(update={"votes": answer.votes})
    score = answer.score
    assert score is not None  # noqa: S101 - for mypy: without a failure there is a score
    if answer.task.kind == "retrieval":
        score = excused_if_cut(score, len(row.hits) - row.left_out, len(row.hits), of="whole hits")
    return row.model_copy(
        update={
            "judge_verdict": _verdict(question, score.status),
            "code": "" if score.status.measured else "judge_error",
            "reason": score.reason,
            "votes": answer.votes,
            "judge_ms": answer.judge_ms,
        }
    )


def unmeasured(question: Question, failure: Failure) -> LmeQuestion:
    """A question of which nothing was retrieved."""
    return LmeQuestion(
        id=question.id,
        category=question.category,
        question=question.question,
        question_date=question.question_date,
        reference_answers=list(question.answers),
        abstention=question.abstain,
        answer=None,
        exact_match=None,
        judge_verdict="not_run",
        code=failure.code,
        reason=failure.message,
        served_model="",
        answer_session_ids=list(question.gold),
        hits=[],
        first_gold_rank=None,
        gold_retrieved=None,
        shown=0,
        left_out=0,
        retrieval_ms=None,
        reader_ms=None,
        judge_ms=None,
    )


def hits_of(plan: ReplayPlan, record: ReplayRetrieval) -> list[Hit]:
    """The hits of a record with their texts."""
    placement = plan.placement
    return [
        Hit(hit.rank, hit.path, hit.kind, hit.session, session.session.date, hit.score, text)
        for hit, text in zip(record.hits, record.texts, strict=True)
        for _, session in [placement.session_of(hit.path)]
    ]


def _with_retrieval(question: Question, record: ReplayRetrieval) -> LmeQuestion:
    """The row of a question that was retrieved and not read yet."""
    ranking = list(dict.fromkeys(hit.session for hit in record.hits))
    gold = () if question.abstain else question.gold
    ranks = [rank for rank, session in enumerate(ranking, start=1) if session in gold]
    row = unmeasured(question, Failure(code="", message=""))
    return row.model_copy(
        update={
            "hits": record.hits,
            "first_gold_rank": min(ranks, default=None),
            "gold_retrieved": set(gold) <= set(ranking) if gold else None,
            "rises": record.rises,
            "skipped_stage": record.skipped_stage,
            "null_chunks": record.null_chunks,
            "is_short": record.is_short,
            "retrieval_ms": record.latency_ms,
            "daemon_ms": record.daemon_ms,
            "served_model": record.served_model,
            "reader_ms": record.reader_ms,
        }
    )


def _failed(row: LmeQuestion, failure: Failure) -> LmeQuestion:
    failed = {"judge_verdict": "not_run", "code": failure.code, "reason": failure.message}
    return row.model_copy(update=failed)


def _verdict(question: Question, status: QuestionStatus) -> JudgeVerdict:
    if not status.measured:
        return "judge_error"
    passed = status is QuestionStatus.CORRECT
    if question.abstain:
        return "abstain_correct" if passed else "abstain_incorrect"
    return "correct" if passed else "incorrect"


def matches_exactly(question: Question, answer: str) -> bool:
    """Whether an answer contains a reference answer as whole words, or abstains where it should."""
    if question.abstain:
        return abstains_rightly(question, answer)
    by_words = replace(question, word=True)
    return not abstains(question, answer) and any(
        holds(by_words, reference, answer) for reference in question.answers
    )
