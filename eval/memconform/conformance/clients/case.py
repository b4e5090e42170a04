"""Models of a client case: what the client is asked to do, how the daemon answers, what must come.

A daemon's responses are written as what they mean (`retrieve`, `delta`, `done`) and how they are
sent (line ends, cuts, encodings), so that the same case holds for clients of other services.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from memconform.conformance.case import Level, Milliseconds, Slug
from memconform.conformance.request_bodies import Content, Strict
from memconform.contract.wire import JsonValue

Claim = Literal["ask", "search", "ingest", "token", "idle", "deadline", "cancel", "retry"]
ErrorKind = Literal["http", "daemon", "cut", "timeout", "protocol", "connection", "unknown"]
Call = Literal["ask", "search", "ingest"]
Wire = Literal["memory", "openai", "anthropic"]
"""Whose streams a client reads: those of this contract, or of another service."""

TEXTS = ("The lamp ", "is in the ", "attic.")
"""The deltas of the answer that most cases stream."""


class Item(Strict):
    """One part of a stream: an event, bytes, or what happens between them; exactly one key."""

    event: str | None = None
    """The name of an event, whose data is `data`."""
    data: Any = None
    delta: str | None = None
    """The text of an `answer_delta`."""
    raw: str | None = None
    """Text that is sent as it is."""
    yields: list[Any] = Field(default_factory=list)
    """The data of the `answer_delta` that a client reads in `raw`, or in `content`."""
    content: Content | None = None
    """Bytes that are sent as they are."""
    large: int | None = Field(default=None, ge=1, le=16 << 20)
    """An `answer_delta` of so many characters."""
    repeat: int | None = Field(default=None, ge=1, le=200_000)
    """So many `answer_delta` of a character, in few writes."""
    pause_ms: Milliseconds | None = None
    observed: int | None = Field(default=None, ge=0)
    """Nothing is sent until the client has reported so many events."""
    drip_ms: Milliseconds | None = None
    """A comment each so many milliseconds, until the client ends the request, or for 15 s."""
    then: Literal["silence", "end", "cut", "reset"] | None = None
    """`silence`: nothing, until the client ends the request, or for 15 s. `end`: the response ends
    as HTTP says. `cut`: the connection ends without that. `reset`: it is reset."""

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, raw: JsonValue) -> JsonValue:
        """Expand `retrieve`, `citation`, `done`, `silence`, `end`, `cut` and `reset`."""
        if raw in ("silence", "end", "cut", "reset"):
            return {"then": raw}
        return {"event": raw} if isinstance(raw, str) else raw

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if len(keys := self.model_fields_set - {"data", "yields"}) != 1:
            raise ValueError(f"exactly one part is required, not {sorted(keys)}")
        return self


_WHOLE = ("retrieve", *({"delta": text} for text in TEXTS), "citation", "done")


class Response(Strict):
    """One response of the scripted daemon."""

    status: int = Field(default=200, ge=100, le=599)
    headers: dict[str, str] = Field(default_factory=dict)
    """Added to those that the body needs; one of the same name replaces it."""
    to: Call = "ask"
    """The call to which it is the usual success, if there is neither stream, json nor text."""
    stream: list[Item] | None = None
    json_: Any = Field(default=None, alias="json")
    json_body: Any = None
    """The body that a stream of bytes makes, for calls that return one."""
    text: str | None = None
    """A body that is not JSON."""
    ends: list[str] = Field(default=["\n"], min_length=1)
    """The ends of lines, in turn."""
    bom: bool = False
    space: Literal["", " "] = " "
    """What stands behind the colon of a field."""
    lines: list[str] = Field(default_factory=list)
    """Lines that are added to each event: comments, `id`, unknown fields."""
    split_data: bool = False
    """Whether data is written as several lines of `data`, cut where JSON has spaces."""
    cut: Literal["events", "bytes", "lines", "returns", "whole"] | int = "events"
    """Where writes end: behind events, each byte, lines or CRs; nowhere; or each so many bytes."""
    encoding: Literal["gzip", "deflate", "zstd", "nonsense"] | None = None
    """Flushed behind each write."""
    framing: Literal["chunked", "length", "close"] = "chunked"
    version: Literal["1.0", "1.1"] = "1.1"
    reason: str = "Scripted"
    delay_ms: Milliseconds | None = None
    """Before the response begins."""
    cut_head: bool = False
    """Whether the head is written byte by byte."""
    chunk_extension: str = ""
    """What stands behind the size of each chunk."""
    trailers: dict[str, str] = Field(default_factory=dict)
    """Headers behind the last chunk."""
    header_bytes: int = Field(default=0, ge=0, le=1 << 20)
    """Size of a header that is added."""
    informational: list[int] = Field(default_factory=list)
    """Statuses of responses that come before."""
    early: Literal["reads-on", "stops-reading"] | None = None
    """The response is sent as soon as the request's headers have come."""
    then: Literal["keep", "close", "close-later"] = "keep"
    """Whether the connection is kept. `close-later`: kept by its headers, but ended once idle."""
    hang_up: bool = False
    """Whether the connection ends without a response."""

    @model_validator(mode="after")
    def _require_one_body(self) -> Self:
        bodies = (self.stream, self.json_, self.text)
        if sum(body is not None for body in bodies) > 1:
            raise ValueError("at most one of stream, json and text")
        return self

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream of events."""
        return self.stream is not None or (self.to == "ask" and not self._has_body)

    @property
    def _has_body(self) -> bool:
        return self.json_ is not None or self.text is not None

    def items(self) -> list[Item]:
        """The parts of its stream."""
        if self.stream is None:
            return [Item.model_validate(item) for item in _WHOLE]
        return self.stream


class ErrorSpec(Strict):
    """How a call must fail."""

    kind: list[ErrorKind] = Field(min_length=1)
    status: int | None = None
    code: str | None = None
    """Compared if the client gives one; it must, unless its service has no codes."""

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, raw: JsonValue) -> JsonValue:
        if isinstance(raw, str):
            return {"kind": [raw]}
        if isinstance(raw, dict) and isinstance(raw.get("kind"), str):
            return {**raw, "kind": [raw["kind"]]}
        return raw


class Requests(Strict):
    """What the daemon must have seen of a call's requests."""

    count: Annotated[list[int], Field(min_length=1)] | None = None
    """How many there may be; None: one, and as many more as the client may repeat."""
    gap_ms: Milliseconds | None = None
    """Between a response and the request after it, at least."""
    method: str | None = None
    """The method of all of them."""
    target: list[str] | None = None
    """Targets that any of them may have."""
    header: dict[str, str | None] = Field(default_factory=dict)
    """A header of each, compared in lower case; null: without it."""
    body: Any = None
    """The JSON of each body."""
    elsewhere: Literal["no-token"] | None = None
    """What may arrive at another origin."""
    ended: bool = False
    """Whether the client must end the connection, while the daemon still sends."""


class ClientCall(Strict):
    """One call of the client, and what must come of it."""

    call: Call = "ask"
    body: Any = None
    """None: a question, a query or a document that says nothing of the case."""
    body_bytes: int = Field(default=0, ge=0, le=16 << 20)
    """Size of the document of an `ingest`."""
    token: str | None = None
    idle_ms: int = Field(default=8_000, ge=50)
    deadline_ms: int = Field(default=12_000, ge=100)
    retries: int = Field(default=0, ge=0)
    cancel_after: int | None = Field(default=None, ge=1)
    base: str = ""
    """What is appended to the origin in the base URL."""
    host: Literal["127.0.0.1", "[::1]", "localhost"] = "127.0.0.1"
    outcome: Literal["whole", "cancelled", "any"] | None = None
    """`whole`: all events, or the body. `any`: whatever it is, the call ends in time."""
    error: ErrorSpec | None = None
    or_error: ErrorSpec | None = None
    """An error in place of the outcome."""
    requests: Requests = Field(default_factory=Requests)

    @model_validator(mode="after")
    def _require_one_outcome(self) -> Self:
        if self.outcome is not None and self.error is not None:
            raise ValueError("outcome and error exclude each other")
        return self

    @property
    def expected_outcome(self) -> str:
        """`whole`, `cancelled`, `any` or `error`."""
        return "error" if self.error is not None else self.outcome or "whole"


class ClientCase(Strict):
    """A case: calls in order, and the responses in the order of the requests."""

    id: Slug
    title: str = Field(min_length=5, max_length=100)
    why: str = ""
    rules: list[str] = Field(min_length=1)
    level: Level = "must"
    needs: list[Claim] = Field(default_factory=list)
    """What the driver must claim, in addition to what the calls show."""
    wires: list[Wire] = Field(default=["memory", "openai", "anthropic"], min_length=1)
    """The services whose clients it is for."""
    calls: list[ClientCall] = Field(default_factory=lambda: [ClientCall()], min_length=1)
    responses: list[Response] = Field(min_length=1)
    """The last one answers all further requests."""

    @property
    def needed_claims(self) -> list[Claim]:
        """Everything that the driver must claim."""
        needed: list[Claim] = list(self.needs)
        for call in self.calls:
            needed.append(call.call)
            if call.cancel_after is not None:
                needed.append("cancel")
            if call.token is not None:
                needed.append("token")
        return list(dict.fromkeys(needed))
