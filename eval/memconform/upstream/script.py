"""The script of the upstream: rules that say how to answer which requests, and how often."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Kind = Literal["chat", "embeddings", "rerank"]
"""`chat` is both OpenAI's chat completions and Anthropic's messages."""

Fault = Literal["hang", "cut", "ends", "error", "bad_json"]
"""What goes wrong: silence, a broken connection, a stream that ends early, an error object, or
invalid JSON."""

Milliseconds = Annotated[float, Field(ge=0, le=600_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


_MAX_TOKENS = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""
_MAX_RETRY_SECONDS = 86_400


class TokenUsage(_Strict):
    """Token counts that an answer reports."""

    input: int = Field(ge=0, le=_MAX_TOKENS)
    output: int = Field(ge=0, le=_MAX_TOKENS)


class Reply(_Strict):
    """How to answer a request; omitted fields behave as without a script."""

    text: str | None = None
    """The chat's complete answer, streamed word by word."""
    deltas: list[str] | None = None
    """The chat's answer in exactly these pieces."""
    usage: TokenUsage | None = None
    body: Any = None
    """The JSON body of a non-streamed answer, whatever the request."""
    status: int = Field(default=200, ge=200, le=599)
    """Any status but 200 sends an error in the format of the API."""
    retry_after: float | None = Field(default=None, ge=0, le=_MAX_RETRY_SECONDS)
    """Seconds, sent as `Retry-After`."""
    delay_ms: Milliseconds = 0
    """Before the answer's first byte."""
    delta_delay_ms: Milliseconds = 0
    """Before each piece except the first."""
    fault: Fault | None = None
    after: int = Field(default=0, ge=0)
    """How many pieces of a stream precede the fault; a non-streamed body is cut in half."""

    @property
    def replaces_text(self) -> bool:
        """Whether no complete answer of the reader is sent."""
        given = (self.text, self.deltas, self.body, self.fault)
        return self.status != 200 or any(part is not None for part in given)

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        if self.text is not None and self.deltas is not None:
            raise ValueError("text and deltas are mutually exclusive")
        return self


class ScriptRule(_Strict):
    """Which requests get a reply, and how often."""

    kind: Kind | None = None
    """None matches any kind."""
    contains: str = ""
    """Matches requests whose body, as JSON text, contains this."""
    times: int | None = Field(default=None, ge=1)
    """How many requests it answers; None means all."""
    reply: Reply


class Script(_Strict):
    """A list of rules; the first that matches a request and is not used up answers it."""

    rules: list[ScriptRule] = Field(default_factory=list)


@dataclass(slots=True)
class _RuleState:
    rule: ScriptRule
    remaining: int | None


class ScriptPlayer:
    """Applies a script and counts how often each of its rules may still be used."""

    def __init__(self, script: Script) -> None:
        self._states = [_RuleState(rule, rule.times) for rule in script.rules]

    def reply(self, kind: Kind, body: str) -> Reply:
        """The reply of the first matching rule; the default reply if none matches."""
        for state in self._states:
            matches = state.rule.kind in (None, kind) and state.rule.contains in body
            if matches and state.remaining != 0:
                state.remaining = state.remaining and state.remaining - 1
                return state.rule.reply
        return Reply()
