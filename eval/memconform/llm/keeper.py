"""Keeps the replies and the money of commands elsewhere, as if they were one command here."""

import asyncio
import json
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from memconform.llm.budget import Ledger
from memconform.llm.cache import CachedReply, ReplyCache
from memconform.llm.chat import BudgetSpentError, HaltingError

_KEY: Final = re.compile(r"[0-9a-f]{64}")
_LEASE_SECONDS: Final = 300.0
"""How long a call may hold up an equal one, or one that lacks money: whoever makes it may be dead.
More than a call with its retries and a repair takes by default."""


class Keeper:
    """Answers what `memconform.llm.kept` asks."""

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
        self._calls: dict[tuple[str, str], asyncio.Event] = {}
        """Calls that somebody makes now, by folder and key; set once it has ended."""
        self._reserved = 0
        """Calls whose reservation is not settled."""
        self._settled = asyncio.Event()

    async def answer(self, line: bytes) -> bytes:
        """The line that answers a line; what nobody here sends is answered with an error."""
        try:
            reply = await self._answer(json.loads(line))
        except HaltingError as error:
            reply = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"a call to the keeper is malformed: {error!r}"
            reply = {"error": {"code": "ledger_unusable", "message": message, "hint": None}}
        return json.dumps(reply).encode() + b"\n"

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        operation = request.pop("operation")
        match operation:
            case "committed":
                return {"committed": self._ledger.committed}
            case "reserve":
                await self._reserve(int(request["amount"]), request["budget"])
            case "settle":
                self._ledger.settle(int(request["reserved"]), int(request["spent"]))
                self._reserved = max(0, self._reserved - 1)
                self._settled.set()
                self._settled = asyncio.Event()
            case "read":
                return _found(self._cache(request).read(_key(request)))
            case "claim":
                return _found(await self._claim(request))
            case "write":
                reply = CachedReply(str(request["text"]), str(request["served_model"]))
                self._cache(request).write(_key(request), reply)
                self._end(request)
            case "release":
                self._end(request)
            case _:
                raise ValueError(operation)
        return {}

    def _cache(self, request: dict[str, Any]) -> ReplyCache:
        return self._caches.get(request["folder"], self._caches[""])

    async def _claim(self, request: dict[str, Any]) -> CachedReply | None:
        key = (str(request["folder"]), _key(request))
        deadline = time.monotonic() + _LEASE_SECONDS
        while (reply := self._cache(request).read(key[1])) is None:
            call = self._calls.get(key)
            if call is None or (left := deadline - time.monotonic()) <= 0:
                self._calls[key] = asyncio.Event()
                return None
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await call.wait()
        return reply

    def _end(self, request: dict[str, Any]) -> None:
        call = self._calls.pop((str(request["folder"]), _key(request)), None)
        if call is not None:
            call.set()

    async def _reserve(self, amount: int, budget: int | None) -> None:
        if amount < 0:
            raise ValueError(amount)
        deadline = time.monotonic() + _LEASE_SECONDS
        while True:
            self._ledger.budget = budget
            try:
                self._ledger.reserve(amount)
            except BudgetSpentError:
                # Calls in flight may give back what they do not take.
                left = deadline - time.monotonic()
                if not self._reserved or left <= 0:
                    raise
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._settled.wait()
            else:
                self._reserved += 1
                return


def _key(request: dict[str, Any]) -> str:
    """The key of a request, which becomes the name of a file."""
    if not _KEY.fullmatch(key := request["key"]):
        raise ValueError(key)
    return str(key)


def _found(reply: CachedReply | None) -> dict[str, Any]:
    return {} if reply is None else {"text": reply.text, "served_model": reply.served_model}
