"""The vendors' own clients behind `ChatModel`; each is imported when it is first called.

OpenAI's client alone takes 0.3 s to import.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

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
from memconform.llm.names import Endpoint, ModelName
from memconform.llm.prices import ModelTraits

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_THROTTLED = (429, 529)
_RETRIED = (408, 409, 425, *_THROTTLED)
_UNUSABLE = (401, 403, 404)
_SHOWN = 300
"""Characters of a service's message."""


def open_model(name: ModelName, endpoint: Endpoint, traits: ModelTraits) -> ChatModel:
    """The client of the service that serves a model."""
    if name.provider == "anthropic":
        return AnthropicModel(name, endpoint, traits)
    return OpenAIModel(name, endpoint, traits)


class OpenAIModel:
    """Chat completions (https://platform.openai.com/docs/api-reference/chat), by whoever serves
    them: OpenAI, Ollama, vLLM, Gemini, the scripted upstream."""

    def __init__(self, name: ModelName, endpoint: Endpoint, traits: ModelTraits) -> None:
        self._name = name
        self._endpoint = endpoint
        self._traits = traits
        self._client: AsyncOpenAI | None = None

    async def complete(self, request: ChatRequest, timeout_s: float) -> Completion:
        import openai  # noqa: PLC0415 - see the module's docstring

        if self._client is None:
            self._client = openai.AsyncOpenAI(
                api_key=self._endpoint.api_key, base_url=self._endpoint.base_url, max_retries=0
            )
        try:
            reply = await self._client.chat.completions.create(
                model=self._name.model,
                messages=[
                    {"role": message.role, "content": message.content}  # type: ignore[misc] # a role is known
                    for message in request.messages
                ],
                timeout=timeout_s,
                **self._parameters(request),
            )
        except (openai.OpenAIError, ValueError) as error:
            raise _failure(self._name, error, openai) from error
        choices = getattr(reply, "choices", None)
        if not choices:
            return Completion(
                text="",
                usage=_usage(reply, "prompt_tokens", "completion_tokens"),
                served_model=_served(reply),
                flaw="the reply has no choice",
            )
        message = choices[0].message
        text = message.content or "" if message is not None else ""
        flaw = ""
        if getattr(message, "refusal", None):
            flaw = f"the model refused: {message.refusal}"
        elif choices[0].finish_reason not in ("stop", None):
            flaw = f"the reply ended by {choices[0].finish_reason!r}"
        elif not text.strip():
            flaw = "the reply is empty"
        return Completion(
            text=text,
            usage=_usage(reply, "prompt_tokens", "completion_tokens"),
            served_model=_served(reply),
            flaw=flaw,
        )

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
        if self._client is not None:
            await self._client.close()


class AnthropicModel:
    """Messages (https://docs.anthropic.com/en/api/messages)."""

    def __init__(self, name: ModelName, endpoint: Endpoint, traits: ModelTraits) -> None:
        self._name = name
        self._endpoint = endpoint
        self._traits = traits
        self._client: AsyncAnthropic | None = None

    async def complete(self, request: ChatRequest, timeout_s: float) -> Completion:
        import anthropic  # noqa: PLC0415 - see the module's docstring

        if self._client is None:
            self._client = anthropic.AsyncAnthropic(
                api_key=self._endpoint.api_key, base_url=self._endpoint.base_url, max_retries=0
            )
        system = "\n\n".join(m.content for m in request.messages if m.role == "system")
        body: dict[str, Any] = dict(self._traits.sampling)
        if request.schema is not None and self._traits.json_schema:
            output_format = {"type": "json_schema", "schema": dict(request.schema)}
            body["output_config"] = {"format": output_format}
        try:
            reply = await self._client.messages.create(
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
        except (anthropic.AnthropicError, ValueError) as error:
            raise _failure(self._name, error, anthropic) from error
        blocks = getattr(reply, "content", None) or []
        text = "".join(block.text for block in blocks if getattr(block, "type", "") == "text")
        stop = getattr(reply, "stop_reason", None)
        flaw = ""
        if stop not in ("end_turn", "stop_sequence", None):
            flaw = "the model refused" if stop == "refusal" else f"the reply ended by {stop!r}"
        elif not text.strip():
            flaw = "the reply is empty"
        return Completion(
            text=text,
            usage=_usage(reply, "input_tokens", "output_tokens"),
            served_model=_served(reply),
            flaw=flaw,
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


def _served(reply: object) -> str:
    name = getattr(reply, "model", None)
    return name if isinstance(name, str) else ""


def _usage(reply: object, input_key: str, output_key: str) -> Usage | None:
    usage = getattr(reply, "usage", None)
    counts = [getattr(usage, key, None) for key in (input_key, output_key)]
    if all(isinstance(count, int) and count >= 0 for count in counts):
        return Usage(*counts)  # type: ignore[arg-type] # checked
    return None


class _Library(Protocol):
    """What both vendors' packages name alike."""

    APIStatusError: Any
    APITimeoutError: Any


def _failure(name: ModelName, error: Exception, library: _Library) -> LlmError:
    """What a vendor's exception means for the caller."""
    if isinstance(error, library.APIStatusError):
        return _status_failure(name, error)
    if isinstance(error, library.APITimeoutError):
        return TransientError(f"{name} did not answer in time", code="llm_timeout")
    if isinstance(error, ValueError):
        detail = f"{type(error).__name__}: {error}"[:_SHOWN]
        return TransientError(f"{name} sent an unreadable body: {detail}", code="llm_bad_reply")
    cause = error.__cause__ or error
    detail = f"{type(cause).__name__}: {cause}"[:_SHOWN].rstrip(": ")
    # Refused connections never reached the service; of any other nobody knows.
    sent = "Connect" not in type(cause).__name__
    return TransientError(
        f"the connection to {name} failed: {detail}", code="llm_connection", sent=sent
    )


def _status_failure(name: ModelName, error: Any) -> LlmError:  # noqa: ANN401 - of either library
    status = error.status_code
    message = f"{name} answered {status}: {_message(error)}"
    if status in _RETRIED or status >= 500:
        return TransientError(
            message,
            code="llm_throttled" if status in _THROTTLED else "llm_failed",
            retry_after_s=_retry_after(error.response.headers),
            throttled=status in _THROTTLED,
            sent=False,
        )
    if status in _UNUSABLE:
        hint = {
            401: "check the key that the provider's variable holds",
            403: "check that the key may use this model",
            404: "check the model's name and the address of the provider",
        }[status]
        return ModelUnusableError(message, code="llm_unusable", hint=hint)
    return RequestRejectedError(message, code="llm_rejected")


def _message(error: Any) -> str:  # noqa: ANN401 - of either library
    body = error.body
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
