"""Profile `ask`: the question and the events of its stream."""

from typing import Literal

from pydantic import Field

from memconform.contract.core import Chunk, RetrievalParams, Trace
from memconform.contract.wire import Mode, Response


class AskRequest(RetrievalParams):
    question: str = Field(min_length=1)
    top_k: int = Field(default=5, ge=1, le=1_000)
    reader_mode: Literal["basic", "augmented"] | None = Field(
        default=None, json_schema_extra={"default": "basic"}
    )
    model: str | None = None


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
    title: str
    """The chunk's, or else the path."""
    score: float


class StreamError(Response):
    code: str = Field(min_length=1)
    message: str = Field(min_length=1)


class Usage(Response):
    """Tokens, as the upstream counted them."""

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)


class Done(Response):
    ok: bool
    answer: str | None = None
    usage: Usage | None = None


StreamEvent = Retrieve | AnswerDelta | Citation | StreamError | Done

EVENTS: dict[str, type[StreamEvent]] = {
    "retrieve": Retrieve,
    "answer_delta": AnswerDelta,
    "citation": Citation,
    "error": StreamError,
    "done": Done,
}
