"""OpenAI's Chat Completions API, and services that have the same."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from memoryd.llm.llm import Prompt, Usage
from memoryd.upstream import SilenceTimeout


class OpenAIChat:
    """Services with OpenAI's Chat Completions API, such as Ollama."""

    def __init__(self, client: Any, model: str, silence_timeout: SilenceTimeout) -> None:  # noqa: ANN401 - its module is imported only where it is used
        self._create = client.chat.completions.create
        self._model = model
        self._silence_timeout = silence_timeout

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "model": prompt.model or self._model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
        }

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Usage]:
        async for piece in self._silence_timeout.iterate(self._pieces(prompt)):
            if piece:
                yield piece

    async def _pieces(self, prompt: Prompt) -> AsyncGenerator[str | Usage, None]:
        """Text may be empty: it shows that the upstream lives."""
        usage, finished = Usage(), False
        options = {"include_usage": True}
        async with await self._create(
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

    async def complete(self, prompt: Prompt) -> str:
        return await self._silence_timeout.wait(self._complete(prompt))

    async def _complete(self, prompt: Prompt) -> str:
        reply = await self._create(**self._request(prompt))
        return self._silence_timeout.require_text(reply.choices[0].message.content)
