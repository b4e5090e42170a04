"""Anthropic's Messages API."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from memoryd.llm.llm import Prompt, Usage
from memoryd.upstream import SilenceTimeout

_MAX_TOKENS = 1024


class AnthropicChat:
    """Anthropic's Messages API."""

    def __init__(self, client: Any, model: str, silence_timeout: SilenceTimeout) -> None:  # noqa: ANN401 - its module is imported only where it is used
        self._create = client.messages.create
        self._model = model
        self._silence_timeout = silence_timeout

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "model": prompt.model or self._model,
            "max_tokens": _MAX_TOKENS,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
        }

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Usage]:
        async for piece in self._silence_timeout.iterate(self._pieces(prompt)):
            if piece:
                yield piece

    async def _pieces(self, prompt: Prompt) -> AsyncGenerator[str | Usage, None]:
        """Text may be empty: it shows that the upstream lives."""
        input_tokens = output_tokens = None
        finished = False
        async with await self._create(**self._request(prompt), stream=True) as events:
            async for event in events:
                text = ""
                match event.type:
                    case "message_start":
                        input_tokens = event.message.usage.input_tokens
                    case "content_block_delta" if event.delta.type == "text_delta":
                        text = event.delta.text
                    case "message_delta":
                        output_tokens = event.usage.output_tokens
                    case "message_stop":
                        finished = True
                yield text
        if not finished:
            raise self._silence_timeout.failure("the stream ended before its end")
        yield Usage(input_tokens, output_tokens)

    async def complete(self, prompt: Prompt) -> str:
        return await self._silence_timeout.wait(self._complete(prompt))

    async def _complete(self, prompt: Prompt) -> str:
        reply = await self._create(**self._request(prompt))
        return self._silence_timeout.require_text(
            "".join(b.text for b in reply.content if b.type == "text")
        )
