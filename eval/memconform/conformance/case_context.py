"""The state of a running case: its variables, connections and check results."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from memconform.conformance.case import Expectation, Server
from memconform.conformance.case_requests import Sender, Stream
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.causes import Fault, cause_of, status_fault, step_name
from memconform.conformance.exchange_shapes import WireFault, request_violation, wire_faults
from memconform.conformance.expectations import ExpectationResult, evaluate, statuses
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.conformance.routes import route_of
from memconform.conformance.step_result import StepResult
from memconform.conformance.translation import Translation, without_gaps
from memconform.conformance.valid_requests import CONTROL_BRAIN, is_rejection
from memconform.contract.wire import JsonValue


@dataclass(slots=True)
class CheckState:
    """The state of one check: the first failure and the first non-preferred response, if any."""

    expectation: Expectation
    faults: tuple[str, ...] = ()
    non_preferred: str = ""
    causes: tuple[str, ...] = ()
    """Causes of the faults, or else of the non-preferred response."""
    gap: str = ""
    """A value that it needs and that the daemon's dialect does not have."""
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
        self,
        slot: str,
        expectation: Expectation,
        result: ExpectationResult,
        causes: Sequence[str],
        outcome: StepResult,
    ) -> None:
        """Record the result of a check, which a case may make several times."""
        state = self.states.setdefault(slot, CheckState(expectation))
        if result.faults and not state.faults:
            state.faults, state.causes, state.outcome = result.faults, tuple(causes), outcome
        if result.non_preferred and not state.non_preferred:
            state.non_preferred, state.outcome = result.non_preferred, state.outcome or outcome
            state.causes = state.causes or tuple(causes)

    def merge(self, other: "CheckResults") -> None:
        """Add the results of the last attempt of an `until` step."""
        for slot, theirs in other.states.items():
            mine = self.states.setdefault(slot, CheckState(theirs.expectation))
            if theirs.faults and not mine.faults:
                mine.faults, mine.outcome = theirs.faults, theirs.outcome
                mine.causes = theirs.causes
            elif theirs.non_preferred and not mine.faults:
                mine.causes = mine.causes or theirs.causes
                mine.outcome = mine.outcome or theirs.outcome
            mine.non_preferred = mine.non_preferred or theirs.non_preferred
            mine.vacuous = mine.vacuous or theirs.vacuous
            mine.gap = mine.gap or theirs.gap
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
        self.start_cause = ""
        """The cause of that."""
        self.brain_created = False
        self.disturbed = ""
        """The cause of the first request that should have changed the brain, and went wrong."""
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
            dialect = self.fixture.runner.dialect if server != "upstream" else None
            translation = None if dialect is None else Translation(dialect)
            self._senders[address] = Sender(address, translation)
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
        root = self.root_fault(expected.values(), outcome)
        failed = not expected
        disturbed = cause_of(outcome, root) if root is not None and _is_write(outcome) else ""
        for slot, expectation in expected.items():
            result, gap = without_gaps(evaluate(expectation, outcome, variables), outcome)
            failed = failed or not result.holds
            if result.holds:
                causes = [f"{step_name(outcome)}: {result.preference}"]
            else:
                # A response with the wrong status explains all that is wrong with it.
                details = result.details if root is None else (root,)
                causes = [self.cause(outcome, fault) for fault in details]
            results.add(slot, expectation, result, [*dict.fromkeys(causes)], outcome)
            if gap:
                results.states[slot].gap = gap
            if vacuous and is_rejection(expectation):
                results.states[slot].vacuous = vacuous
        if failed and not self.disturbed:
            self.disturbed = disturbed

    def root_fault(self, expected: Iterable[Expectation], outcome: StepResult) -> Fault | None:
        """Return the fault that explains all others of a response: it has the wrong status.

        A step that expects no status in particular expects the one that its route has on success.
        """
        if outcome.exchange is None:
            return Fault(outcome.cause, outcome.cause) if outcome.cause else None
        codes = [code for expectation in expected for code in statuses(expectation)]
        method, _, target = outcome.label.partition(" ")
        route = route_of(method, target)
        if not codes and route is not None:
            codes = [route.status]
        if not codes or outcome.status in codes:
            return None
        was_accepted = outcome.status is not None and outcome.status < 300 <= min(codes)
        if was_accepted and route is not None:
            violation = request_violation(route, outcome.sent)
            if violation is not None:
                return violation
        return status_fault("", outcome, codes, self._existing_brain)

    def cause(self, outcome: StepResult, fault: Fault) -> str:
        """Return the cause of a fault: an earlier request that failed, if it may follow from it."""
        if fault.is_effect and self.disturbed:
            return self.disturbed
        return cause_of(outcome, fault)

    @property
    def _existing_brain(self) -> str | None:
        return str(self._variables["brain"]) if self.brain_created else None

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
        faults = wire_faults(
            outcome,
            sent,
            expects_success=expects_success,
            expected=[code for e in expected.values() for code in statuses(e)],
            brain=self._existing_brain,
        )
        results.wire += [(fault, outcome) for fault in faults]

    def expect_end(self) -> None:
        """Blame the daemon no longer for the end of connections: it is about to be stopped."""
        for sender in self._senders.values():
            sender.stop_watching()

    @property
    def connection_faults(self) -> list[tuple[WireFault, StepResult]]:
        """What the daemon did to connections after its responses, once `close` has returned.

        Those of controls are no part of the case.
        """
        faults = [fault for sender in self._senders.values() for fault in sender.faults]
        return [f for f in faults if f"/{CONTROL_BRAIN}" not in f[1].label]

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


def _is_write(outcome: StepResult) -> bool:
    """Whether a request changes a brain."""
    method, _, target = outcome.label.partition(" ")
    route = route_of(method, target)
    return route is not None and method not in ("GET", "HEAD") and route.name not in _QUESTIONS


_QUESTIONS = ("search", "ask")
"""Names of routes that change nothing, whatever their method."""
