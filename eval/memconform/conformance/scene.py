"""A case under way: its variables, its connections, and what its checks have come to."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from memconform.conformance.case import Expectation, Server
from memconform.conformance.catalog import Entry
from memconform.conformance.expecting import Judged, judge
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.conformance.outcome import Outcome
from memconform.conformance.transport import Sender, Stream
from memconform.conformance.wire import WireFault, wire_faults
from memconform.contract.wire import JsonValue


@dataclass(slots=True)
class Seen:
    """One check so far, and the first time that it did not hold."""

    expectation: Expectation
    faults: tuple[str, ...] = ()
    second_best: str = ""
    outcome: Outcome | None = None


@dataclass(slots=True)
class Findings:
    """What the steps of a case have found out."""

    seen: dict[str, Seen] = field(default_factory=dict)
    wire: list[tuple[WireFault, Outcome]] = field(default_factory=list)

    def add(self, slot: str, expectation: Expectation, judged: Judged, outcome: Outcome) -> None:
        seen = self.seen.setdefault(slot, Seen(expectation))
        if judged.faults and not seen.faults:
            seen.faults, seen.outcome = judged.faults, outcome
        if judged.second_best and not seen.second_best:
            seen.second_best, seen.outcome = judged.second_best, seen.outcome or outcome

    def take(self, other: "Findings") -> None:
        """Add what another has found, as steps that are tried several times do in the end."""
        for slot, seen in other.seen.items():
            mine = self.seen.setdefault(slot, Seen(seen.expectation))
            if seen.faults and not mine.faults:
                mine.faults, mine.outcome = seen.faults, seen.outcome
            mine.second_best = mine.second_best or seen.second_best
        self.wire += other.wire

    @property
    def holds(self) -> bool:
        return not any(seen.faults for seen in self.seen.values())


class Scene:
    """One run of one case. Close it, whatever happens."""

    def __init__(self, entry: Entry, fixture: Fixture, brain: str) -> None:
        self.entry = entry
        self.fixture = fixture
        self.streams: dict[str, tuple[Stream, bytes]] = {}
        self.start_failure = ""
        """How a start went wrong of which the case expected nothing."""
        self.hung = False
        self.exchanges: list[Outcome] = []
        """Every request and its answer, in order, for a trace."""
        self._senders: dict[str, Sender] = {}
        self._variables: dict[str, Any] = {
            "brain": brain,
            "brain_url": f"/v1/brains/{brain}",
            "other_brain": f"{brain}-2",
            "outside": str(fixture.outside),
            "index": 0,
        }

    def variables(self, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """All that there are now; the address is where the daemon is now."""
        known = {**self._variables, **(more or {})}
        if self.fixture.runner.configurable:
            known["state"] = str(self.fixture.state)
            known["run_id"] = f"{self.fixture.run_id}-daemon"
        with suppress(UntestableError):
            address = self.fixture.address("daemon")
            known |= {"address": address, "host": urlsplit(address).netloc}
        return known

    def set(self, name: str, value: JsonValue) -> None:
        self._variables[name] = value

    def sender(self, server: Server) -> Sender:
        """The client of a server; a daemon that was started anew gets a new one."""
        address = self.fixture.address(server)
        if address not in self._senders:
            self._senders[address] = Sender(address)
        return self._senders[address]

    def expect(
        self,
        findings: Findings,
        expected: Mapping[str, Expectation],
        outcome: Outcome,
        variables: Mapping[str, Any],
    ) -> None:
        for slot, expectation in expected.items():
            judged = judge(expectation, outcome, variables)
            findings.add(slot, expectation, judged, outcome)

    def examine(
        self,
        findings: Findings,
        outcome: Outcome,
        sent: bytes,
        expected: Mapping[str, Expectation],
    ) -> None:
        """Hold the shapes of an exchange with a daemon to the contract."""
        wanted = any(e.status is not None and _success(e.status) for e in expected.values())
        faults = wire_faults(outcome, sent, wanted=wanted)
        findings.wire += [(fault, outcome) for fault in faults]

    async def close(self) -> None:
        for stream, _ in self.streams.values():
            await stream.close()
        for sender in self._senders.values():
            with suppress(httpx.HTTPError):
                await sender.close()


def _success(status: int | list[int]) -> bool:
    statuses = status if isinstance(status, list) else [status]
    return all(200 <= each < 300 for each in statuses)
