"""What the upstream can be told to do: rules, each for some requests and some times."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Kind = Literal["chat", "embeddings", "rerank"]
"""`chat` is both OpenAI's chat completions and Anthropic's messages."""

Fault = Literal["hang", "cut", "ends", "error", "bad_json"]
"""What goes wrong: silence, a broken connection, an end before the end, an error object, or what
no JSON parser reads."""

Milliseconds = Annotated[float, Field(ge=0, le=600_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_MAX_TOKENS = 2**53 - 1
"""The largest integer that every JSON parser reads as it is written."""
_MAX_RETRY_SECONDS = 86_400


class TokenUsage(_Strict):
    input: int = Field(ge=0, le=_MAX_TOKENS)
    output: int = Field(ge=0, le=_MAX_TOKENS)


class Reply(_Strict):
    """One way to answer; what is left out is as without a script."""

    text: str | None = None
    """The chat's whole answer, sent a word at a time."""
    deltas: list[str] | None = None
    """The chat's answer in just these pieces."""
    usage: TokenUsage | None = None
    body: Any = None
    """The JSON body of an answer that is not streamed, whatever the request."""
    status: int = Field(default=200, ge=200, le=599)
    """Not 200: a problem in the API's own shape."""
    retry_after: float | None = Field(default=None, ge=0, le=_MAX_RETRY_SECONDS)
    """Seconds, sent as `Retry-After`."""
    delay_ms: Milliseconds = 0
    """Before the answer's first byte."""
    delta_delay_ms: Milliseconds = 0
    """Before each piece but the first."""
    fault: Fault | None = None
    after: int = Field(default=0, ge=0)
    """So many pieces of a stream come before the fault; of a body cut, half of it."""

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        if self.text is not None and self.deltas is not None:
            raise ValueError("text and deltas are both the answer: give one")
        return self


class ScriptRule(_Strict):
    kind: Kind | None = None
    """None: any."""
    contains: str = ""
    """The rule is for requests whose body, as JSON text, holds this."""
    times: int | None = Field(default=None, ge=1)
    """How often it serves; None: always."""
    reply: Reply


class Script(_Strict):
    """The first rule that fits a request and has times left is used."""

    rules: list[ScriptRule] = Field(default_factory=list)


@dataclass(slots=True)
class _Left:
    rule: ScriptRule
    times: int | None


class Playing:
    """A script, and how often each of its rules may still serve."""

    def __init__(self, script: Script) -> None:
        self._rules = [_Left(rule, rule.times) for rule in script.rules]

    def reply(self, kind: Kind, body: str) -> Reply:
        """The reply of the first rule that fits; without one, of an upstream left to itself."""
        for left in self._rules:
            fits = left.rule.kind in (None, kind) and left.rule.contains in body
            if fits and left.times != 0:
                left.times = left.times and left.times - 1
                return left.rule.reply
        return Reply()
