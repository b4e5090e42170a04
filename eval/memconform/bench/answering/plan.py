"""What is answered: the questions of a bench, and what each arm shows the reader."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memconform.bench.answering.arms import Control
from memconform.bench.answering.records import AnswerSettings, ReaderSettings
from memconform.bench.qa.plan import key_file
from memconform.bench.qa.records import KeyFile
from memconform.bench.records import QueryRecord
from memconform.bench.stored_rows import StoredRow
from memconform.datasets.answer_keys import AnswerKey
from memconform.datasets.conversation_store import ConversationStore
from memconform.datasets.conversations import Conversation
from memconform.datasets.error_text import error_message
from memconform.datasets.question import Question
from memconform.datasets.reasoning_blocks import ONLY_REASONING, strip_reasoning
from memconform.records import Failure
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.reader.passages import (
    Passage,
    PassageSelection,
    fit_passages,
    newest_first,
    of_speakers,
    retrieved_passages,
)
from memconform.scoring.reader.reader import Reader

_EMPTY = "the answer is empty"


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """A question with its conversation and gold, as the bench asked it."""

    question: Question
    haystack: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Arm:
    """A way to choose what the reader sees: a row of a bench, or a control."""

    name: str
    control: Control | None = None
    row: StoredRow | None = None
    """The rankings, for an arm that is no control."""
    is_daemons_own: bool = False
    """Whether the daemon's own reader answered, while the bench ran."""
    strip_reasoning: bool = False
    """Whether its answers are scored without their blocks of reasoning."""

    @property
    def kind(self) -> Literal["retrieval", "daemon", "control"]:
        if self.control is not None:
            return "control"
        return "daemon" if self.is_daemons_own else "retrieval"

    def ranking(self, question: str) -> QueryRecord | None:
        """What the system retrieved; None if that was not measured."""
        return None if self.row is None else self.row.measured(question)

    def own_answer(self, question: str) -> str | None:
        """What the daemon's own reader answered; None if it did not."""
        record = self.ranking(question)
        if record is None or record.answer is None or not self.strip_reasoning:
            return None if record is None else record.answer
        return strip_reasoning(record.answer)

    @property
    def reasoning(self) -> int:
        """How many answers of the daemon's own reader have blocks of reasoning."""
        if self.row is None or not self.is_daemons_own:
            return 0
        answers = (record.answer or "" for record in self.row.records.values())
        return sum(strip_reasoning(answer) != answer for answer in answers)

    def is_from_other_items(self, question: str) -> bool:
        """Whether the daemon's own reader retrieved anything else than its search did first."""
        record = self.ranking(question)
        if record is None or record.answer_ranking is None:
            return False
        return record.ranking[: len(record.answer_ranking)] != record.answer_ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPlan:
    """Everything that answering needs."""

    tasks: Sequence[AnswerTask]
    arms: Sequence[Arm]
    key: AnswerKey
    conversations: ConversationStore
    reader: Reader
    judge: JudgeScorer
    settings: AnswerSettings
    disputed: frozenset[str] | None
    """Questions whose reference answer is disputed; None without errata."""
    benches: tuple[str, ...]
    command: tuple[str, ...] = ()

    @property
    def data(self) -> KeyFile:
        """What a report says of the benchmark."""
        return key_file(self.key, self.disputed)


def unanswerable(arm: Arm, task: AnswerTask) -> Failure | None:
    """Why a question cannot be answered in an arm; None if it can."""
    record = arm.ranking(task.question.id)
    if arm.row is not None and record is None:
        return Failure(code="not_retrieved", message="the bench has no measured retrieval for it")
    if arm.control == "oracle" and not task.gold and not task.question.abstain:
        return Failure(
            code="gold_unknown",
            message="no system measured its retrieval, and the file names no session",
        )
    if not arm.is_daemons_own or record is None:
        return None
    answer = arm.own_answer(task.question.id)
    if answer is None or not answer.strip():
        reason = ONLY_REASONING if record.answer and record.answer.strip() else _EMPTY
        return record.answer_error or Failure(code="no_answer", message=reason)
    message = error_message(task.question, answer)
    return None if message is None else Failure(code="error_text", message=message)


def shown_passages(
    arm: Arm, task: AnswerTask, conversation: Conversation, level: str, settings: ReaderSettings
) -> PassageSelection | None:
    """The passages that the reader is shown in an arm; None in an arm without memory.

    Raises:
        UsageError: for a retrieved item that the conversation does not have (`unknown_item`).
    """
    if arm.control == "no-memory":
        return None
    candidates = _candidates(arm, task, conversation, level, settings)
    if settings.budget_tokens is None:
        # The released script keeps sessions of one date in the order of the file.
        ordered = reversed(candidates) if arm.control == "full-context" else candidates
        passages = (of_speakers(passage, settings.speakers) for passage in ordered)
        return PassageSelection(tuple(passage for passage in passages if passage.turns), 0)
    return fit_passages(
        candidates,
        settings.budget_tokens,
        settings.speakers,
        unbroken=arm.control == "full-context",
    )


def _candidates(
    arm: Arm, task: AnswerTask, conversation: Conversation, level: str, settings: ReaderSettings
) -> list[Passage]:
    if arm.control == "full-context":
        return newest_first(conversation)
    items = _items(conversation, level)
    if arm.control == "oracle":
        # Some gold does not exist: LoCoMo cites turns that are not in the conversation.
        known = {session.id for session in conversation.sessions}.union(items)
        chosen = [item for item in task.gold if item in known]
    elif arm.control == "random-k":
        draw = random.Random(f"{settings.seed}:{task.question.id}")  # noqa: S311 - reproducible
        chosen = draw.sample(items, min(settings.top_k, len(items)))
    else:
        record = arm.ranking(task.question.id)
        chosen = [] if record is None else record.ranking[: settings.top_k]
    return retrieved_passages(conversation, chosen, settings.unit)


def _items(conversation: Conversation, level: str) -> list[str]:
    """The ids of what a system could have retrieved."""
    if level == "session":
        return [session.id for session in conversation.sessions]
    return [turn.id for session in conversation.sessions for turn in session.turns if turn.by_user]


def is_gold_shown(task: AnswerTask, shown: PassageSelection) -> bool | None:
    """Whether all gold is shown.

    None of questions to abstain from, without gold, and where a part of a gold session is shown:
    nobody knows whether it contains the answer.
    """
    if task.question.abstain or not task.gold:
        return None
    visible = frozenset[str]().union(*(passage.visible for passage in shown.passages))
    missing = set(task.gold) - visible
    if not missing:
        return True
    in_part = missing.intersection(passage.session for passage in shown.passages)
    return None if in_part == missing else False
