"""Replies and money of commands elsewhere, as if they were one command here."""

import asyncio
import json
import re
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memconform.llm.budget import Ledger
from memconform.llm.cache import CachedReply, ReplyCache
from memconform.llm.chat import BudgetSpentError, HaltingError

_KEY: Final = re.compile(r"[0-9a-f]{64}")
_WAIT_SECONDS: Final = 1_800.0
"""How long a call may hold up an equal one, or one that lacks money, of a caller that is still
there: more than a call with its retries and a repair takes."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A call that somebody makes now, for which others wait."""

    caller: str
    until: float
    """When others wait no longer, by the monotonic clock."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class BudgetServer:
    """Answers what `memconform.llm.budget_client` asks."""

    def __init__(self, ledger: Ledger, contexts: Path | None = None) -> None:
        """
        Args:
            ledger: holds what all of them spend.
            contexts: the folder of a cache that they name besides the user's; any other name is
                that of the user's.
        """
        self._ledger = ledger
        self._caches = {"": ReplyCache()}
        if contexts is not None:
            self._caches[str(contexts)] = ReplyCache(contexts)
        self._claims: dict[tuple[str, str], _Claim] = {}
        """By folder and key."""
        self._reserved = Counter[str]()
        """By caller, calls whose reservation is not settled."""
        self._settled = asyncio.Event()

    async def answer(self, caller: str, line: bytes) -> bytes:
        """The line that answers a line; what nobody here sends is answered with an error.

        A caller that is cancelled while it waits has claimed and reserved nothing.
        """
        try:
            reply = await self._answer(caller, json.loads(line))
        except HaltingError as error:
            reply = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"a call is malformed: {error!r}"
            reply = {"error": {"code": "ledger_unusable", "message": message, "hint": None}}
        return json.dumps(reply).encode() + b"\n"

    def forget(self, caller: str) -> None:
        """End the claims of a caller that is lost, and wait for none of its calls.

        The money that it had reserved stays committed: the services may have charged for it.
        """
        for key, claim in list(self._claims.items()):
            if claim.caller == caller:
                self._end(key)
        del self._reserved[caller]
        self._wake()

    async def _answer(self, caller: str, request: dict[str, Any]) -> dict[str, Any]:
        operation = request.pop("operation")
        match operation:
            case "committed":
                return {"committed": self._ledger.committed}
            case "reserve":
                await self._reserve(caller, int(request["amount"]), request["budget"])
            case "settle":
                self._ledger.settle(int(request["reserved"]), int(request["spent"]))
                if self._reserved[caller]:
                    self._reserved[caller] -= 1
                self._wake()
            case "read":
                return _shown(self._cache(request).read(_key(request)))
            case "claim":
                return _shown(await self._claim(caller, request))
            case "write":
                reply = CachedReply(str(request["text"]), str(request["served_model"]))
                self._cache(request).write(_key(request), reply)
                self._end(_place(request))
            case "release":
                self._end(_place(request))
            case _:
                raise ValueError(operation)
        return {}

    def _cache(self, request: dict[str, Any]) -> ReplyCache:
        return self._caches.get(request["folder"], self._caches[""])

    async def _claim(self, caller: str, request: dict[str, Any]) -> CachedReply | None:
        place = _place(request)
        while (reply := self._cache(request).read(place[1])) is None:
            claim = self._claims.get(place)
            if claim is None or (left := claim.until - time.monotonic()) <= 0:
                self._claims[place] = _Claim(caller, time.monotonic() + _WAIT_SECONDS)
                return None
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await claim.ended.wait()
        return reply

    def _end(self, place: tuple[str, str]) -> None:
        claim = self._claims.pop(place, None)
        if claim is not None:
            claim.ended.set()

    async def _reserve(self, caller: str, amount: int, budget: int | None) -> None:
        if amount < 0:
            raise ValueError(amount)
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            self._ledger.budget = budget
            try:
                self._ledger.reserve(amount)
            except BudgetSpentError:
                # Calls in flight may give back what they do not take.
                left = deadline - time.monotonic()
                if not self._reserved.total() or left <= 0:
                    raise
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._settled.wait()
            else:
                self._reserved[caller] += 1
                return

    def _wake(self) -> None:
        """Let calls that wait for money look again."""
        self._settled.set()
        self._settled = asyncio.Event()


def _key(request: dict[str, Any]) -> str:
    """The key of a request, which becomes the name of a file."""
    if not _KEY.fullmatch(key := request["key"]):
        raise ValueError(key)
    return str(key)


def _place(request: dict[str, Any]) -> tuple[str, str]:
    return str(request["folder"]), _key(request)


def _shown(reply: CachedReply | None) -> dict[str, Any]:
    return {} if reply is None else {"text": reply.text, "served_model": reply.served_model}
