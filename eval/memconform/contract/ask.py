"""Wire types of profile `ask`: the question and the events of its answer stream."""

from typing import Annotated, Literal

from pydantic import Field

from memconform.contract.core import Ranked, RetrievalParams, Trace
from memconform.contract.wire import Mode, Response, Unknowable


class AskRequest(RetrievalParams):
    """The body of an ask request."""

    question: str = Field(min_length=1)
    top_k: int = Field(default=5, ge=1, le=1_000)
    reader_mode: Literal["basic", "augmented"] | None = Field(
        default=None, json_schema_extra={"default": "basic"}
    )
    model: str | None = None


class Retrieve(Ranked):
    """The chunks that the answer is based on; the first event of an ask stream."""

    top_k: Unknowable[int]
    mode: Unknowable[Mode]
    trace: Trace


class AnswerDelta(Response):
    """One piece of the answer's text."""

    text: str


class Citation(Response):
    """A chunk that the answer cites."""

    chunk_id: str
    path: str
    title: str
    """The chunk's title, or its path if it has none."""
    score: float


class StreamError(Response):
    """An error that occurred after the stream began."""

    code: Unknowable[Annotated[str, Field(min_length=1)]]
    message: str = Field(min_length=1)


class Usage(Response):
    """Token counts as reported by the upstream."""

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)


class Done(Response):
    """The last event of an ask stream."""

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
