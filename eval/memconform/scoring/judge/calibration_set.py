"""Answers with known labels, and what a judge makes of them."""

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from memconform.contract.strict_json import decode
from memconform.datasets.question import Question
from memconform.errors import UsageError
from memconform.llm.accounting import Reply, dollars
from memconform.llm.chat import HaltingError, LlmError
from memconform.llm.session import Model
from memconform.records import Record
from memconform.scoring.judge.calibration import WRONG_GROUPS, Calibration, KindRate
from memconform.scoring.judge.prompt import (
    JudgeReply,
    Verdict,
    judge_request,
    parse_reply,
    prompt_digest,
)
from memconform.scoring.judge.records import ErrorRate, Group
from memconform.scoring.judge.rubric import settled_if_blank
from memconform.validation_faults import first_fault

LONG_WORDS = 60
"""Words from which an answer counts as long, for the length bias."""

_CONSISTENCY_SAMPLE = 40
"""Items that are asked again: half of an interval is then at most 15 points."""


class CalibrationItem(Record):
    """An answer with a known label."""

    id: str
    kind: str
    group: Group
    question: str
    reference_answer: str
    candidate: str
    label: Verdict
    abstain: bool = False
    rubric: str | None = None
    question_date: str | None = None

    def as_question(self) -> Question:
        """The question as a dataset would hold it."""
        return Question(
            id=self.id,
            question=self.question,
            answers=(self.reference_answer,),
            rubric=self.rubric,
            question_date=self.question_date,
            abstain=self.abstain,
        )


def read_items(path: Path) -> tuple[list[CalibrationItem], str]:
    """The items of a calibration set, and the file's SHA-256.

    Raises:
        UsageError: `bad_calibration_set`, naming the line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _bad_set(path, str(error.strerror)) from error
    items: list[CalibrationItem] = []
    ids: set[str] = set()
    groups_of_kinds: dict[str, Group] = {}
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            item = CalibrationItem.model_validate(decode(line))
        except ValidationError as error:
            raise _bad_set(path, f"line {number}: {first_fault(error)}") from error
        except ValueError as error:
            raise _bad_set(path, f"line {number}: {error}") from error
        if (item.group == "right") != (item.label == "correct"):
            raise _bad_set(path, f"line {number}: {item.label} in group {item.group}")
        if item.id in ids:
            raise _bad_set(path, f"line {number}: id {item.id!r} is given twice")
        if groups_of_kinds.setdefault(item.kind, item.group) != item.group:
            raise _bad_set(path, f"line {number}: kind {item.kind!r} is in two groups")
        ids.add(item.id)
        items.append(item)
    groups = {item.group for item in items if _needs_judge(item)}
    if missing := [group for group in ("right", *WRONG_GROUPS) if group not in groups]:
        raise _bad_set(path, f"no item of group {missing[0]} needs a judge")
    return items, hashlib.sha256(data).hexdigest()


def _bad_set(path: Path, fault: str) -> UsageError:
    return UsageError(
        f"the calibration set {path} cannot be used: {fault}",
        code="bad_calibration_set",
        hint="docs/JUDGES.md has the form of an item",
    )


async def calibrate(
    model: Model,
    items: Sequence[CalibrationItem],
    items_sha256: str,
    *,
    seed: int = 0,
    progress: Callable[[], None] = lambda: None,
) -> Calibration:
    """Put the items to a judge, and a sample of them once more; `progress` is called after each.

    Raises:
        HaltingError: what was paid for is in the cache.
    """
    judged = [item for item in items if _needs_judge(item)]
    replies = await _replies(model, judged, progress, repetition=0)
    again = await _replies(model, repeated_items(items, seed), progress, repetition=1)
    costs = [*replies.values(), *again.values()]
    usages = [reply.usage for reply in costs if reply.usage is not None]
    verdicts = {
        id_: reply.value.verdict
        for id_, reply in replies.items()
        if not isinstance(reply, LlmError)
    }
    # What needs no judge is empty, and so wrong.
    settled: dict[str, Verdict] = {i.id: "incorrect" for i in items if not _needs_judge(i)}
    repeated = [
        (verdicts[id_], reply.value.verdict)
        for id_, reply in again.items()
        if id_ in verdicts and not isinstance(reply, LlmError)
    ]
    correct = sum(item.label == "correct" for item in judged)
    return Calibration(
        judge=model.settings,
        served_models=sorted(
            {r.served_model for r in replies.values() if not isinstance(r, LlmError)} - {""}
        ),
        prompt=prompt_digest(),
        items_sha256=items_sha256,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        items=len(items),
        settled=len(settled),
        failed=len(judged) - len(verdicts),
        groups={
            group: _error_rate((i for i in judged if i.group == group), verdicts)
            for group in ("right", *WRONG_GROUPS)
        },
        failed_by_group={
            group: sum(i.group == group and i.id not in verdicts for i in judged)
            for group in ("right", *WRONG_GROUPS)
        },
        kinds=[
            KindRate(
                kind=kind,
                group=next(item.group for item in items if item.kind == kind),
                error=_error_rate((i for i in items if i.kind == kind), verdicts | settled),
                settled=sum(item.id in settled for item in items if item.kind == kind),
            )
            for kind in dict.fromkeys(item.kind for item in items)
        ],
        errors=_error_rate(judged, verdicts),
        base_rate=correct / len(judged),
        constant_judge=max(correct, len(judged) - correct) / len(judged),
        length_bias=_length_bias(judged, verdicts),
        repeated=len(repeated),
        contradicted=sum(first != second for first, second in repeated),
        input_tokens=sum(usage.input for usage in usages),
        output_tokens=sum(usage.output for usage in usages),
        cost_usd=dollars(sum(reply.cost for reply in costs)),
    )


async def _replies(
    model: Model,
    items: Sequence[CalibrationItem],
    progress: Callable[[], None],
    *,
    repetition: int,
) -> dict[str, Reply[JudgeReply] | LlmError]:
    """The judge's reply to each item, by id, or why there is none."""

    async def ask(item: CalibrationItem) -> Reply[JudgeReply] | LlmError:
        request = judge_request(item.as_question(), item.candidate)
        try:
            return await model.ask(request, parse_reply, repetition=repetition)
        except HaltingError:
            raise
        except LlmError as error:
            return error
        finally:
            progress()

    # All are waited for: what was paid for is in the cache before an error ends it.
    replies = await asyncio.gather(*map(ask, items), return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException) and not isinstance(reply, LlmError):
            raise reply
        if isinstance(reply, HaltingError):
            raise reply
    return {
        item.id: reply
        for item, reply in zip(items, replies, strict=True)
        if isinstance(reply, Reply | LlmError)
    }


def repeated_items(items: Sequence[CalibrationItem], seed: int = 0) -> list[CalibrationItem]:
    """The items that a judge is asked about a second time."""
    judged = [item for item in items if _needs_judge(item)]
    generator = random.Random(seed)  # noqa: S311 - a sample, no secret
    return generator.sample(judged, min(_CONSISTENCY_SAMPLE, len(judged)))


def _needs_judge(item: CalibrationItem) -> bool:
    return settled_if_blank(item.as_question(), item.candidate) is None


def _error_rate(items: Iterable[CalibrationItem], verdicts: dict[str, Verdict]) -> ErrorRate:
    agreeing = [verdicts[item.id] == item.label for item in items if item.id in verdicts]
    return ErrorRate.of(agreeing.count(False), len(agreeing))


def _length_bias(items: Sequence[CalibrationItem], verdicts: dict[str, Verdict]) -> float | None:
    wrong = [item for item in items if item.group == "specific-wrong"]
    long = _error_rate((i for i in wrong if len(i.candidate.split()) >= LONG_WORDS), verdicts)
    short = _error_rate((i for i in wrong if len(i.candidate.split()) < LONG_WORDS), verdicts)
    if long.rate is None or short.rate is None:
        return None
    return long.rate - short.rate
