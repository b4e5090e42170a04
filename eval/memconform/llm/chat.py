"""What a chat model is asked, what it returns, and how a call fails."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from memconform.contract.wire import JsonValue
from memconform.errors import ExitCode, MemconformError


def fence_line(kind: str, content: str) -> str:
    """The line before and after data in a prompt.

    It holds a digest of `content`: whoever writes the data cannot know it, and so cannot end the
    fence and go on with instructions.
    """
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    return f"-----{kind} {digest[:16]}-----"


REPAIR = "That reply is invalid: "
"""How a message begins that sends a reply back."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str
    """Valid Unicode: a lone surrogate, which daemons may send, becomes U+FFFD."""

    def __post_init__(self) -> None:
        valid = self.content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        object.__setattr__(self, "content", valid)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One call, without the model that answers it."""

    messages: tuple[Message, ...]
    prompt_version: str
    """Names the wording; part of the cache's key."""
    max_output_tokens: int
    schema: Mapping[str, JsonValue] | None = None
    """JSON Schema of the reply, passed on where the service can enforce one."""
    reply_form: str = field(default="one JSON object of the form asked for", repr=False)
    """What a model is told to reply with if its first reply was invalid. Not in the repr, by whose
    digest calibrations are stored."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the service reports them."""

    input: int
    output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    text: str
    usage: Usage | None
    """None if the service reports none."""
    served_model: str
    """The model that the service says it used."""
    rejection: str = ""
    """Why the text cannot be relied on (refused, cut at the token limit, empty); "" if it can."""


class ChatModel(Protocol):
    """A service's client, bound to one model."""

    async def ready(self) -> None:
        """Open the client, so that no call's time goes into it; nothing is sent."""
        ...

    async def complete(self, request: ChatRequest, timeout_s: float) -> Completion:
        """Make one call, without retries.

        Raises:
            TransientError: a repetition may succeed: 408, 409, 429, 5xx, a timeout, a lost or
                cut connection, a body that is not what the API returns.
            RequestRejectedError: this request never succeeds, others may: 400, 413, 422.
            ModelUnusableError: no request succeeds: 401, 403, 404.
        """
        ...

    async def close(self) -> None: ...


class LlmError(MemconformError):
    """A call to a language model failed; what waits for it is not measured."""

    exit_code = ExitCode.DAEMON
    cost = 0
    """Billionths of a dollar that its attempts took nevertheless."""
    usage: Usage | None = None
    """Tokens that the service reported for them."""
    reported: Usage | None = None
    """Tokens of the last attempt, if the service reported them with its failure."""

    @property
    def was_made(self) -> bool:
        """Whether the call counts as one."""
        return True


class TransientError(LlmError):
    """A call failed in a way that a repetition may not."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        retry_after_s: float | None = None,
        throttled: bool = False,
        billable: bool = True,
    ) -> None:
        super().__init__(message, code=code)
        self.retry_after_s = retry_after_s
        self.throttled = throttled
        """Whether the service asked for fewer requests (429, 529)."""
        self.billable = billable
        """Whether the service may charge for it, because a reply may have been lost."""


class RequestRejectedError(LlmError):
    """The service refuses this request and would refuse it again, say for its length."""

    details = ""
    """The body of the refusal as JSON, which may name a parameter."""


class HaltingError(LlmError):
    """No further call makes sense, whatever it asks; `HALTING_CODES` has the codes of its kinds."""

    unfinished: tuple[JsonValue, ...] = ()
    """The calls that work made before this error ended it, as that work records them. They were
    paid for, and belong in the cost of a report."""

    @property
    def was_made(self) -> bool:
        """Whether it took anything: a spent budget or an earlier failure keeps a call from being
        made."""
        return bool(self.cost) or self.usage is not None


def merge_halts(first: HaltingError | None, later: HaltingError) -> HaltingError:
    """The error that ended work done in parallel, with all that is unfinished by it."""
    if first is None:
        return later
    first.unfinished += later.unfinished
    return first


class ModelUnusableError(HaltingError):
    """No call to this model can succeed: a wrong key, an unknown model, a missing setting."""

    exit_code = ExitCode.USAGE


class BudgetSpentError(HaltingError):
    """The next call could exceed the budget."""

    exit_code = ExitCode.BUDGET


class LedgerError(HaltingError):
    """The ledger cannot be written, so that no budget could hold."""

    exit_code = ExitCode.USAGE


class InvalidRepliesError(HaltingError):
    """Reply after reply had the same fault: a setting is wrong, and the next one would have it."""

    exit_code = ExitCode.USAGE


class NotCachedError(HaltingError):
    """A call is not in the cache, and only cached calls are allowed."""

    exit_code = ExitCode.USAGE


class ServiceDownError(HaltingError):
    """Call after call failed, whatever was asked."""


HALTING_CODES = frozenset(
    (
        *("llm_unusable", "llm_down", "llm_unreachable", "llm_invalid_replies"),
        *("llm_proxy", "llm_certificate"),
        *("budget_spent", "ledger_unusable", "not_cached"),
    )
)
"""The codes of every `HaltingError`, as incidents of results hold them."""
