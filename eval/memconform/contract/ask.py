"""Profile `ask`: the question and the events of its stream."""

from typing import Any, Literal

from pydantic import Field

from memconform.contract.core import Chunk, Trace
from memconform.contract.wire import Mode, Request, Response


class AskRequest(Request):
    question: str
    top_k: int
    mode: Mode
    reader_mode: Literal["basic", "augmented"] | None = None
    question_date: str | None = None
    candidate_k: int | None = None
    rerank_top_n: int | None = None


class Retrieve(Response):
    chunks: list[Chunk]
    top_k: int
    mode: Mode
    trace: Trace


class AnswerDelta(Response):
    text: str


class Citation(Response):
    chunk_id: str
    path: str
    title: str | None = None
    score: float


class StreamError(Response):
    code: str = Field(min_length=1)
    message: str = Field(min_length=1)


class Done(Response):
    ok: bool
    answer: str | None = None
    usage: dict[str, Any] | None = None


StreamEvent = Retrieve | AnswerDelta | Citation | StreamError | Done

EVENTS: dict[str, type[StreamEvent]] = {
    "retrieve": Retrieve,
    "answer_delta": AnswerDelta,
    "citation": Citation,
    "error": StreamError,
    "done": Done,
}
