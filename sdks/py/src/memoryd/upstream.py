"""Calls to services, with a timeout on silence and failures turned into Problems."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar, TypeVarTuple

from anyio import current_effective_deadline, from_thread

from memoryd.problem import Problem

T = TypeVar("T")
Args = TypeVarTuple("Args")

RETRIES = 2


class UpstreamError(Problem):
    """A service failed: `bad_gateway`, or `timeout` if it was silent for too long."""


@dataclass(frozen=True, slots=True)
class SilenceTimeout:
    """Waits for an upstream, but not for longer than `seconds` of silence."""

    name: str
    seconds: float
    secret: str | None = None
    """A key that is redacted from messages."""

    async def wait(self, work: Awaitable[T]) -> T:
        """Await `work`; raises UpstreamError if it fails, or is silent for too long."""
        try:
            async with asyncio.timeout(self.seconds):
                return await work
        except TimeoutError as error:
            raise UpstreamError(
                "timeout", f"{self.name} was silent for {self.seconds:g} s"
            ) from error
        except (StopAsyncIteration, UpstreamError):
            raise
        except Exception as error:
            # Vendors' clients pass on transport and parsing errors of many types; any of them means
            # that the upstream has not answered.
            raise self.failure(f"{type(error).__name__}: {error}") from error

    async def iterate(self, pieces: AsyncGenerator[T, None]) -> AsyncIterator[T]:
        """The pieces of a stream, each awaited as in `wait`."""
        async with aclosing(pieces):
            while True:
                try:
                    piece = await self.wait(anext(pieces))
                except StopAsyncIteration:
                    return
                yield piece

    def require_text(self, text: str | None) -> str:
        """Return `text`; raises UpstreamError if it is empty."""
        if not text:
            raise self.failure("the reply contains no text")
        return text

    def failure(self, reason: str) -> UpstreamError:
        if self.secret:
            reason = reason.replace(self.secret, "***")
        return UpstreamError("bad_gateway", f"{self.name}: {reason}")


def call_service(call: Callable[[*Args], Awaitable[T]], *args: *Args) -> T:
    """Await `call(*args)` on the event loop, from a worker thread; a disconnect cancels it."""

    async def run() -> T:
        # anyio does not cancel what begins after the cancellation; its locks would spin instead.
        if current_effective_deadline() == -math.inf:
            raise Problem("internal_error", "the client has disconnected")
        return await call(*args)

    return from_thread.run(run)
