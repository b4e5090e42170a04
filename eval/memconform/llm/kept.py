"""Replies and money that another process keeps: for commands elsewhere which share both.

MEMCONFORM_KEEPER has its port on this machine and a secret, joined by a colon. Each call has a
connection of its own: a line there, of the secret and JSON, and one of JSON back.
"""

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from memconform.errors import UsageError
from memconform.llm.budget import Ledger
from memconform.llm.cache import CachedReply, ReplyCache
from memconform.llm.chat import BudgetSpentError, LedgerError
from memconform.printing.logs import Logger

_log = Logger()

KEEPER_VARIABLE: Final = "MEMCONFORM_KEEPER"
_HOST: Final = "127.0.0.1"
_LINE_BYTES: Final = 1 << 26
_SECONDS: Final = 600.0
"""Longer than a keeper makes anybody wait for another one's call."""


@dataclass(frozen=True, slots=True)
class KeeperSocket:
    """The way to the keeper; OSError and ValueError from any call mean that it is gone."""

    port: int
    secret: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the variable; raises UsageError `ledger_unusable` for any other text."""
        port, colon, secret = text.partition(":")
        if not (port.isdecimal() and 0 < int(port) < 1 << 16 and colon and secret):
            raise UsageError(
                f"{KEEPER_VARIABLE} does not name a keeper",
                code="ledger_unusable",
                hint=f"unset {KEEPER_VARIABLE}, which the program sets for its own children",
            )
        return cls(int(port), secret)

    def ask(self, operation: str, **fields: object) -> dict[str, Any]:
        """Ask, and wait for the reply."""
        with self._sent(operation, fields) as connection, connection.makefile("rb") as file:
            return _reply(file.readline())

    def tell(self, operation: str, **fields: object) -> None:
        """Tell something that has no reply."""
        self._sent(operation, fields).close()

    async def ask_later(self, operation: str, **fields: object) -> dict[str, Any]:
        """As `ask`, without blocking the loop."""
        reader, writer = await asyncio.open_connection(_HOST, self.port, limit=_LINE_BYTES)
        try:
            writer.write(self._line(operation, fields))
            async with asyncio.timeout(_SECONDS):
                return _reply(await reader.read())
        finally:
            writer.close()

    def _sent(self, operation: str, fields: Mapping[str, object]) -> socket.socket:
        connection = socket.create_connection((_HOST, self.port), timeout=_SECONDS)
        try:
            connection.sendall(self._line(operation, fields))
        except BaseException:
            connection.close()
            raise
        return connection

    def _line(self, operation: str, fields: Mapping[str, object]) -> bytes:
        call = json.dumps({"operation": operation, **fields})
        return f"{self.secret} {call}\n".encode()


class KeptCache(ReplyCache):
    """The cache of replies of another process."""

    def __init__(self, keeper: KeeperSocket, folder: Path | None = None) -> None:
        super().__init__(folder)
        self._keeper = keeper
        self._name = "" if folder is None else str(folder)

    def read(self, key: str) -> CachedReply | None:
        """As there; a keeper that is gone has none."""
        try:
            return _cached(self._keeper.ask("read", key=key, folder=self._name))
        except (OSError, ValueError) as error:
            self._warn("the reply cache cannot be read", error)
            return None

    async def claim(self, key: str) -> CachedReply | None:
        """As there, with whom else the keeper serves."""
        try:
            return _cached(await self._keeper.ask_later("claim", key=key, folder=self._name))
        except (OSError, ValueError) as error:
            self._warn("the reply cache cannot be read", error)
            return None

    def release(self, key: str) -> None:
        """As there."""
        self._tell("release", key=key, folder=self._name)

    def write(self, key: str, reply: CachedReply) -> None:
        """As there."""
        fields = {"text": reply.text, "served_model": reply.served_model}
        self._tell("write", key=key, folder=self._name, **fields)

    def _tell(self, operation: str, **fields: object) -> None:
        try:
            self._keeper.tell(operation, **fields)
        except OSError as error:
            self._warn("the reply cache cannot be written: replies are used but not kept", error)


class KeptLedger(Ledger):
    """The ledger of another process."""

    def __init__(self, keeper: KeeperSocket, budget_usd: float | None) -> None:
        # In memory, and unused.
        super().__init__(budget_usd, Path(":memory:"))
        self._keeper = keeper

    @property
    def committed(self) -> int:
        """As there; raises LedgerError if the keeper is gone."""
        try:
            return int(self._keeper.ask("committed")["committed"])
        except (OSError, ValueError) as error:
            raise _gone(error) from error

    async def acquire(self, amount: int) -> None:
        """As there."""
        if not amount:
            return
        try:
            reply = await self._keeper.ask_later("reserve", amount=amount, budget=self.budget)
        except (OSError, ValueError) as error:
            raise _gone(error) from error
        if (refusal := reply.get("error")) is not None:
            kind = BudgetSpentError if refusal["code"] == "budget_spent" else LedgerError
            raise kind(refusal["message"], code=refusal["code"], hint=refusal["hint"])

    def settle(self, reserved: int, spent: int) -> None:
        """As there."""
        if not (reserved or spent):
            return
        try:
            self._keeper.tell("settle", reserved=reserved, spent=spent)
        except OSError as error:
            _log.warning("a reservation cannot be settled and stays", error=str(error))


def open_ledger(budget_usd: float | None, file: Path | None = None) -> Ledger:
    """The ledger of this command, or the keeper's; raises as `Ledger`."""
    keeper = _keeper()
    return Ledger(budget_usd, file) if keeper is None else KeptLedger(keeper, budget_usd)


def open_cache(folder: Path | None = None) -> ReplyCache:
    """The cache of replies of this machine, or the keeper's."""
    keeper = _keeper()
    return ReplyCache(folder) if keeper is None else KeptCache(keeper, folder)


def _keeper() -> KeeperSocket | None:
    text = os.environ.get(KEEPER_VARIABLE)
    return KeeperSocket.parse(text) if text else None


def _reply(line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise ConnectionError("the connection ended before the reply")
    reply: dict[str, Any] = json.loads(line)
    return reply


def _cached(reply: Mapping[str, Any]) -> CachedReply | None:
    return CachedReply(reply["text"], reply["served_model"]) if "text" in reply else None


def _gone(error: Exception) -> LedgerError:
    return LedgerError(
        f"the process that keeps the budget does not answer: {error}",
        code="ledger_unusable",
        hint="repeat the command that started the shards; what was paid for is kept",
    )
