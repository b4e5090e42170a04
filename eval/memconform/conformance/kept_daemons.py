"""Daemons that stay up after a session, with the brains of the cases that failed on them."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

import httpx

from memconform.conformance.catalog import CaseVariant
from memconform.conformance.fixture import Fixture
from memconform.conformance.results import CaseResult
from memconform.daemons.sdk_runner import Daemon
from memconform.errors import DaemonError
from memconform.printing.errors import render_error
from memconform.tls import tls_context

MOST_KEPT = 4
"""Daemons that are kept for each SDK; a daemon takes up to 100 MiB."""


@dataclass(slots=True)
class _Holding:
    sdk: str
    fixture: Fixture
    cases: frozenset[str]
    """Ids of the case variants that ran on it."""


@dataclass(slots=True)
class KeptDaemons:
    """Takes daemons over from the suite; stops them when its block is left."""

    _holdings: list[_Holding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What could not be kept, and why."""
    problems: list[str] = field(default_factory=list)
    """Failures to stop."""
    _stopped: dict[str, int] = field(default_factory=dict)
    _at_end: list[Callable[[], None]] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def at_end(self, action: Callable[[], None]) -> None:
        """Call `action` once all daemons have been stopped."""
        self._at_end.append(action)

    async def take(
        self, sdk: str, fixture: Fixture, entries: Iterable[CaseVariant], *, is_main: bool
    ) -> bool:
        """Keep a daemon on which a case failed, or the SDK's main one; otherwise return False.

        A daemon that a case has stopped or changed runs with its own settings again.
        """
        if not fixture.kept_brains and not (is_main and fixture.runner.managed):
            return False
        if sum(holding.sdk == sdk for holding in self._holdings) >= MOST_KEPT:
            self._stopped[sdk] = self._stopped.get(sdk, 0) + 1
            return False
        try:
            await fixture.restore()
        except DaemonError as error:
            self.notes.append(f"a daemon of {sdk} cannot be kept: {render_error(error)}")
            return False
        self._holdings.append(_Holding(sdk, fixture, frozenset(entry.id for entry in entries)))
        return True

    def daemons(self) -> list[tuple[str, Daemon]]:
        """The running daemons, each with the name of its SDK."""
        return [(holding.sdk, holding.fixture.daemon) for holding in self._holdings]

    def hints(self) -> list[str]:
        """Lines about what is and what is not kept."""
        lines = [
            f"{number} more daemons of {sdk} with failing cases were stopped: at most {MOST_KEPT}"
            " are kept for each SDK; `conform replay` repeats their cases"
            for sdk, number in self._stopped.items()
        ]
        return [*lines, *self.notes]

    def readdressed(self, sdk: str, case: CaseResult) -> CaseResult:
        """The result with the address at which its daemon runs now, in each curl command."""
        holding = next((h for h in self._holdings if h.sdk == sdk and case.case in h.cases), None)
        if holding is None:
            return case
        now = holding.fixture.daemon.base_url

        def current(curl: str) -> str:
            for before in holding.fixture.addresses:
                curl = curl.replace(f"{before}/", f"{now}/")
            return curl

        return case.with_commands(current)

    async def close(self) -> None:
        """Stop the daemons; on those that memconform did not start, delete the brains."""
        while self._holdings:
            holding = self._holdings.pop()
            if not holding.fixture.runner.managed:
                await _delete_brains(holding.fixture)
            try:
                await holding.fixture.close()
            except DaemonError as error:
                self.problems.append(f"{holding.sdk}: {render_error(error)}")
        while self._at_end:
            await asyncio.to_thread(self._at_end.pop(0))


async def _delete_brains(fixture: Fixture) -> None:
    """Delete the brains of failed cases: the next session creates brains of the same names."""
    context = tls_context(fixture.daemon.base_url)
    async with httpx.AsyncClient(trust_env=False, timeout=10, verify=context) as http:
        for brain in fixture.kept_brains.values():
            with suppress(httpx.HTTPError):
                url = f"{fixture.daemon.base_url}/v1/brains/{brain}"
                await http.delete(url, headers={"X-Confirm-Delete": "yes"})
