"""OpenAI's Chat Completions API, and services that have the same."""

from collections.abc import AsyncGenerator
from typing import Any

from memoryd.llm.llm import Prompt, ServiceChat, Usage


class OpenAIChat(ServiceChat):
    """Services with OpenAI's Chat Completions API, such as Ollama."""

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "model": prompt.model or self._model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
        }

    async def _pieces(self, prompt: Prompt) -> AsyncGenerator[str | Usage, None]:
        usage, finished = Usage(), False
        options = {"include_usage": True}
        async with await self._client.chat.completions.create(
            **self._request(prompt), stream=True, stream_options=options
        ) as chunks:
            async for chunk in chunks:
                if chunk.usage is not None:
                    usage = Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
                for choice in chunk.choices[:1]:
                    finished = finished or choice.finish_reason is not None
                    yield choice.delta.content or ""
        if not finished:
            raise self._silence_timeout.failure("the stream ended before its end")
        yield usage

    async def _text(self, prompt: Prompt) -> str | None:
        reply = await self._client.chat.completions.create(**self._request(prompt))
        text: str | None = reply.choices[0].message.content
        return text
