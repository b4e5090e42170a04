"""Replies and money that another process has: for commands elsewhere which share both.

MEMCONFORM_BUDGET_SERVER has its port on this machine and a secret, joined by a colon. Each call has
a connection of its own: a line there, of the secret, `?` if a reply is wanted and `!` if not, and
JSON; and a line of JSON back.
"""

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from memconform.daemons.environment import BUDGET_SERVER
from memconform.daemons.ports import loopback_host
from memconform.errors import UsageError
from memconform.llm.budget import Ledger
from memconform.llm.cache import CachedReply, ReplyCache
from memconform.llm.chat import BudgetSpentError, LedgerError
from memconform.printing.logs import Logger
from memconform.redaction import hide

_log = Logger()

_LINE_BYTES: Final = 1 << 26
_SECONDS: Final = 3_600.0
"""Longer than a server makes anybody wait for another one's call."""


@dataclass(frozen=True, slots=True)
class BudgetConnection:
    """The way to the server; OSError and ValueError from any call mean that it is lost."""

    port: int
    secret: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the variable; raises UsageError `ledger_unusable` for any other text."""
        port, _, secret = text.partition(":")
        if not (port.isdecimal() and 0 < int(port) < 1 << 16 and secret):
            raise UsageError(
                f"{BUDGET_SERVER} does not have a port and a secret",
                code="ledger_unusable",
                hint=f"unset {BUDGET_SERVER}, which the program sets for its own children",
            )
        hide(secret)
        return cls(int(port), secret)

    def ask(self, operation: str, **fields: object) -> dict[str, Any]:
        """Call, and wait for the reply."""
        with self._sent("?", operation, fields) as connection, connection.makefile("rb") as file:
            return _reply(file.readline())

    async def ask_async(self, operation: str, **fields: object) -> dict[str, Any]:
        """As `ask`, without blocking the loop; a cancelled call is withdrawn."""
        connection = asyncio.open_connection(loopback_host(), self.port, limit=_LINE_BYTES)
        reader, writer = await connection
        try:
            writer.write(self._line("?", operation, fields))
            async with asyncio.timeout(_SECONDS):
                return _reply(await reader.read())
        finally:
            writer.close()

    def send(self, operation: str, **fields: object) -> None:
        """Call without a reply."""
        self._sent("!", operation, fields).close()

    def _sent(self, kind: str, operation: str, fields: Mapping[str, object]) -> socket.socket:
        connection = socket.create_connection((loopback_host(), self.port), timeout=_SECONDS)
        try:
            connection.sendall(self._line(kind, operation, fields))
        except BaseException:
            connection.close()
            raise
        return connection

    def _line(self, kind: str, operation: str, fields: Mapping[str, object]) -> bytes:
        call = json.dumps({"operation": operation, **fields})
        return f"{self.secret} {kind}{call}\n".encode()


class RemoteCache(ReplyCache):
    """The cache of replies of another process."""

    def __init__(self, server: BudgetConnection, folder: Path | None = None) -> None:
        super().__init__(folder)
        self._server = server
        self._name = "" if folder is None else str(folder)

    def read(self, key: str) -> CachedReply | None:
        """As there; a server that is lost has none."""
        try:
            return _cached(self._server.ask("read", key=key, folder=self._name))
        except (OSError, ValueError) as error:
            self._warn("the reply cache cannot be read", error)
            return None

    async def look_up(self, key: str, *, claims: bool) -> CachedReply | None:
        """As there, with whom else the server has as clients."""
        operation = "claim" if claims else "read"
        try:
            return _cached(await self._server.ask_async(operation, key=key, folder=self._name))
        except (OSError, ValueError) as error:
            self._warn("the reply cache cannot be read", error)
            return None

    def release(self, key: str) -> None:
        """As there."""
        self._send("release", key=key)

    def write(self, key: str, reply: CachedReply) -> None:
        """As there."""
        self._send("write", key=key, text=reply.text, served_model=reply.served_model)

    def _send(self, operation: str, **fields: object) -> None:
        try:
            self._server.send(operation, folder=self._name, **fields)
        except OSError as error:
            self._warn("the reply cache cannot be written: replies are used but not kept", error)


class RemoteLedger(Ledger):
    """The ledger of another process."""

    def __init__(self, server: BudgetConnection, budget_usd: float | None) -> None:
        # In memory, and unused.
        super().__init__(budget_usd, Path(":memory:"))
        self._server = server

    @property
    def committed(self) -> int:
        """As there; raises LedgerError if the server is lost."""
        try:
            return int(self._server.ask("committed")["committed"])
        except (OSError, ValueError, KeyError) as error:
            raise _lost(error) from error

    async def acquire(self, amount: int) -> None:
        """As there."""
        if not amount:
            return
        try:
            reply = await self._server.ask_async("reserve", amount=amount, budget=self.budget)
        except (OSError, ValueError) as error:
            raise _lost(error) from error
        if (refusal := reply.get("error")) is not None:
            kind = BudgetSpentError if refusal["code"] == "budget_spent" else LedgerError
            raise kind(refusal["message"], code=refusal["code"], hint=refusal["hint"])

    def settle(self, reserved: int, spent: int) -> None:
        """As there."""
        if not (reserved or spent):
            return
        try:
            self._server.send("settle", reserved=reserved, spent=spent)
        except OSError as error:
            _log.warning("a reservation cannot be settled and stays", error=str(error))


def open_ledger(budget_usd: float | None, file: Path | None = None) -> Ledger:
    """The ledger of this command, or the server's; raises as `Ledger`."""
    server = _server()
    return Ledger(budget_usd, file) if server is None else RemoteLedger(server, budget_usd)


def open_cache(folder: Path | None = None) -> ReplyCache:
    """The cache of replies of this machine, or the server's."""
    server = _server()
    return ReplyCache(folder) if server is None else RemoteCache(server, folder)


def _server() -> BudgetConnection | None:
    text = os.environ.get(BUDGET_SERVER)
    return BudgetConnection.parse(text) if text else None


def _reply(line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise ConnectionError("the connection ended before the reply")
    reply: dict[str, Any] = json.loads(line)
    return reply


def _cached(reply: Mapping[str, Any]) -> CachedReply | None:
    return CachedReply(reply["text"], reply["served_model"]) if "text" in reply else None


def _lost(error: Exception) -> LedgerError:
    return LedgerError(
        f"the process that has the budget does not answer: {error}",
        code="ledger_unusable",
        hint="repeat the command that started the shards; what was paid for is kept",
    )
