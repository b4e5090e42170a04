"""Valid requests to each route, which show that a daemon does not reject everything.

A daemon that answers 404 to every search rejects an invalid one too. Its rejections count only if
it accepts a valid request to the same route: the control.
"""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

from memconform.conformance.case import BaseStep, Case, Expectation, RawStep, StoreStep
from memconform.conformance.catalog import walk_steps
from memconform.conformance.request_bodies import as_json
from memconform.conformance.step_result import StepResult
from memconform.contract.problem import STATUS
from memconform.contract.wire import JsonValue

CONTROL_BRAIN = "mc-control"

_BRAIN = f"/v1/brains/{CONTROL_BRAIN}"
_FILE = "control.md"
_TEXT = "The heron waits."
_DOCUMENT: JsonValue = {
    "path": _FILE,
    "contentType": "text/markdown",
    "contentBase64": base64.b64encode(_TEXT.encode()).decode(),
}
_STORE_ROUTES = {
    "file": "POST /ingest/file",
    "batch": "POST /ingest/batch",
    "put": "PUT /documents",
    "append": "POST /documents/append",
    "ops": "POST /documents/batch-ops",
}

Send = Callable[[str, Mapping[str, str], bytes | None], Awaitable[StepResult]]
"""Sends `METHOD /target` with headers and a body to the daemon."""


@dataclass(frozen=True, slots=True)
class Control:
    """A valid request to a route; `target` is that of the control brain if `in_brain`."""

    method: str
    route: str
    """What follows the address of the brain, or the whole path."""
    query: str = ""
    body: bytes | None = None
    in_brain: bool = True
    needs_document: bool = False

    @property
    def line(self) -> str:
        """The request line, without the version."""
        return f"{self.method} {_BRAIN if self.in_brain else ''}{self.route}{self.query}"

    def has_path(self, path: str) -> bool:
        """Whether a path, in which `${brain_url}` may not be filled in yet, is of this route."""
        brain = r"(\$\{brain_url\}|/v1/brains/[^/]+)" if self.in_brain else ""
        return re.fullmatch(brain + re.escape(self.route), path) is not None


_SEARCH = Control(
    "POST", "/search", body=as_json({"query": "heron", "mode": "bm25"}), needs_document=True
)
_ASK = Control(
    "POST", "/ask", body=as_json({"question": "What waits?", "mode": "bm25"}), needs_document=True
)
_CREATE = Control("POST", "/v1/brains", body=as_json({"brainId": CONTROL_BRAIN}), in_brain=False)
_INGEST = Control("POST", "/ingest/file", body=as_json(_DOCUMENT))
_PUT = Control("PUT", "/documents", f"?path={_FILE}", _TEXT.encode())
_DELETE = Control("DELETE", "")
_VERSION = Control("GET", "/version", in_brain=False)

CONTROLS: tuple[Control, ...] = (
    Control("GET", "/healthz", in_brain=False),
    _VERSION,
    _CREATE,
    Control("GET", "/v1/brains", in_brain=False),
    Control("GET", ""),
    _DELETE,
    _SEARCH,
    _ASK,
    _INGEST,
    Control("POST", "/ingest/batch", body=as_json({"documents": [_DOCUMENT]})),
    Control("GET", "/documents/read", f"?path={_FILE}", needs_document=True),
    Control("GET", "/documents/stat", f"?path={_FILE}", needs_document=True),
    Control("HEAD", "/documents", f"?path={_FILE}", needs_document=True),
    Control("GET", "/documents", "?recursive=true", needs_document=True),
    _PUT,
    Control("DELETE", "/documents", f"?path={_FILE}", needs_document=True),
    Control("POST", "/documents/append", f"?path={_FILE}", _TEXT.encode()),
    Control(
        "POST",
        "/documents/rename",
        body=as_json({"from": _FILE, "to": "renamed.md"}),
        needs_document=True,
    ),
    Control(
        "POST",
        "/documents/batch-ops",
        body=as_json({"ops": [{"type": "write", "path": _FILE, "content_base64": "eA=="}]}),
    ),
    Control("GET", "/events"),
)


def control_of(line: str) -> Control:
    """Return the control of a request line: of its route, or else one that any daemon answers."""
    method, _, target = line.partition(" ")
    path = target.partition("?")[0]
    of_path = [control for control in CONTROLS if control.has_path(path)]
    return next((c for c in of_path if c.method == method), next(iter(of_path), _VERSION))


def is_rejection(expected: Expectation) -> bool:
    """Whether an expectation can hold for nothing but an error response."""
    if expected.any_of is not None:
        return all(is_rejection(branch) for branch in expected.any_of)
    if expected.problem is not None:
        return STATUS[expected.problem.code] >= 400
    statuses = expected.status if isinstance(expected.status, list) else [expected.status]
    return all(status is not None and status >= 400 for status in statuses)


def rejected_line(step: BaseStep) -> str:
    """Return the request line of a step that expects a rejection; empty if it does not."""
    if not any(is_rejection(expected) for expected in step.expect.values()):
        return ""
    if isinstance(step, StoreStep):
        return _STORE_ROUTES[step.via].replace(" ", " ${brain_url}")
    return str(getattr(step, "http", "") or getattr(step, "stream", ""))


def rejected_lines(case: Case) -> list[str]:
    """Return the request lines of all steps of a case that expect a rejection."""
    lines = (rejected_line(step) for step in walk_steps(case) if not isinstance(step, RawStep))
    return [line for line in dict.fromkeys(lines) if line]


class Controls:
    """The controls of one daemon; each is sent once, because most cases share a few."""

    def __init__(self, environment: Mapping[str, str], *, by_path: bool = False) -> None:
        """Create the controls of a daemon.

        Args:
            environment: The settings of the daemon, which may be a token or no reader.
            by_path: Whether documents are stored by their path, not ingested.
        """
        self._by_path = by_path
        token = environment.get("JB_AUTH_TOKEN", "")
        self._headers = {"X-Confirm-Delete": "yes"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._has_reader = environment.get("JB_LLM_PROVIDER", "fake") not in ("", "none")
        self._faults: dict[Control, str] = {}
        self._lock = asyncio.Lock()

    def has_all(self, lines: list[str]) -> bool:
        """Whether all controls of these request lines have been sent."""
        return all(self._control(line) in self._faults for line in lines)

    async def fault(self, line: str, send: Send) -> str:
        """Return why a rejection of `line` proves nothing; empty if it does prove something."""
        control = self._control(line)
        async with self._lock:
            if control not in self._faults:
                self._faults[control] = await self._run(control, send)
        return self._faults[control]

    def _control(self, line: str) -> Control:
        control = control_of(line)
        # A daemon without a reader rejects every question, as it must.
        return _SEARCH if control == _ASK and not self._has_reader else control

    async def _run(self, control: Control, send: Send) -> str:
        await send(_DELETE.line, self._headers, None)
        try:
            for step in _requests(control, by_path=self._by_path):
                outcome = await send(step.line, self._headers, step.body)
                if outcome.status is None or not 200 <= outcome.status < 300:
                    got = outcome.status if outcome.status is not None else outcome.failure
                    return (
                        "the rejection proves nothing, because the daemon does not serve a valid"
                        f" request either: {step.line}: {got}"
                    )
        finally:
            await send(_DELETE.line, self._headers, None)
        return ""


def _requests(control: Control, *, by_path: bool) -> Iterator[Control]:
    if control.in_brain:
        yield _CREATE
        if control.needs_document:
            yield _PUT if by_path else _INGEST
    yield control
