"""Reads and judges what was retrieved: one reader and one judge for every SDK."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from memconform.datasets.matching import holds
from memconform.datasets.model import Question
from memconform.llm.chat import HaltingError
from memconform.reading.prompts import DECLINES
from memconform.reading.reader import CallTotals, Reader, Reading
from memconform.records import Failure
from memconform.replay.evidence import Evidence, evidence_text, select_evidence
from memconform.replay.hits import Hit
from memconform.replay.plan import ReplayPlan
from memconform.replay.records import JudgeVerdict, LmeQuestion, RetrievalRecord
from memconform.runs.loop import work_through
from memconform.scoring.abstention import abstains, abstains_rightly
from memconform.scoring.error_text import error_message
from memconform.scoring.judge.records import unfinished_votes, votes_of
from memconform.scoring.scorer import DaemonResponse
from memconform.scoring.statuses import QuestionStatus


class RecordSource(Protocol):
    """What was retrieved for questions; each record is read when it is needed."""

    def __contains__(self, question: object, /) -> bool: ...

    def __getitem__(self, question: str, /) -> RetrievalRecord: ...


@dataclass(slots=True)
class Answering:
    """Answers and judges the questions of one part."""

    plan: ReplayPlan
    records: RecordSource
    """Records of the measured questions."""
    failures: Mapping[str, Failure]
    """Why the other questions were not measured."""
    reader: CallTotals
    """What the reader's calls are added to."""
    halted: HaltingError | None = None
    """Why no further call is made."""

    async def run(self) -> AsyncGenerator[LmeQuestion, None]:
        """Yield the questions as they are done."""
        questions = iter(self.plan.questions)
        async with aclosing(work_through(questions, self._answer, self.plan.concurrency)) as done:
            async for question in done:
                yield question

    async def _answer(self, question: Question) -> LmeQuestion:
        if question.id not in self.records:
            return unmeasured(question, self.failures[question.id])
        record = self.records[question.id]
        row = _with_retrieval(question, record)
        if record.answer is not None:
            return await self._judge(question, row, record.answer)
        evidence = select_evidence(
            hits_of(self.plan, record), question.question, self.plan.settings.evidence_tokens
        )
        row = row.model_copy(update={"shown": evidence.shown, "left_out": evidence.left_out})
        if not evidence.passages:
            # Whatever a model said, it could not know.
            return await self._judge(question, row, DECLINES)
        if self.plan.reader is None:
            return await self._judge(question, row, evidence_text(evidence.passages))
        return await self._read(self.plan.reader, question, row, evidence)

    async def _read(
        self, reader: Reader, question: Question, row: LmeQuestion, evidence: Evidence
    ) -> LmeQuestion:
        if self.halted is not None:
            return _failed(row, self.halted.code, self.halted.message)
        started = time.perf_counter()
        reading = await reader.read(
            question.question,
            question.question_date,
            evidence.passages,
            partial(error_message, question),
        )
        self.reader.merge(reading.reader)
        if reading.answer is None:
            return self._unread(row, reading)
        is_cached = reading.reader.calls == reading.reader.cached
        row = row.model_copy(
            update={
                "served_model": reading.served_model,
                "reader_ms": None if is_cached else (time.perf_counter() - started) * 1e3,
            }
        )
        return await self._judge(question, row, reading.answer)

    def _unread(self, row: LmeQuestion, reading: Reading) -> LmeQuestion:
        error = reading.failure
        if isinstance(error, HaltingError):
            self.halted = error
        return _failed(row, error.code if error else "no_answer", error.message if error else "")

    async def _judge(self, question: Question, row: LmeQuestion, answer: str) -> LmeQuestion:
        matches = matches_exactly(question, answer)
        row = row.model_copy(update={"answer": answer, "exact_match": matches})
        if (message := error_message(question, answer)) is not None:
            return _failed(row, "error_text", message)
        if self.plan.judge is None:
            return row.model_copy(update={"judge_verdict": _verdict(question, passed=matches)})
        if self.halted is not None:
            return _failed(row, self.halted.code, self.halted.message)
        started = time.perf_counter()
        try:
            score = await self.plan.judge.score(
                question, DaemonResponse(text=answer, kind="answer")
            )
        except HaltingError as error:
            self.halted = error
            row = _failed(row, error.code, error.message)
            return row.model_copy(update={"votes": unfinished_votes(error)})
        elapsed = (time.perf_counter() - started) * 1e3
        votes = votes_of(score.detail)
        verdict: JudgeVerdict = (
            _verdict(question, passed=score.status is QuestionStatus.CORRECT)
            if score.status.measured
            else "judge_error"
        )
        return row.model_copy(
            update={
                "judge_verdict": verdict,
                "code": "" if score.status.measured else "judge_error",
                "reason": score.reason,
                "votes": votes,
                "judge_ms": None if all(vote.cached for vote in votes) else elapsed,
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


def hits_of(plan: ReplayPlan, record: RetrievalRecord) -> list[Hit]:
    """The hits of a record with their texts."""
    placement = plan.placement
    return [
        Hit(hit.rank, hit.path, hit.kind, hit.session, session.session.date, hit.score, text)
        for hit, text in zip(record.hits, record.texts, strict=True)
        for _, session in [placement.session_of(hit.path)]
    ]


def _with_retrieval(question: Question, record: RetrievalRecord) -> LmeQuestion:
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


def _failed(row: LmeQuestion, code: str, message: str) -> LmeQuestion:
    return row.model_copy(update={"judge_verdict": "not_run", "code": code, "reason": message})


def _verdict(question: Question, *, passed: bool) -> JudgeVerdict:
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
