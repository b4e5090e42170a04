"""Anthropic's Messages API."""

from collections.abc import AsyncGenerator
from typing import Any

from memoryd.llm.llm import Prompt, ServiceChat, Usage

_MAX_TOKENS = 1024


class AnthropicChat(ServiceChat):
    """Anthropic's Messages API."""

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "model": prompt.model or self._model,
            "max_tokens": _MAX_TOKENS,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
        }

    async def _pieces(self, prompt: Prompt) -> AsyncGenerator[str | Usage, None]:
        input_tokens = output_tokens = None
        finished = False
        async with await self._client.messages.create(
            **self._request(prompt), stream=True
        ) as events:
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

    async def _text(self, prompt: Prompt) -> str:
        reply = await self._client.messages.create(**self._request(prompt))
        return "".join(block.text for block in reply.content if block.type == "text")
