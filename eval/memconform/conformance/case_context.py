"""The state of a running case: its variables, connections and check results."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from memconform.conformance.case import Expectation, Server
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.controls import is_rejection
from memconform.conformance.expecting import ExpectationResult, evaluate
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.conformance.step_result import StepResult
from memconform.conformance.transport import Sender, Stream
from memconform.conformance.wire import WireFault, wire_faults
from memconform.contract.wire import JsonValue


@dataclass(slots=True)
class CheckState:
    """The state of one check: the first failure and the first non-preferred response, if any."""

    expectation: Expectation
    faults: tuple[str, ...] = ()
    non_preferred: str = ""
    vacuous: str = ""
    """Why it proves nothing that the expectation holds."""
    outcome: StepResult | None = None
    """The step that brought the faults, or else the non-preferred response."""


@dataclass(slots=True)
class CheckResults:
    """Results of a case's checks, by slot, and the wire faults of its exchanges."""

    states: dict[str, CheckState] = field(default_factory=dict)
    wire: list[tuple[WireFault, StepResult]] = field(default_factory=list)

    def add(
        self, slot: str, expectation: Expectation, result: ExpectationResult, outcome: StepResult
    ) -> None:
        """Record the result of a check, which a case may make several times."""
        state = self.states.setdefault(slot, CheckState(expectation))
        if result.faults and not state.faults:
            state.faults, state.outcome = result.faults, outcome
        if result.non_preferred and not state.non_preferred:
            state.non_preferred, state.outcome = result.non_preferred, state.outcome or outcome

    def merge(self, other: "CheckResults") -> None:
        """Add the results of the last attempt of an `until` step."""
        for slot, theirs in other.states.items():
            mine = self.states.setdefault(slot, CheckState(theirs.expectation))
            if theirs.faults and not mine.faults:
                mine.faults, mine.outcome = theirs.faults, theirs.outcome
            mine.non_preferred = mine.non_preferred or theirs.non_preferred
            mine.vacuous = mine.vacuous or theirs.vacuous
        self.wire += other.wire

    @property
    def holds(self) -> bool:
        """Whether every check made so far holds."""
        return not any(state.faults for state in self.states.values())


class CaseContext:
    """One run of one case. Always close it."""

    def __init__(self, entry: CaseVariant, fixture: Fixture, brain: str) -> None:
        self.entry = entry
        self.fixture = fixture
        self.streams: dict[str, tuple[Stream, bytes]] = {}
        self.start_failure = ""
        """Why the daemon failed to start in a step without expectations; empty if it did not."""
        self.hung = False
        """Whether the daemon did not answer a setup request in time."""
        self.rejection_faults: dict[str, str] = {}
        """Why a rejection proves nothing, by request line; see `Controls`."""
        self.exchanges: list[StepResult] = []
        """Results of all requests and steps, in order, for the trace."""
        self._senders: dict[str, Sender] = {}
        self._variables: dict[str, Any] = {
            "brain": brain,
            "brain_url": f"/v1/brains/{brain}",
            "other_brain": f"{brain}-2",
            "outside": str(fixture.outside),
            "index": 0,
        }

    def variables(self, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the current variables; `${address}` is the daemon's current address."""
        variables = {**self._variables, **(extra or {})}
        if self.fixture.runner.restartable:
            variables["state"] = str(self.fixture.state)
            variables["run_id"] = f"{self.fixture.run_id}-daemon"
        with suppress(UntestableError):
            address = self.fixture.address("daemon")
            variables |= {"address": address, "host": urlsplit(address).netloc}
        return variables

    def set(self, name: str, value: JsonValue) -> None:
        """Define a variable, or redefine it."""
        self._variables[name] = value

    def sender(self, server: Server) -> Sender:
        """Return the client of a server; a restarted daemon gets a new one.

        Raises:
            UntestableError: if the server is not running.
        """
        address = self.fixture.address(server)
        if address not in self._senders:
            self._senders[address] = Sender(address)
        return self._senders[address]

    def expect(
        self,
        results: CheckResults,
        expected: Mapping[str, Expectation],
        outcome: StepResult,
        variables: Mapping[str, Any],
        vacuous: str = "",
    ) -> None:
        """Evaluate the expectations of a step, by slot, and record the results.

        `vacuous` is why its rejections prove nothing; empty if they do prove something.
        """
        for slot, expectation in expected.items():
            result = evaluate(expectation, outcome, variables)
            results.add(slot, expectation, result, outcome)
            if vacuous and is_rejection(expectation):
                results.states[slot].vacuous = vacuous

    def check_wire(
        self,
        results: CheckResults,
        outcome: StepResult,
        sent: bytes,
        expected: Mapping[str, Expectation],
    ) -> None:
        """Check the shapes of an exchange with a daemon against the contract."""
        expects_success = any(
            e.status is not None and _is_success(e.status) for e in expected.values()
        )
        faults = wire_faults(outcome, sent, expects_success=expects_success)
        results.wire += [(fault, outcome) for fault in faults]

    async def close(self) -> None:
        """Close all streams and connections."""
        for stream, _ in self.streams.values():
            await stream.close()
        for sender in self._senders.values():
            with suppress(httpx.HTTPError):
                await sender.close()


def _is_success(status: int | list[int]) -> bool:
    statuses = status if isinstance(status, list) else [status]
    return all(200 <= code < 300 for code in statuses)
