"""Calls to services that can fail: the silence that is borne, and failures put into words."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from memoryd.problems import Problem

T = TypeVar("T")

RETRIES = 2


class UpstreamError(Problem):
    """`bad_gateway`, or `timeout` after the stated silence."""


@dataclass(frozen=True, slots=True)
class SilenceTimeout:
    """How an upstream is waited for."""

    name: str
    seconds: float
    secret: str | None = None
    """Never part of a message, whatever the upstream repeats."""

    async def wait(self, work: Awaitable[T]) -> T:
        """What `work` gives; raises UpstreamError where it fails, or is silent for too long."""
        try:
            async with asyncio.timeout(self.seconds):
                return await work
        except TimeoutError as error:
            raise UpstreamError(
                "timeout", f"{self.name} was silent for {self.seconds:g} s"
            ) from error
        except StopAsyncIteration:
            raise
        except UpstreamError:
            raise
        except Exception as error:
            # Vendors' clients let errors of transport and of parsing through, each of its own
            # kind: whatever it is, the upstream has not answered.
            raise self.failed(f"{type(error).__name__}: {error}") from error

    async def each(self, pieces: AsyncGenerator[T, None]) -> AsyncIterator[T]:
        """The pieces of a stream, each waited for in that way."""
        async with aclosing(pieces):
            while True:
                try:
                    piece = await self.wait(anext(pieces))
                except StopAsyncIteration:
                    return
                yield piece

    def some(self, text: str | None) -> str:
        """`text`; raises UpstreamError where there is none."""
        if not text:
            raise self.failed("the reply has no text")
        return text

    def failed(self, why: str) -> UpstreamError:
        if self.secret:
            why = why.replace(self.secret, "***")
        return UpstreamError("bad_gateway", f"{self.name}: {why}")
