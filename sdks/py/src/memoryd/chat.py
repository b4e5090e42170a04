"""Chat models behind one Protocol, through their vendors' clients."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from memoryd.upstream import Patience

_MAX_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    system: str
    user: str
    model: str | None = None
    """Goes before the model that was configured."""


class Chat(Protocol):
    def stream(self, prompt: Prompt) -> AsyncIterator[str | Usage]:
        """The reply's pieces as they come, at the end what it used, where that is told.

        Raises UpstreamError, also where the reply ends before its end.
        """
        ...

    async def complete(self, prompt: Prompt) -> str:
        """The whole reply; raises UpstreamError."""
        ...


class OpenAIChat:
    """Chat completions: OpenAI's, Ollama's, and all that speak like them."""

    def __init__(self, client: Any, model: str, patience: Patience) -> None:  # noqa: ANN401 - its module is imported only where it is used
        self._client = client
        self._model = model
        self._patience = patience

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "model": prompt.model or self._model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
        }

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Usage]:
        create = self._client.chat.completions.create
        stream = await self._patience.wait(
            create(**self._request(prompt), stream=True, stream_options={"include_usage": True})
        )
        usage, whole = Usage(), False
        async with stream:
            chunks = aiter(stream)
            while True:
                try:
                    chunk = await self._patience.wait(anext(chunks))
                except StopAsyncIteration:
                    break
                if chunk.usage is not None:
                    usage = Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
                for choice in chunk.choices[:1]:
                    whole = whole or choice.finish_reason is not None
                    if choice.delta.content:
                        yield choice.delta.content
        if not whole:
            raise self._patience.failed("the stream ended before its end")
        yield usage

    async def complete(self, prompt: Prompt) -> str:
        create = self._client.chat.completions.create
        reply = await self._patience.wait(create(**self._request(prompt)))
        if not reply.choices or not reply.choices[0].message.content:
            raise self._patience.failed("the reply has no text")
        return str(reply.choices[0].message.content)


class AnthropicChat:
    """Anthropic's messages."""

    def __init__(self, client: Any, model: str, patience: Patience) -> None:  # noqa: ANN401 - its module is imported only where it is used
        self._client = client
        self._model = model
        self._patience = patience

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "model": prompt.model or self._model,
            "max_tokens": _MAX_TOKENS,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
        }

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Usage]:
        create = self._client.messages.create
        stream = await self._patience.wait(create(**self._request(prompt), stream=True))
        input_tokens = output_tokens = None
        whole = False
        async with stream:
            events = aiter(stream)
            while True:
                try:
                    event = await self._patience.wait(anext(events))
                except StopAsyncIteration:
                    break
                if event.type == "message_start":
                    input_tokens = event.message.usage.input_tokens
                elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                    if event.delta.text:
                        yield event.delta.text
                elif event.type == "message_delta":
                    output_tokens = event.usage.output_tokens
                elif event.type == "message_stop":
                    whole = True
        if not whole:
            raise self._patience.failed("the stream ended before its end")
        yield Usage(input_tokens, output_tokens)

    async def complete(self, prompt: Prompt) -> str:
        create = self._client.messages.create
        reply = await self._patience.wait(create(**self._request(prompt)))
        text = "".join(block.text for block in reply.content if block.type == "text")
        if not text:
            raise self._patience.failed("the reply has no text")
        return text
