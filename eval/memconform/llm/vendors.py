"""The vendors' own clients behind `ChatModel`; each is imported when it is first needed.

OpenAI's client alone takes 0.3 s to import, and seconds on a busy machine.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeGuard, TypeVar

from memconform.errors import UsageError
from memconform.llm.chat import (
    ChatModel,
    ChatRequest,
    Completion,
    LlmError,
    ModelUnusableError,
    RequestRejectedError,
    TransientError,
    Usage,
)
from memconform.llm.clients import anthropic_client, openai_client
from memconform.llm.names import ModelName
from memconform.llm.prices import ModelTraits
from memconform.llm.settings import Endpoint

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_THROTTLED = (429, 529)
_RETRIED = (408, 409, 425, *_THROTTLED)
_UNUSABLE = {
    401: "check the key that the provider's variable holds",
    402: "check the account that the key belongs to",
    403: "check that the key may use this model",
    404: "check the model's name and the address of the provider",
}
_UNPAID = "insufficient_quota"
"""OpenAI's code of a 429 that no waiting ends: the account has no credit."""
_LOST_REPLY = (408, 502, 504, 524)
"""Statuses of gateways behind which a reply may have been made, and charged for."""
_ODD = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What clients, and reading their objects, raise for JSON of another shape than the API's."""
_MAX_TOKENS = 10_000_000
"""No call takes so many; a larger count is no count."""
_SHOWN = 300
"""Characters of a service's message."""


def open_model(name: ModelName, endpoint: Endpoint, traits: ModelTraits) -> ChatModel:
    """The client of the service that serves a model."""
    if name.provider == "anthropic":
        return AnthropicModel(name, endpoint, traits)
    return OpenAIModel(name, endpoint, traits)


class _Closable(Protocol):
    async def close(self) -> None: ...


_Client = TypeVar("_Client", bound=_Closable)


class _OpenedOnce(Generic[_Client]):
    """A client that a thread imports and opens: neither a deadline nor other calls wait for it.

    Imported in the event loop, within the first call's deadline, it took 8 s of one on a busy
    machine, and the call failed with `llm_timeout`.
    """

    def __init__(self, opened: Callable[[], _Client]) -> None:
        self._opened = opened
        self._client: _Client | None = None
        self._opening = asyncio.Lock()

    async def get(self) -> _Client:
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._opened)
            return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


class OpenAIModel:
    """Chat completions (https://platform.openai.com/docs/api-reference/chat), by whoever serves
    them: OpenAI, Ollama, vLLM, Gemini, the scripted upstream."""

    def __init__(self, name: ModelName, endpoint: Endpoint, traits: ModelTraits) -> None:
        self._name = name
        self._endpoint = endpoint
        self._traits = traits
        self._client = _OpenedOnce(self._opened)

    def _opened(self) -> "AsyncOpenAI":
        client = openai_client(self._endpoint)
        _ = client.chat.completions  # Imported by the client when it is first read.
        return client

    async def ready(self) -> None:
        await self._client.get()

    async def complete(self, request: ChatRequest, timeout_s: float) -> Completion:
        import openai  # noqa: PLC0415 - see the module's docstring

        client = await self._client.get()
        with _translated(self._name, openai, openai.OpenAIError):
            reply = await client.chat.completions.create(
                model=self._name.model,
                messages=[
                    {"role": message.role, "content": message.content}  # type: ignore[misc] # a role is known
                    for message in request.messages
                ],
                timeout=timeout_s,
                **self._parameters(request),
            )
            return _openai_completion(reply)

    def _parameters(self, request: ChatRequest) -> dict[str, Any]:
        limit = max(request.max_output_tokens, self._traits.min_output_tokens)
        # Compatible servers know the older name alone.
        by = "max_completion_tokens" if self._name.provider == "openai" else "max_tokens"
        parameters: dict[str, Any] = {by: limit} | dict(self._traits.sampling)
        if request.schema is not None and self._traits.json_schema:
            schema = {"name": "reply", "schema": dict(request.schema), "strict": True}
            parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
        return parameters

    async def close(self) -> None:
        await self._client.close()


class AnthropicModel:
    """Messages (https://docs.anthropic.com/en/api/messages)."""

    def __init__(self, name: ModelName, endpoint: Endpoint, traits: ModelTraits) -> None:
        self._name = name
        self._endpoint = endpoint
        self._traits = traits
        self._client = _OpenedOnce(self._opened)

    def _opened(self) -> "AsyncAnthropic":
        client = anthropic_client(self._endpoint)
        _ = client.messages  # Imported by the client when it is first read.
        return client

    async def ready(self) -> None:
        await self._client.get()

    async def complete(self, request: ChatRequest, timeout_s: float) -> Completion:
        import anthropic  # noqa: PLC0415 - see the module's docstring

        client = await self._client.get()
        system = "\n\n".join(m.content for m in request.messages if m.role == "system")
        body: dict[str, Any] = dict(self._traits.sampling)
        if request.schema is not None and self._traits.json_schema:
            output_format = {"type": "json_schema", "schema": dict(request.schema)}
            body["output_config"] = {"format": output_format}
        with _translated(self._name, anthropic, anthropic.AnthropicError):
            reply = await client.messages.create(
                model=self._name.model,
                max_tokens=max(request.max_output_tokens, self._traits.min_output_tokens),
                system=system,
                messages=[
                    {"role": message.role, "content": message.content}  # type: ignore[misc] # same
                    for message in request.messages
                    if message.role != "system"
                ],
                timeout=timeout_s,
                # Sampling parameters are of some models only, and not of the client.
                extra_body=body or None,
            )
            return _anthropic_completion(reply)

    async def close(self) -> None:
        await self._client.close()


def _openai_completion(reply: Any) -> Completion:  # noqa: ANN401 - whatever a server sent
    usage, served = _openai_usage(reply), _served(reply)
    choices = reply.choices
    if choices is None or (isinstance(choices, list) and not choices):
        return Completion(text="", usage=usage, served_model=served, rejection="it has no choice")
    message = choices[0].message
    content = "" if message is None else message.content
    text = _text("" if content is None else content)
    rejection = ""
    if message is not None and getattr(message, "refusal", None):
        rejection = f"the model refused: {str(message.refusal)[:_SHOWN]}"
    elif choices[0].finish_reason not in ("stop", None):
        rejection = f"it ended by {choices[0].finish_reason!r}"
    elif not text.strip():
        rejection = "it is empty"
    return Completion(text=text, usage=usage, served_model=served, rejection=rejection)


def _anthropic_completion(reply: Any) -> Completion:  # noqa: ANN401 - whatever a server sent
    blocks = [block for block in reply.content or () if block.type == "text"]
    text = "".join(_text(block.text) for block in blocks)
    rejection = ""
    if reply.stop_reason not in ("end_turn", "stop_sequence", None):
        rejection = f"it ended by {reply.stop_reason!r}"
    elif not text.strip():
        rejection = "it is empty"
    return Completion(
        text=text,
        usage=_usage(reply, "input_tokens", "output_tokens"),
        served_model=_served(reply),
        rejection=rejection,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text is of type {type(value).__name__}")
    return value


def _served(reply: object) -> str:
    name = getattr(reply, "model", None)
    return name[:_SHOWN] if isinstance(name, str) else ""


def _openai_usage(reply: object) -> Usage | None:
    usage = _usage(reply, "prompt_tokens", "completion_tokens")
    total = getattr(getattr(reply, "usage", None), "total_tokens", None)
    if usage is None or not _is_count(total):
        return usage
    # Some gateways count reasoning in the total alone, and charge for it.
    return Usage(usage.input, max(usage.output, total - usage.input))


def _usage(reply: object, input_key: str, output_key: str) -> Usage | None:
    usage = getattr(reply, "usage", None)
    counts = [getattr(usage, key, None) for key in (input_key, output_key)]
    return Usage(*counts) if all(map(_is_count, counts)) else None  # type: ignore[arg-type] # checked


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value <= _MAX_TOKENS


class _Library(Protocol):
    """What both vendors' packages name alike."""

    APIStatusError: Any
    APITimeoutError: Any


@contextmanager
def _translated(name: ModelName, library: _Library, base: type[Exception]) -> Iterator[None]:
    """Raise an LlmError in place of what a vendor's client raises, or reading its reply.

    `base` is the class of all exceptions of the vendor's own.
    """
    try:
        yield
    except base as error:
        raise _failure(name, error, library) from error
    except _ODD as error:
        detail = f"{type(error).__name__}: {error}"[:_SHOWN]
        message = f"{name} sent an unreadable reply: {detail}"
        raise TransientError(message, code="llm_bad_reply") from error


def _failure(name: ModelName, error: Exception, library: _Library) -> LlmError:
    """What a vendor's exception means for the caller."""
    if isinstance(error, library.APIStatusError):
        return _status_failure(name, error)
    cause = error.__cause__ or error
    detail = f"{type(cause).__name__}: {cause}"[:_SHOWN].rstrip(": ")
    # A connection that was never made reached nobody who could charge for it.
    if "Connect" in type(cause).__name__:
        return TransientError(
            f"the connection to {name} failed: {detail}", code="llm_connection", billable=False
        )
    if isinstance(error, library.APITimeoutError):
        return TransientError(f"{name} did not answer in time", code="llm_timeout")
    return TransientError(f"the connection to {name} failed: {detail}", code="llm_connection")


def _status_failure(name: ModelName, error: Any) -> LlmError:  # noqa: ANN401 - of either library
    status = error.status_code
    text = _message(error)
    message = f"{name} answered {status}: {text}"
    hint = _UNUSABLE.get(status, "")
    if 300 <= status < 400:
        # Followed, another host would get the answers, and its verdicts would count.
        hint = "redirects are not followed: give the address that it leads to"
    if status == 429 and getattr(error, "code", None) == _UNPAID:
        hint = _UNUSABLE[402]
    if status == 400 and "api key" in text.lower():
        # Gemini's compatible address answers so to a wrong key.
        hint = _UNUSABLE[401]
    if hint:
        return ModelUnusableError(message, code="llm_unusable", hint=hint)
    if status in _RETRIED or status >= 500:
        return TransientError(
            message,
            code="llm_throttled" if status in _THROTTLED else "llm_failed",
            retry_after_s=_retry_after(error.response.headers),
            throttled=status in _THROTTLED,
            billable=status in _LOST_REPLY,
        )
    return RequestRejectedError(message, code="llm_rejected")


def _message(error: Any) -> str:  # noqa: ANN401 - of either library
    body = error.body
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        text = inner.get("message") if isinstance(inner, Mapping) else None
        if isinstance(text, str):
            return text[:_SHOWN]
        return json.dumps(body, default=str)[:_SHOWN]
    return str(error)[:_SHOWN]


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; RFC 9110 section 10.2.3 also has dates, which are not used by these services."""
    try:
        seconds = float(headers.get("retry-after-ms", "")) / 1e3
    except ValueError:
        try:
            seconds = float(headers.get("retry-after", ""))
        except ValueError:
            return None
    return seconds if 0 <= seconds < float("inf") else None


def require_priced(name: ModelName, traits: ModelTraits, *, allowed: bool) -> None:
    """Raise UsageError (`unpriced_model`) for a model whose price is unknown, unless allowed."""
    if traits.price is None and not allowed:
        raise UsageError(
            f"the price of {name} is unknown, so that no budget can hold",
            code="unpriced_model",
            hint="add it to a file and pass --prices FILE (see docs/JUDGES.md), or use"
            " --allow-unpriced",
        )
