"""The money that may be spent: reserved before a call, settled after it."""

import math
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from memconform.errors import UsageError
from memconform.llm.chat import BudgetSpentError, LedgerError
from memconform.llm.prices import NANO
from memconform.printing.logs import Logger
from memconform.user_cache import use_write_ahead_log

_log = Logger()

_LEDGER_HINT = "set MEMCONFORM_LEDGER to a file that can be written, or unset it"
_BUSY_SECONDS = 30
_TABLE = """
CREATE TABLE IF NOT EXISTS ledger (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  committed INTEGER NOT NULL              -- spent and reserved, billionths of a dollar
)
"""
_RESERVE = """
UPDATE ledger SET committed = committed + :amount
WHERE :budget IS NULL OR :amount = 0 OR committed + :amount <= :budget RETURNING committed
"""


MAX_BUDGET_USD = 1_000_000
"""Sums of larger amounts in billionths of a dollar leave SQLite's integers."""


def read_budget(flag: float | None, env: Mapping[str, str]) -> float | None:
    """Dollars by --max-cost-usd, or else by JB_EVAL_BUDGET_USD; None is no limit.

    Raises:
        UsageError: `bad_budget`, for a variable that holds no number of dollars.
    """
    if flag is not None:
        return flag
    text = env.get("JB_EVAL_BUDGET_USD", "")
    if not text:
        return None
    try:
        dollars = float(text)
    except ValueError:
        dollars = math.nan
    if not 0 <= dollars <= MAX_BUDGET_USD:
        raise UsageError(
            f"JB_EVAL_BUDGET_USD={text} is not a number of dollars",
            code="bad_budget",
            hint="export JB_EVAL_BUDGET_USD=5, or use --max-cost-usd",
        )
    return dollars


class Ledger:
    """What is spent and reserved; processes that share its file share the budget.

    One sum holds both. A process that dies with calls in flight leaves their reservations in the
    sum, because the service may have charged for them. Amounts are billionths of a dollar.
    """

    def __init__(self, budget_usd: float | None = None, file: Path | None = None) -> None:
        """Open the ledger in `file`, else in the one that MEMCONFORM_LEDGER names, else in memory.

        Raises:
            UsageError: `ledger_unusable`, for a file that cannot be opened.
        """
        self.budget = None if budget_usd is None else round(budget_usd * NANO)
        named = os.environ.get("MEMCONFORM_LEDGER")
        path = file or (Path(named) if named else None)
        try:
            self._db = sqlite3.connect(
                path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None
            )
            if path is not None:
                use_write_ahead_log(self._db, _BUSY_SECONDS)
                self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(_TABLE)
            self._db.execute("INSERT OR IGNORE INTO ledger VALUES (1, 0)")
        except sqlite3.Error as error:
            raise _unusable(path, error) from error
        self._path = path

    @property
    def committed(self) -> int:
        """Spent and reserved, by all who share the ledger.

        Raises:
            LedgerError: `ledger_unusable`, where the file cannot be read.
        """
        try:
            (total,) = self._db.execute("SELECT committed FROM ledger").fetchone()
        except sqlite3.Error as error:
            raise self._error(error) from error
        return int(total)

    def reserve(self, amount: int) -> None:
        """Set `amount` aside for a call.

        Raises:
            BudgetSpentError: `budget_spent`, where it could exceed the budget.
            LedgerError: `ledger_unusable`, where the file cannot be written.
        """
        values = {"amount": amount, "budget": self.budget}
        try:
            row = self._db.execute(_RESERVE, values).fetchone()
        except sqlite3.Error as error:
            raise self._error(error) from error
        if row is None and self.budget is not None:
            raise BudgetSpentError(
                f"${self.committed / NANO:.4f} of ${self.budget / NANO:.4f} is spent or reserved,"
                f" and the next call may take ${amount / NANO:.4f}",
                code="budget_spent",
                hint="repeat the command with a larger --max-cost-usd (a run with --resume RUN);"
                " what was paid for is kept",
            )

    async def acquire(self, amount: int) -> None:
        """As `reserve`, which on disk takes no time to speak of."""
        self.reserve(amount)

    def settle(self, reserved: int, spent: int) -> None:
        """Replace a reservation by what the call took; may exceed the budget by the difference.

        Where the file cannot be written the reservation stays: a reply was paid for and is used.
        """
        try:
            self._db.execute("UPDATE ledger SET committed = committed + ?", (spent - reserved,))
        except sqlite3.Error as error:
            _log.warning("a reservation cannot be settled and stays", error=str(error))

    def _error(self, error: sqlite3.Error) -> LedgerError:
        message = _unusable(self._path, error).message
        return LedgerError(message, code="ledger_unusable", hint=_LEDGER_HINT)

    def close(self) -> None:
        self._db.close()


def _unusable(path: Path | None, error: sqlite3.Error) -> UsageError:
    return UsageError(
        f"the ledger {path or 'in memory'} cannot be used: {error}",
        code="ledger_unusable",
        hint=_LEDGER_HINT,
    )
