"""Chat models behind one protocol, called with their vendors' clients."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from memoryd.upstream import SilenceTimeout


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    system: str
    user: str
    model: str | None = None
    """Overrides the configured model."""


class ChatModel(Protocol):
    def stream(self, prompt: Prompt) -> AsyncIterator[str | Usage]:
        """Stream the reply, then its usage, whose counts may be None.

        Raises:
            UpstreamError: if the service fails, or the reply ends early.
        """
        ...

    async def complete(self, prompt: Prompt) -> str:
        """The whole reply; raises UpstreamError if the service fails."""
        ...


class ServiceChat(ABC):
    """What the chat models of services share: how they stream, and the limit of silence."""

    def __init__(self, client: Any, model: str, silence_timeout: SilenceTimeout) -> None:  # noqa: ANN401 - its module is imported only where it is used
        self._client = client
        self._model = model
        self._silence_timeout = silence_timeout

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Usage]:
        async for piece in self._silence_timeout.iterate(self._pieces(prompt)):
            if piece:
                yield piece

    @abstractmethod
    def _pieces(self, prompt: Prompt) -> AsyncGenerator[str | Usage, None]:
        """As `stream`, but text may be empty: it shows that the upstream lives."""

    async def complete(self, prompt: Prompt) -> str:
        return self._silence_timeout.require_text(
            await self._silence_timeout.wait(self._text(prompt))
        )

    @abstractmethod
    async def _text(self, prompt: Prompt) -> str | None:
        """The text of the whole reply."""
