"""Puts a program to one daemon, in a brain of its own."""

import contextlib
import json
from collections.abc import Iterator

import httpx

from memconform.conformance.suite import BRAIN_PREFIX
from memconform.contract.wire import JsonValue
from memconform.fuzzing.answers import Answer, normalized
from memconform.fuzzing.programs import BRAIN, Call, Program

_SECONDS = 20.0
"""For an answer; a stream that is open for longer is no answer either."""


class BrainLostError(Exception):
    """A daemon would not make, or not delete, a brain: nothing that it answers can be compared."""


class Asker:
    """One daemon, over connections that are kept. Not for several threads at once."""

    def __init__(self, base_url: str) -> None:
        self._http = httpx.Client(
            base_url=base_url,
            trust_env=False,
            timeout=_SECONDS,
            headers={"Accept-Encoding": "identity"},
        )
        self._count = 0

    def close(self) -> None:
        self._http.close()

    def ask(self, program: Program) -> list[Answer]:
        """An answer to each call, and behind them the events that were told, if they were heard.

        Raises:
            BrainLostError: where no brain could be made for it.
        """
        self._count += 1
        brain = f"{BRAIN_PREFIX}fuzz-{self._count}"
        self._demand("POST", "/v1/brains", 201, {"brainId": brain})
        answers: list[Answer] = []
        try:
            with self._heard(brain, wanted=program.listens) as events:
                answers += [self._answer(call, brain) for call in program.calls]
                self._delete(brain)
                answers += [self._rest(stream, brain) for stream in events]
        finally:
            self._delete(brain)
        return answers

    def _delete(self, brain: str) -> None:
        """A call may have deleted it before."""
        headers = {"X-Confirm-Delete": "yes"}
        try:
            answer = self._http.delete(f"/v1/brains/{brain}", headers=headers)
        except httpx.HTTPError as error:
            raise BrainLostError(f"DELETE /v1/brains/{brain}: {error!r}") from error
        if answer.status_code not in (204, 404):
            raise BrainLostError(f"DELETE /v1/brains/{brain}: {answer.status_code}")

    def _demand(self, method: str, target: str, status: int, body: JsonValue) -> None:
        try:
            answer = self._http.request(method, target, json=body)
        except httpx.HTTPError as error:
            raise BrainLostError(f"{method} {target}: {error!r}") from error
        if answer.status_code != status:
            raise BrainLostError(f"{method} {target}: {answer.status_code} {answer.text[:200]}")

    @contextlib.contextmanager
    def _heard(self, brain: str, *, wanted: bool) -> Iterator[list[httpx.Response]]:
        if not wanted:
            yield []
            return
        try:
            with self._http.stream("GET", f"/v1/brains/{brain}/events") as stream:
                yield [stream]
        except httpx.HTTPError as error:
            raise BrainLostError(f"GET /v1/brains/{brain}/events: {error!r}") from error

    @staticmethod
    def _rest(stream: httpx.Response, brain: str) -> Answer:
        """Its brain is deleted, which ends it."""
        return normalized(stream, stream.read(), brain)

    def _answer(self, call: Call, brain: str) -> Answer:
        request = self._request(call, brain)
        try:
            response = self._http.send(request)
        except httpx.HTTPError as error:
            return Answer(None, failure=f"{type(error).__name__}: {error}")
        return normalized(response, response.content, brain)

    def _request(self, call: Call, brain: str) -> httpx.Request:
        content, headers = encoded(call, brain)
        target = call.target.replace(BRAIN, brain).encode()
        # The target as it is: what is wrong about it must reach the daemon.
        return self._http.build_request(
            call.method, "/", content=content, headers=headers, extensions={"target": target}
        )


def encoded(call: Call, brain: str) -> tuple[bytes | None, dict[str, str]]:
    """The body and the headers of a call."""
    if call.body is None:
        return None, call.headers
    if isinstance(call.body, bytes):
        return call.body, call.headers | {"Content-Type": "application/octet-stream"}
    text = json.dumps(filled(call.body, brain), ensure_ascii=False)
    return text.encode(), call.headers | {"Content-Type": "application/json"}


def filled(value: JsonValue, brain: str) -> JsonValue:
    """`value` with the brain's id where it stands for it."""
    if isinstance(value, dict):
        return {key: filled(each, brain) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, brain) for each in value]
    return brain if value == BRAIN else value
