"""Chat models behind one protocol, called with their vendors' clients."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol


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
