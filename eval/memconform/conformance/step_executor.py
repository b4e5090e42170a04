"""Carries out the steps of a case."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from memconform.conformance import bodies, disk
from memconform.conformance.case import (
    AwaitStep,
    BaseStep,
    CloseStep,
    DiskStep,
    HttpStep,
    ParallelStep,
    PauseStep,
    ProcessStep,
    RawStep,
    RepeatStep,
    RequestStep,
    StoreStep,
    StreamStep,
    UntilStep,
)
from memconform.conformance.case_context import CaseContext, CheckResults
from memconform.conformance.fixture import ProcessReport, UntestableError
from memconform.conformance.pointer import MISSING, resolve
from memconform.conformance.raw import converse
from memconform.conformance.step_result import StepResult
from memconform.conformance.variables import substitute
from memconform.contract.wire import JsonValue
from memconform.errors import DaemonError

Variables = Mapping[str, Any]

_NOTHING: Variables = {}

JSON_HEADERS = {"Content-Type": "application/json"}
"""It has no meaning (wire.json), but for a daemon that is only on its way to conformance."""


class StoppedError(Exception):
    """A step brought nothing that later ones could go on from."""


class StepExecutor:
    def __init__(self, scene: CaseContext) -> None:
        self._scene = scene
        self._do: dict[
            type[BaseStep], Callable[[Any, CheckResults, Variables], Awaitable[StepResult | None]]
        ]
        self._do = {
            HttpStep: self._http,
            StreamStep: self._stream,
            AwaitStep: self._await,
            CloseStep: self._close,
            RawStep: self._raw,
            StoreStep: self._store,
            DiskStep: self._disk,
            ProcessStep: self._process,
            PauseStep: self._pause,
            UntilStep: self._until,
            RepeatStep: self._repeat,
            ParallelStep: self._parallel,
        }

    async def run(
        self, steps: Sequence[BaseStep], findings: CheckResults, more: Variables = _NOTHING
    ) -> None:
        """One after another; what they expect goes into `findings`, `more` are their variables.

        Raises:
            StoppedError: where a step brought nothing to capture.
            UntestableError: where this daemon has not what a step needs.
        """
        for step in steps:
            outcome = await self._do[type(step)](step, findings, more)
            if outcome is None:
                continue
            self._scene.exchanges.append(outcome)
            self._scene.expect(findings, step.expect, outcome, self._scene.variables(more))
            for name, pointer in step.capture.items():
                found = resolve(outcome.json(), pointer)
                if found is MISSING:
                    why = outcome.failure or f"status {outcome.status}"
                    raise StoppedError(f"{outcome.what}: nothing at {pointer!r} ({why})")
                self._scene.set(name, found)

    def _body(self, step: RequestStep, variables: Variables) -> bytes | None:
        given = step.model_fields_set
        if "json_" in given:
            return bodies.as_json(bodies.build_body(step.json_, dict(variables)))
        if "text" in given:
            return bodies.content(bodies.build_body(step.text, dict(variables)))
        if step.base64 is not None:
            return bodies.Content(base64=step.base64).encoded()
        return step.size.content() if step.size is not None else None

    async def _http(self, step: HttpStep, findings: CheckResults, more: Variables) -> StepResult:
        variables = self._scene.variables(more)
        sent = self._body(step, variables)
        line = substitute(step.http, variables)
        headers = _headers(step, variables)
        sender = self._scene.sender(step.server)
        request, exchange = sender.request(line, headers, sent)
        outcome = await sender.send(request, exchange, step.timeout_ms / 1e3)
        if step.server != "upstream":
            self._scene.examine(findings, outcome, sent or b"", step.expect)
        return outcome

    async def _stream(
        self, step: StreamStep, findings: CheckResults, more: Variables
    ) -> StepResult:
        variables = self._scene.variables(more)
        sent = self._body(step, variables)
        sender = self._scene.sender(step.server)
        headers = _headers(step, variables)
        request, exchange = sender.request(substitute(step.stream, variables), headers, sent)
        stream = await sender.open(request, exchange, step.timeout_ms / 1e3)
        self._scene.streams[_name(step.name, more)] = stream, sent or b""
        if not step.unread:
            stream.read()
        del findings
        return stream.outcome

    async def _await(self, step: AwaitStep, findings: CheckResults, more: Variables) -> StepResult:
        name = _name(step.await_, more)
        if name not in self._scene.streams:
            raise StoppedError(f"await: no stream {step.await_!r}")
        stream, sent = self._scene.streams[name]
        await stream.wait(step.event, step.count, step.within_ms / 1e3)
        self._scene.examine(findings, stream.outcome, sent, step.expect)
        return stream.outcome

    async def _close(self, step: CloseStep, findings: CheckResults, more: Variables) -> None:
        name = _name(step.close, more)
        if name not in self._scene.streams:
            raise StoppedError(f"close: no stream {step.close!r}")
        stream, sent = self._scene.streams.pop(name)
        self._scene.examine(findings, stream.outcome, sent, step.expect)
        await stream.close()

    async def _raw(self, step: RawStep, findings: CheckResults, more: Variables) -> StepResult:
        variables = self._scene.variables(more)
        del findings
        pieces = [bodies.content(bodies.build_body(piece, dict(variables))) for piece in step.raw]
        return await converse(
            self._scene.fixture.address("daemon"),
            pieces,
            answers=step.answers,
            end=step.end,
            pause=step.pause_ms / 1e3,
            seconds=step.timeout_ms / 1e3,
        )

    async def _store(self, step: StoreStep, findings: CheckResults, more: Variables) -> StepResult:
        variables = self._scene.variables(more)
        documents = [
            _document(path, bodies.build_body(given, dict(variables)))
            for path, given in substitute(step.store, variables).items()
        ]
        base = f"POST {variables['brain_url']}"
        requests: list[tuple[str, bytes]] = []
        match step.via:
            case "file":
                requests = [(f"{base}/ingest/file", bodies.as_json(d)) for d in documents]
            case "batch":
                body = bodies.as_json({"documents": documents})
                requests = [(f"{base}/ingest/batch", body)]
            case "ops":
                ops = [
                    {"type": "write", "path": d["path"], "content_base64": d["contentBase64"]}
                    for d in documents
                ]
                requests = [(f"{base}/documents/batch-ops", bodies.as_json({"ops": ops}))]
            case "put" | "append":
                verb, rest = ("PUT", "") if step.via == "put" else ("POST", "/append")
                target = f"{verb} {variables['brain_url']}/documents{rest}?path="
                requests = [
                    (target + quote(d["path"]), bodies.Content(base64=d["contentBase64"]).encoded())
                    for d in documents
                ]
        sender = self._scene.sender("daemon")
        outcome = StepResult("store")
        for line, sent in requests:
            headers = {} if step.via in ("put", "append") else JSON_HEADERS
            request, exchange = sender.request(line, headers, sent)
            outcome = await sender.send(request, exchange, 30)
            self._scene.examine(findings, outcome, sent, {})
            if outcome.status is None or outcome.status >= 300:
                break
        if not step.expect and (outcome.status is None or outcome.status >= 300):
            why = outcome.failure or f"{outcome.status} {outcome.body[:200]!r}"
            raise StoppedError(f"{outcome.what}: {why}")
        return outcome

    async def _disk(self, step: DiskStep, findings: CheckResults, more: Variables) -> StepResult:
        variables = self._scene.variables(more)
        del findings
        state = self._scene.fixture.state
        path = substitute(step.path, variables)
        content = b""
        if step.content is not None:
            plain = step.content
            given = plain if isinstance(plain, str) else plain.model_dump(exclude_none=True)
            content = bodies.content(substitute(given, variables))
        try:
            match step.disk:
                case "read":
                    return await asyncio.to_thread(disk.read, state, path)
                case "list":
                    return await asyncio.to_thread(disk.listed, state, path)
                case "write":
                    return await asyncio.to_thread(disk.write_file, state, path, content)
                case "remove":
                    return await asyncio.to_thread(disk.remove, state, path)
                case "damage":
                    return await asyncio.to_thread(disk.damage, state, path)
                case "link":
                    target = substitute(step.to or "", variables)
                    return await asyncio.to_thread(disk.link, state, path, target)
        except disk.NoSuchFileError as error:
            raise StoppedError(str(error)) from error

    async def _process(
        self, step: ProcessStep, findings: CheckResults, more: Variables
    ) -> StepResult:
        variables = self._scene.variables(more)
        del findings
        fixture = self._scene.fixture
        fixture.require_own()
        env = substitute(step.env, variables)
        seconds = step.within_ms / 1e3
        started = time.perf_counter()
        report = ProcessReport(alive=True)
        try:
            match step.process:
                case "stop":
                    report = await fixture.end(signal.SIGTERM, seconds)
                case "kill":
                    report = await fixture.end(signal.SIGKILL, seconds)
                case "inspect":
                    report = await fixture.inspect()
                case "fails_to_start":
                    report = await fixture.fails_to_start(
                        env, substitute(step.arguments, variables)
                    )
                case "second":
                    await fixture.start("second", env, substitute(step.arguments, variables))
                case "start" | "restart":
                    await fixture.stop()
                    await fixture.start(
                        "daemon",
                        env,
                        substitute(step.arguments, variables),
                        only_stdout=step.only_stdout,
                    )
        except DaemonError as error:
            if not step.expect:
                # A daemon that does not come up on its own state is at fault in any case.
                self._scene.start_failure = error.render()
                raise StoppedError(error.render()) from error
            report = ProcessReport(alive=False, ended=error.message, log=error.excerpt)
        took = round((time.perf_counter() - started) * 1e3, 3)
        return StepResult(f"process: {step.process}", took_ms=took, value=report.value())

    async def _pause(self, step: PauseStep, findings: CheckResults, more: Variables) -> None:
        del findings, more
        await asyncio.sleep(step.pause / 1e3)

    async def _until(self, step: UntilStep, findings: CheckResults, more: Variables) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + step.within_ms / 1e3
        while True:
            tried = CheckResults()
            await self.run(step.until, tried, more)
            if tried.holds or loop.time() >= end:
                findings.take(tried)
                return
            findings.wire += tried.wire
            await asyncio.sleep(step.every_ms / 1e3)

    async def _repeat(self, step: RepeatStep, findings: CheckResults, more: Variables) -> None:
        for index in range(step.times):
            await self.run(step.repeat, findings, {**more, "index": index})

    async def _parallel(self, step: ParallelStep, findings: CheckResults, more: Variables) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for copy in range(step.copies):
                    own = {**more, "index": copy, "copy": step.copies > 1}
                    for branch in step.parallel:
                        group.create_task(self.run(branch, findings, own))
        except* (StoppedError, UntestableError) as errors:
            first = errors.exceptions[0]
            raise StoppedError(str(first)) from first


def _headers(step: RequestStep, variables: Variables) -> dict[str, Any]:
    """As the step has them; a JSON body says what it is, unless the step says otherwise."""
    headers: dict[str, Any] = substitute(step.headers, variables)
    named = any(name.lower() == "content-type" for name in headers)
    return headers if named or "json_" not in step.model_fields_set else {**headers, **JSON_HEADERS}


def _name(stream: str, more: Variables) -> str:
    """The stream of this copy, where a branch has several."""
    return f"{stream} {more['index']}" if more.get("copy") else stream


def _document(path: str, given: JsonValue) -> dict[str, JsonValue]:
    """The body of an ingest."""
    more: dict[str, Any] = {}
    if isinstance(given, dict):
        more = {key: given[key] for key in ("title", "tags", "metadata") if key in given}
        given = {key: value for key, value in given.items() if key not in more}
    encoded = bodies.build_body({"$base64": given}, {})
    return {"path": path, "contentType": "text/markdown", "contentBase64": encoded, **more}
