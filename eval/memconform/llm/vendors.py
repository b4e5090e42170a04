"""The vendors' own clients behind `ChatModel`; each is imported when it is first needed.

OpenAI's client alone takes 0.3 s to import, and seconds on a busy machine.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from memconform.errors import MemconformError
from memconform.llm.chat import (
    ChatModel,
    ChatRequest,
    Completion,
    ModelUnusableError,
    RequestRejectedError,
)
from memconform.llm.clients import anthropic_client, openai_client
from memconform.llm.completions import (
    Response,
    anthropic_completion,
    cut_by_rejection,
    openai_completion,
)
from memconform.llm.failures import translated
from memconform.llm.http_hooks import current_transmission
from memconform.llm.names import ModelName
from memconform.llm.parameters import AcceptedParameters, Parameters, send_accepted
from memconform.llm.prices import ModelTraits
from memconform.llm.settings import Endpoint

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI


def open_model(
    name: ModelName, endpoint: Endpoint, traits: ModelTraits, accepted: AcceptedParameters
) -> ChatModel:
    """The client of the service that serves a model; its refusals are noted in `accepted`."""
    if name.provider == "anthropic":
        return AnthropicModel(name, endpoint, traits, accepted)
    return OpenAIModel(name, endpoint, traits, accepted)


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
                try:
                    self._client = await asyncio.to_thread(self._opened)
                except MemconformError:
                    raise
                except Exception as error:
                    raise ModelUnusableError(
                        f"a model's client cannot be opened: {type(error).__name__}: {error}",
                        code="llm_unusable",
                        hint="check the address, the key and the proxy that the environment's"
                        " variables hold",
                    ) from error
            return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


class _VendorModel(ABC, Generic[_Client]):
    """One model of a service, by a vendor's client."""

    def __init__(
        self,
        name: ModelName,
        endpoint: Endpoint,
        traits: ModelTraits,
        accepted: AcceptedParameters,
    ) -> None:
        self._name = name
        self._endpoint = endpoint
        self._traits = traits
        self._accepted = accepted
        self._client = _OpenedOnce(self._opened)
        self._served = False
        """Whether the address answered as a model service yet."""

    @abstractmethod
    def _opened(self) -> _Client:
        """Import and open the client."""

    @abstractmethod
    async def _send(
        self, request: ChatRequest, timeout_s: float, accepted: Parameters
    ) -> Completion:
        """Send a request with parameters that the service accepts."""

    async def ready(self) -> None:
        await self._client.get()

    async def complete(self, request: ChatRequest, timeout_s: float) -> Completion:
        send = partial(self._send, request, timeout_s)
        return await send_accepted(
            self._name, self._endpoint, self._traits, self._accepted, request=request, send=send
        )

    async def close(self) -> None:
        await self._client.close()


class OpenAIModel(_VendorModel["AsyncOpenAI"]):
    """Chat completions (https://platform.openai.com/docs/api-reference/chat), by whoever serves
    them: OpenAI, Ollama, vLLM, Gemini, the scripted upstream."""

    def _opened(self) -> "AsyncOpenAI":
        client = openai_client(self._endpoint)
        _ = client.chat.completions  # Imported by the client when it is first read.
        return client

    async def complete(self, request: ChatRequest, timeout_s: float) -> Completion:
        try:
            return await super().complete(request, timeout_s)
        except RequestRejectedError as error:
            return cut_by_rejection(self._name, output_limit(request, self._traits), error)

    async def _send(
        self, request: ChatRequest, timeout_s: float, accepted: Parameters
    ) -> Completion:
        import openai  # noqa: PLC0415 - see the module's docstring

        current_transmission().begin(str(self._endpoint.proxy or ""))
        limit = output_limit(request, self._traits)
        parameters: dict[str, Any] = {accepted.limit: limit} | dict(self._traits.sampling)
        if request.schema is not None and self._traits.json_schema and accepted.schema:
            schema = {"name": "reply", "schema": dict(request.schema), "strict": True}
            parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
        with translated(self._name, openai, self._endpoint):
            client = await self._client.get()
            # Raw: the client makes objects of any shape, and text of what is not JSON.
            raw = await client.chat.completions.with_raw_response.create(
                model=self._name.model,
                messages=[
                    {"role": message.role, "content": message.content}  # type: ignore[misc] # a role is known
                    for message in request.messages
                ],
                timeout=timeout_s,
                **parameters,
            )
            response = Response.of(self._name, limit, raw.http_response)
            completion = openai_completion(response, response.body(known=self._served))
        self._served = True
        return completion


class AnthropicModel(_VendorModel["AsyncAnthropic"]):
    """Messages (https://docs.anthropic.com/en/api/messages)."""

    def _opened(self) -> "AsyncAnthropic":
        client = anthropic_client(self._endpoint)
        _ = client.messages  # Imported by the client when it is first read.
        return client

    async def _send(
        self, request: ChatRequest, timeout_s: float, accepted: Parameters
    ) -> Completion:
        import anthropic  # noqa: PLC0415 - see the module's docstring

        current_transmission().begin(str(self._endpoint.proxy or ""))
        limit = output_limit(request, self._traits)
        system = "\n\n".join(m.content for m in request.messages if m.role == "system")
        body: dict[str, Any] = dict(self._traits.sampling)
        if request.schema is not None and self._traits.json_schema and accepted.schema:
            output_format = {"type": "json_schema", "schema": dict(request.schema)}
            body["output_config"] = {"format": output_format}
        with translated(self._name, anthropic, self._endpoint):
            client = await self._client.get()
            raw = await client.messages.with_raw_response.create(
                model=self._name.model,
                max_tokens=limit,
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
            response = Response.of(self._name, limit, raw.http_response)
            completion = anthropic_completion(response, response.body(known=self._served))
        self._served = True
        return completion


def output_limit(request: ChatRequest, traits: ModelTraits) -> int:
    """Output tokens that a call allows."""
    return max(request.max_output_tokens, traits.min_output_tokens)
