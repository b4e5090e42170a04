"""Puts a program to one daemon, in a brain of its own."""

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace

import httpx

from memconform.conformance.suite import BRAIN_PREFIX
from memconform.contract.wire import JsonValue
from memconform.fuzzing.answers import ProgramAnswer, normalized
from memconform.fuzzing.programs import BRAIN, Call, Program

_SECONDS = 20.0
"""For a whole answer; a stream that is open for longer has no end."""


class BrainLostError(Exception):
    """A daemon would not make, or not delete, a brain: nothing that it answers can be compared."""


class ProgramRunner:
    """One daemon, over connections that are kept. Not for several threads at once."""

    def __init__(self, base_url: str) -> None:
        self._http = httpx.Client(
            base_url=base_url,
            trust_env=False,
            timeout=_SECONDS,
            headers={"Accept-Encoding": "identity"},
        )
        # On a daemon that somebody else has started there may be those of another session.
        self._prefix = f"{BRAIN_PREFIX}fuzz-{secrets.token_hex(3)}"
        self._count = 0

    def close(self) -> None:
        self._http.close()

    def ask(self, program: Program) -> list[ProgramAnswer]:
        """An answer to each call, and behind them the events that were told, if they were heard.

        Raises:
            BrainLostError: where no brain could be made for it, or none be deleted.
        """
        self._count += 1
        brain = f"{self._prefix}-{self._count}"
        self._make(brain)
        answers: list[ProgramAnswer] = []
        try:
            with self._heard(brain, wanted=program.listens) as heard:
                answers += [self._answer(call, brain) for call in program.calls]
                self._delete(brain)
                answers += [self._rest(events, brain) for events in heard]
            self._delete(brain)
        except BrainLostError:
            if all(answer.status is not None for answer in answers):
                raise
            # It does not answer any more: that is how it parts from the others.
            unheard = len(program.calls) + program.listens - len(answers)
            answers += [ProgramAnswer(None, failure="broken")] * unheard
        return answers

    def _make(self, brain: str) -> None:
        try:
            answer = self._http.post("/v1/brains", json={"brainId": brain})
        except httpx.HTTPError as error:
            raise BrainLostError(f"POST /v1/brains: {error!r}") from error
        if answer.status_code != 201:
            raise BrainLostError(f"POST /v1/brains: {answer.status_code} {answer.text[:200]}")

    def _delete(self, brain: str) -> None:
        """A call may have deleted it before."""
        headers = {"X-Confirm-Delete": "yes"}
        try:
            answer = self._http.delete(f"/v1/brains/{brain}", headers=headers)
        except httpx.HTTPError as error:
            raise BrainLostError(f"DELETE /v1/brains/{brain}: {error!r}") from error
        if answer.status_code not in (204, 404):
            raise BrainLostError(f"DELETE /v1/brains/{brain}: {answer.status_code}")

    @contextlib.contextmanager
    def _heard(self, brain: str, *, wanted: bool) -> Iterator[list["_Reading"]]:
        if not wanted:
            yield []
            return
        request = self._http.build_request("GET", f"/v1/brains/{brain}/events")
        try:
            response = self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            raise BrainLostError(f"GET /v1/brains/{brain}/events: {error!r}") from error
        events = _Reading(response)
        try:
            # Of what happens before it nothing need be told.
            events.read(until=b"event: ready")
            yield [events]
        finally:
            response.close()

    @staticmethod
    def _rest(events: "_Reading", brain: str) -> ProgramAnswer:
        """Its brain is deleted, which ends it."""
        events.read()
        return events.answer(brain)

    def _answer(self, call: Call, brain: str) -> ProgramAnswer:
        try:
            response = self._http.send(self._request(call, brain), stream=True)
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol):
            # Never sent: a fault of ours, and no answer of anybody's.
            raise
        except httpx.HTTPError as error:
            return ProgramAnswer(None, failure=_kind(error))
        reading = _Reading(response)
        try:
            reading.read()
        finally:
            response.close()
        return reading.answer(brain)

    def _request(self, call: Call, brain: str) -> httpx.Request:
        content, headers = encoded(call, brain)
        target = call.target.replace(BRAIN, brain).encode()
        # The target as it is: what is wrong about it must reach the daemon.
        return self._http.build_request(
            call.method, "/", content=content, headers=headers, extensions={"target": target}
        )


class _Reading:
    """An answer as it comes."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._pieces = response.iter_raw()
        self._content = bytearray()
        self._failure = ""

    def read(self, *, until: bytes | None = None) -> None:
        """To its end, or until this has come, but for no longer than `_SECONDS`."""
        end = time.monotonic() + _SECONDS
        try:
            while until is None or until not in self._content:
                piece = next(self._pieces, None)
                if piece is None:
                    return
                self._content += piece
                if time.monotonic() > end:
                    self._failure = "endless"
                    return
        except httpx.HTTPError as error:
            self._failure = _kind(error)

    def answer(self, brain: str) -> ProgramAnswer:
        found = normalized(self._response, bytes(self._content), brain)
        return replace(found, failure=self._failure)


def _kind(error: httpx.HTTPError) -> str:
    return "silent" if isinstance(error, httpx.TimeoutException) else "broken"


def encoded(call: Call, brain: str) -> tuple[bytes | None, dict[str, str]]:
    """The body and the headers of a call."""
    if call.body is None:
        return None, call.headers
    if isinstance(call.body, bytes):
        return call.body, call.headers | {"Content-Type": "application/octet-stream"}
    text = json.dumps(fill_brain(call.body, brain), ensure_ascii=False)
    return text.encode(), call.headers | {"Content-Type": "application/json"}


def fill_brain(value: JsonValue, brain: str) -> JsonValue:
    """`value` with the brain's id where it stands for it."""
    if isinstance(value, dict):
        return {key: fill_brain(each, brain) for key, each in value.items()}
    if isinstance(value, list):
        return [fill_brain(each, brain) for each in value]
    return brain if value == BRAIN else value
