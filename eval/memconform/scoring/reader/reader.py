"""Answers a question from passages by calls to one language model."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from memconform.llm.accounting import CallTotals, Reply
from memconform.llm.chat import ChatRequest, HaltingError, LlmError
from memconform.llm.session import Model
from memconform.scoring.reader.names import Method
from memconform.scoring.reader.passages import Passage
from memconform.scoring.reader.prompts import Wording, require_no_echo

_Value = TypeVar("_Value")

ErrorFinder = Callable[[str], str | None]
"""The error message that stands where an answer should be; None for an answer."""


@dataclass(slots=True)
class Reading:
    """A question as it was read, answered or not."""

    answer: str | None = None
    """None if a call failed."""
    failure: LlmError | None = None
    """Why."""
    halted: bool = False
    """Whether the failure concerns all further calls."""
    served_model: str = ""
    reader: CallTotals = field(default_factory=CallTotals)
    notes: CallTotals = field(default_factory=CallTotals)


@dataclass(frozen=True, slots=True)
class Reader:
    """A model with its wording and reading method."""

    model: Model
    wording: Wording
    method: Method

    async def read(
        self,
        question: str,
        date: str | None,
        passages: Sequence[Passage] | None,
        error_in: ErrorFinder = lambda _answer: None,
    ) -> Reading:
        """Answer one question.

        Args:
            question: as it is asked.
            date: the day on which it is asked; None if the benchmark has none.
            passages: in the order in which they are shown; None if there is no memory at all.
            error_in: names the error messages that a model sent as an answer.
        """
        reading = Reading()
        try:
            shown = passages
            if passages is not None and self.method == "con-separate":
                shown = await self._take_notes(question, date, passages, reading, error_in)
            request = self.wording.answer_request(question, date, shown)
            parse = partial(parse_answer, self.wording, request, error_in)
            reply = await count_call(self.model.ask(request, parse), reading.reader)
        except LlmError as error:
            reading.failure, reading.halted = error, isinstance(error, HaltingError)
            return reading
        reading.answer, reading.served_model = reply.value, reply.served_model
        return reading

    async def _take_notes(
        self,
        question: str,
        date: str | None,
        passages: Sequence[Passage],
        reading: Reading,
        error_in: ErrorFinder,
    ) -> list[Passage]:
        """Notes on each passage, in its place.

        Raises:
            LlmError: of the first call that fails; the others are made, and their replies cached.
        """
        requests = [self.wording.note_request(question, date, passage) for passage in passages]
        replies = await asyncio.gather(
            *(
                count_call(
                    self.model.ask(request, partial(parse_note, request, error_in)), reading.notes
                )
                for request in requests
            ),
            return_exceptions=True,
        )
        notes = []
        for passage, reply in zip(passages, replies, strict=True):
            if isinstance(reply, BaseException):
                raise reply
            notes.append(self.wording.apply_note(passage, reply.value))
        return [note for note in notes if note is not None]


async def count_call(call: Awaitable[Reply[_Value]], totals: CallTotals) -> Reply[_Value]:
    """Await a call, and count it, also if it fails."""
    try:
        reply = await call
    except LlmError as error:
        if error.was_made:
            totals.add(error)
        raise
    totals.add(reply)
    return reply


def parse_answer(wording: Wording, request: ChatRequest, error_in: ErrorFinder, text: str) -> str:
    """The answer in a reply; raises ValueError for a reply without one."""
    answer = wording.parse_answer(request, text)
    _require_no_error(error_in(answer))
    return answer


def parse_note(request: ChatRequest, error_in: ErrorFinder, text: str) -> str:
    """The notes in a reply; raises ValueError for a reply without any."""
    require_no_echo(request, text)
    _require_no_error(error_in(text))
    if not (note := text.strip()):
        raise ValueError("it is empty")
    return note


def _require_no_error(message: str | None) -> None:
    if message is not None:
        raise ValueError(f"it is an error message: {message}")
