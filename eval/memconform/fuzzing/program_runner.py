"""Runs a program on one daemon, in a brain of its own."""

import contextlib
import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import httpx

from memconform.conformance.catalog import BRAIN_PREFIX
from memconform.contract.wire import JsonValue
from memconform.fuzzing.failures import BrainLostError, FuzzTarget, failure_of
from memconform.fuzzing.normalized_answer import ProgramAnswer, normalize
from memconform.fuzzing.programs import BRAIN, RESTARTED, RESTARTS, Call, Program
from memconform.tls import tls_context

_SECONDS = 20.0
"""Time limit for a whole response; a stream that stays open longer counts as endless."""
_IDLE_SECONDS = 1.0
_RETRIES = 3
"""How often a brain is created or deleted if the connection is reset. Requests of a program are
never repeated: what they did is unknown."""


class ProgramRunner:
    """A client of one daemon, with persistent connections. Not thread-safe."""

    def __init__(self, target: FuzzTarget) -> None:
        self._target = target
        self._http = _client(target)
        # A random prefix, because a running daemon may have brains of another session.
        self._prefix = f"{BRAIN_PREFIX}fuzz-{secrets.token_hex(3)}"
        self._count = 0
        self._brain = ""
        self.resets: Counter[str] = Counter()
        """Requests of the harness itself whose connection was reset while the process lived."""

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, program: Program) -> list[ProgramAnswer]:
        """Run a program in a new brain, and delete the brain.

        Returns:
            The answer to each call, then the brain's events if the program listens to them.

        Raises:
            BrainLostError: if the brain cannot be created or deleted.
        """
        self._count += 1
        brain = self._brain = f"{self._prefix}-{self._count}"
        self._create(brain)
        answers: list[ProgramAnswer] = []
        try:
            with self._open_streams(brain, listens=program.listens) as streams:
                answers += [self._answer(call, brain) for call in program.calls]
                self._delete(brain)
                answers += [self._finish(stream, brain) for stream in streams]
            self._delete(brain)
        except BrainLostError:
            if all(answer.status is not None for answer in answers):
                raise
            # The daemon stopped responding, which is how it differs from the others.
            missing = len(program.calls) + program.listens - len(answers)
            last = next(a.failure for a in reversed(answers) if a.status is None)
            answers += [ProgramAnswer(None, failure=last)] * missing
        return answers

    def _create(self, brain: str) -> None:
        response, repeated = self._send("POST", "/v1/brains", json={"brainId": brain})
        # A connection may be reset after the brain was created.
        if response.status_code != 201 and not (repeated and response.status_code == 409):
            detail = f"{response.status_code} {response.text[:200]}"
            raise BrainLostError("POST /v1/brains", "unexpected answer", detail)

    def _delete(self, brain: str) -> None:
        """Delete the brain, which a call of the program may have deleted already."""
        path, headers = f"/v1/brains/{brain}", {"X-Confirm-Delete": "yes"}
        response, _ = self._send("DELETE", path, headers=headers)
        if response.status_code not in (204, 404):
            raise BrainLostError(f"DELETE {path}", "unexpected answer", str(response.status_code))

    def _send(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        json: JsonValue = None,
    ) -> tuple[httpx.Response, bool]:
        """Send a request of the harness, again if its connection is reset.

        Returns:
            The response, and whether the request was repeated.
        """
        for attempt in range(1, _RETRIES + 1):
            try:
                return self._http.request(method, path, headers=headers, json=json), attempt > 1
            except httpx.HTTPError as error:
                kind, detail = failure_of(error, self._target)
                if kind == "connection reset":
                    self.resets[f"{method} {path.replace(self._brain, BRAIN)}"] += 1
                    if attempt < _RETRIES:
                        continue
                raise BrainLostError(f"{method} {path}", kind, detail) from error
        raise AssertionError("unreachable")

    @contextlib.contextmanager
    def _open_streams(self, brain: str, *, listens: bool) -> Iterator[list["_ResponseReader"]]:
        if not listens:
            yield []
            return
        request = self._http.build_request("GET", f"/v1/brains/{brain}/events")
        try:
            response = self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            kind, detail = failure_of(error, self._target)
            raise BrainLostError(f"GET /v1/brains/{brain}/events", kind, detail) from error
        stream = _ResponseReader(response, self._target)
        try:
            # Changes that precede this event need not be reported.
            stream.read(until=b"event: ready")
            yield [stream]
        finally:
            response.close()

    @staticmethod
    def _finish(stream: "_ResponseReader", brain: str) -> ProgramAnswer:
        """Read a stream to its end, which the deletion of its brain causes."""
        stream.read()
        return stream.answer(brain)

    def _restart(self, how: str) -> ProgramAnswer:
        if self._target.restart is None:
            raise ValueError("a program restarts a daemon that the harness does not manage")
        self._http.close()
        failure = self._target.restart(how)
        self._http = _client(self._target)
        return ProgramAnswer(None if failure else RESTARTED, failure=failure)

    def _answer(self, call: Call, brain: str) -> ProgramAnswer:
        if call.route in RESTARTS:
            return self._restart(call.route)
        try:
            response = self._http.send(self._request(call, brain), stream=True)
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol):
            # Never sent: a bug of the harness, not an answer.
            raise
        except httpx.HTTPError as error:
            return ProgramAnswer(None, failure=_describe(error, self._target))
        reader = _ResponseReader(response, self._target)
        try:
            reader.read()
        finally:
            response.close()
        return reader.answer(brain)

    def _request(self, call: Call, brain: str) -> httpx.Request:
        content, headers = encode_body(call, brain)
        target = call.target.replace(BRAIN, brain).encode()
        # The exact target: whatever is wrong with it must reach the daemon.
        return self._http.build_request(
            call.method, "/", content=content, headers=headers, extensions={"target": target}
        )


def _client(target: FuzzTarget) -> httpx.Client:
    return httpx.Client(
        base_url=target.address,
        # Shorter than the idle timeout of any server known to us (Node.js: 5 s): a connection that
        # a daemon closes because it is idle would look like a reset.
        limits=httpx.Limits(keepalive_expiry=_IDLE_SECONDS),
        trust_env=False,
        timeout=_SECONDS,
        verify=tls_context(target.address),
        headers={"Accept-Encoding": "identity"},
    )


class _ResponseReader:
    """Reads a response piece by piece."""

    def __init__(self, response: httpx.Response, target: FuzzTarget) -> None:
        self._response = response
        self._target = target
        self._pieces = response.iter_raw()
        self._content = bytearray()
        self._failure = ""

    def read(self, *, until: bytes | None = None) -> None:
        """Read to the end, or until `until` has been received, for at most `_SECONDS`."""
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
            failure = _describe(error, self._target)
            # Part of a response came: the status of the answer.
            self._failure = "broken" if failure == "connection reset" else failure

    def answer(self, brain: str) -> ProgramAnswer:
        """Return what was read, normalized."""
        answer = normalize(self._response, bytes(self._content), brain)
        return replace(answer, failure=self._failure)


def _describe(error: httpx.HTTPError, target: FuzzTarget) -> str:
    """The failure of an answer: equal for two daemons that fail alike."""
    kind, detail = failure_of(error, target)
    return f"{kind}: {detail}" if kind == "process ended" else kind


def encode_body(call: Call, brain: str) -> tuple[bytes | None, dict[str, str]]:
    """Encode the body of a call; return it with the headers."""
    if call.body is None:
        return None, call.headers
    if isinstance(call.body, bytes):
        return call.body, call.headers | {"Content-Type": "application/octet-stream"}
    text = json.dumps(fill_brain(call.body, brain), ensure_ascii=False)
    return text.encode(), call.headers | {"Content-Type": "application/json"}


def fill_brain(value: JsonValue, brain: str) -> JsonValue:
    """Replace the BRAIN placeholder in `value` by a brain's id."""
    if isinstance(value, dict):
        return {key: fill_brain(item, brain) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_brain(item, brain) for item in value]
    return brain if value == BRAIN else value
