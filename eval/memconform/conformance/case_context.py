"""A case under way: its variables, its connections, and what its checks have come to."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from memconform.conformance.case import Expectation, Server
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.expecting import ExpectationResult, evaluate
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.conformance.step_result import StepResult
from memconform.conformance.transport import Sender, Stream
from memconform.conformance.wire import WireFault, wire_faults
from memconform.contract.wire import JsonValue


@dataclass(slots=True)
class CheckState:
    """One check so far, and the first time that it did not hold."""

    expectation: Expectation
    faults: tuple[str, ...] = ()
    non_preferred: str = ""
    outcome: StepResult | None = None


@dataclass(slots=True)
class CheckResults:
    """What the steps of a case have found out."""

    seen: dict[str, CheckState] = field(default_factory=dict)
    wire: list[tuple[WireFault, StepResult]] = field(default_factory=list)

    def add(
        self, slot: str, expectation: Expectation, judged: ExpectationResult, outcome: StepResult
    ) -> None:
        seen = self.seen.setdefault(slot, CheckState(expectation))
        if judged.faults and not seen.faults:
            seen.faults, seen.outcome = judged.faults, outcome
        if judged.non_preferred and not seen.non_preferred:
            seen.non_preferred, seen.outcome = judged.non_preferred, seen.outcome or outcome

    def take(self, other: "CheckResults") -> None:
        """Add what another has found, as steps that are tried several times do in the end."""
        for slot, seen in other.seen.items():
            mine = self.seen.setdefault(slot, CheckState(seen.expectation))
            if seen.faults and not mine.faults:
                mine.faults, mine.outcome = seen.faults, seen.outcome
            mine.non_preferred = mine.non_preferred or seen.non_preferred
        self.wire += other.wire

    @property
    def holds(self) -> bool:
        return not any(seen.faults for seen in self.seen.values())


class CaseContext:
    """One run of one case. Close it, whatever happens."""

    def __init__(self, entry: CaseVariant, fixture: Fixture, brain: str) -> None:
        self.entry = entry
        self.fixture = fixture
        self.streams: dict[str, tuple[Stream, bytes]] = {}
        self.start_failure = ""
        """How a start went wrong of which the case expected nothing."""
        self.hung = False
        self.exchanges: list[StepResult] = []
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
        if self.fixture.runner.restartable:
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
        findings: CheckResults,
        expected: Mapping[str, Expectation],
        outcome: StepResult,
        variables: Mapping[str, Any],
    ) -> None:
        for slot, expectation in expected.items():
            judged = evaluate(expectation, outcome, variables)
            findings.add(slot, expectation, judged, outcome)

    def examine(
        self,
        findings: CheckResults,
        outcome: StepResult,
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
