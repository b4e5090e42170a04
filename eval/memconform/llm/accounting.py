"""What calls take: estimated before them, and as the services report it."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from memconform.llm.chat import ChatRequest, LlmError, Usage
from memconform.llm.prices import NANO, ModelTraits

_Value = TypeVar("_Value")

_BYTES_PER_TOKEN = 3
"""English has about 4, scripts of 3 bytes a letter about 3: estimates err on the high side."""
_MESSAGE_TOKENS = 16
"""What a service adds to a message, and the schema to a request, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[_Value]):
    """What came of a call."""

    value: _Value
    served_model: str
    cached: bool
    usage: Usage | None
    """All tokens that the service reported for it, repetitions included; 0 of a cached call."""
    cost: int
    """Billionths of a dollar; 0 of a cached call."""


@dataclass(slots=True)
class CallCost:
    """What the attempts of one call took."""

    usage: Usage | None = None
    amount: int = 0

    def add(self, usage: Usage | None, amount: int) -> None:
        self.amount += amount
        if usage is not None:
            before = self.usage or Usage(0, 0)
            self.usage = Usage(before.input + usage.input, before.output + usage.output)


@dataclass(slots=True)
class CallTotals:
    """What calls of one role took."""

    calls: int = 0
    """Replies, and calls that failed to the end."""
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    """Billionths of a dollar."""

    def add(self, call: Reply[Any] | LlmError) -> None:
        """Count a reply or a failed call."""
        self.calls += 1
        self.cached += isinstance(call, Reply) and call.cached
        self.cost += call.cost
        if call.usage is not None:
            self.input_tokens += call.usage.input
            self.output_tokens += call.usage.output

    def merge(self, other: "CallTotals") -> None:
        """Add what other calls of the role took."""
        self.calls += other.calls
        self.cached += other.cached
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cost += other.cost


def estimate(request: ChatRequest, traits: ModelTraits) -> Usage:
    """Tokens that a call may take: input by its bytes, output up to its limit."""
    size = sum(len(message.content.encode()) for message in request.messages)
    prompt = size // _BYTES_PER_TOKEN + _MESSAGE_TOKENS * (len(request.messages) + 1)
    return Usage(prompt, max(request.max_output_tokens, traits.min_output_tokens))


def dollars(amount: int) -> float:
    """Billionths of a dollar as dollars."""
    return amount / NANO
