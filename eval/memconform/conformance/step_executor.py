"""Executes the steps of a case."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from memconform.conformance import disk, request_bodies
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
from memconform.conformance.case_paths import CasePaths
from memconform.conformance.causes import start_cause, status_fault
from memconform.conformance.expectations import ExpectationResult, evaluate
from memconform.conformance.fixture import UntestableError
from memconform.conformance.fixture_documents import (
    InapplicableError,
    StoppedError,
    document,
    require_acknowledged,
)
from memconform.conformance.pointer import MISSING, resolve
from memconform.conformance.process_report import ProcessReport
from memconform.conformance.raw_requests import converse
from memconform.conformance.step_result import StepResult
from memconform.conformance.translation import Translation, without_gaps
from memconform.conformance.valid_requests import rejected_line
from memconform.conformance.value_causes import missing_fault
from memconform.conformance.variables import substitute
from memconform.contract.dialect_keys import DialectError
from memconform.errors import DaemonError
from memconform.printing.errors import render_error

Variables = Mapping[str, Any]

_NOTHING: Variables = {}

JSON_HEADERS = {"Content-Type": "application/json"}
"""Not required (wire.json), but daemons that are not conformant yet may depend on it."""


class StepExecutor:
    """Executes steps of one case, in its context."""

    def __init__(self, context: CaseContext) -> None:
        self._context = context
        self._handlers: dict[
            type[BaseStep], Callable[[Any, CheckResults, Variables], Awaitable[StepResult | None]]
        ]
        self._handlers = {
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
        self, steps: Sequence[BaseStep], results: CheckResults, extra: Variables = _NOTHING
    ) -> None:
        """Execute steps in order and record their checks.

        Args:
            steps: The steps.
            results: Receives the results of the checks.
            extra: Variables in addition to those of the case.

        Raises:
            StoppedError: if a request gets no answer, a requirement does not hold, a value to
                capture is missing, or a step without expectations fails.
            UntestableError: if the daemon does not support what a step needs.
        """
        for step in steps:
            outcome = await self._handlers[type(step)](step, results, extra)
            if outcome is None:
                continue
            self._context.exchanges.append(outcome)
            variables = self._context.variables(extra)
            for needed in step.only_if:
                result = evaluate(needed, outcome, variables)
                if not result.holds:
                    raise InapplicableError(f"{outcome.label}: {'; '.join(result.faults)}")
            vacuous = self._context.rejection_faults.get(rejected_line(step), "")
            self._context.expect(results, step.expect, outcome, variables, vacuous)
            if outcome.is_unanswered and isinstance(step, RequestStep):
                # Each later step would wait as long, and then say less.
                raise stopped(self._context, outcome, (), outcome.failure or "")
            for required in step.require:
                result, gap = without_gaps(evaluate(required, outcome, variables), outcome)
                if gap and result.holds:
                    raise DialectError("not_in_dialect", f"the daemon's dialect has no {gap}")
                if not result.holds:
                    why = "; ".join(result.faults)
                    root = self._context.root_fault([required], outcome)
                    raise StoppedError(
                        f"{outcome.label}: what the case requires is missing: {why}",
                        self._context.cause(outcome, root or result.details[0]),
                        outcome,
                    )
            for name, pointer in step.capture.items():
                value = resolve(outcome.json(), pointer)
                if value is MISSING:
                    root = self._context.root_fault(step.expect.values(), outcome)
                    fault = root or missing_fault(outcome.json(), pointer)
                    lacking = ExpectationResult((fault,))
                    if gap := without_gaps(lacking, outcome)[1]:
                        raise DialectError("not_in_dialect", f"the daemon's dialect has no {gap}")
                    why = outcome.failure or f"status {outcome.status}"
                    raise StoppedError(
                        f"{outcome.label}: no value at {pointer!r} ({why})",
                        self._context.cause(outcome, fault),
                        outcome,
                    )
                self._context.set(name, value)

    def _body(self, step: RequestStep, variables: Variables) -> bytes | None:
        keys = step.model_fields_set
        if "json_" in keys:
            return request_bodies.as_json(request_bodies.build_body(step.json_, dict(variables)))
        if "text" in keys:
            return request_bodies.content(request_bodies.build_body(step.text, dict(variables)))
        if step.base64 is not None:
            return request_bodies.Content(base64=step.base64).encoded()
        return step.size.content() if step.size is not None else None

    async def _http(self, step: HttpStep, results: CheckResults, extra: Variables) -> StepResult:
        variables = self._context.variables(extra)
        sent = self._body(step, variables)
        line = substitute(step.http, variables)
        headers = _headers(step, variables)
        sender = self._context.sender(step.server)
        request, exchange = sender.request(line, headers, sent)
        outcome = await sender.send(request, exchange, step.timeout_ms / 1e3)
        if step.server != "upstream":
            self._context.check_wire(results, outcome, sent or b"", step.expect)
        return outcome

    async def _stream(
        self, step: StreamStep, results: CheckResults, extra: Variables
    ) -> StepResult:
        variables = self._context.variables(extra)
        sent = self._body(step, variables)
        sender = self._context.sender(step.server)
        headers = _headers(step, variables)
        request, exchange = sender.request(substitute(step.stream, variables), headers, sent)
        stream = await sender.open(request, exchange, step.timeout_ms / 1e3)
        self._context.streams[_name(step.name, extra)] = stream, sent or b""
        if not step.unread:
            stream.read()
        del results
        return stream.outcome

    async def _await(self, step: AwaitStep, results: CheckResults, extra: Variables) -> StepResult:
        name = _name(step.await_, extra)
        if name not in self._context.streams:
            raise StoppedError(f"await: there is no stream {step.await_!r}", "await: no stream")
        stream, sent = self._context.streams[name]
        stream.read()  # one that was opened unread is read late
        await stream.wait(step.event, step.count, step.within_ms / 1e3)
        self._context.check_wire(results, stream.outcome, sent, step.expect)
        return stream.outcome

    async def _close(self, step: CloseStep, results: CheckResults, extra: Variables) -> None:
        name = _name(step.close, extra)
        if name not in self._context.streams:
            raise StoppedError(f"close: there is no stream {step.close!r}", "close: no stream")
        stream, sent = self._context.streams.pop(name)
        self._context.check_wire(results, stream.outcome, sent, step.expect)
        await stream.close()

    async def _raw(self, step: RawStep, results: CheckResults, extra: Variables) -> StepResult:
        variables = self._context.variables(extra)
        del results
        pieces = [
            request_bodies.content(request_bodies.build_body(piece, dict(variables)))
            for piece in step.raw
        ]
        dialect = self._context.fixture.runner.dialect
        if dialect is not None:
            pieces = [Translation(dialect).raw(piece) for piece in pieces]
        return await converse(
            self._context.fixture.address("daemon"),
            pieces,
            answers=step.answers,
            end=step.end,
            pause=step.pause_ms / 1e3,
            seconds=step.timeout_ms / 1e3,
        )

    async def _store(self, step: StoreStep, results: CheckResults, extra: Variables) -> StepResult:
        variables = self._context.variables(extra)
        documents = [
            document(path, request_bodies.build_body(source, dict(variables)))
            for path, source in substitute(step.store, variables).items()
        ]
        base = f"POST {variables['brain_url']}"
        requests: list[tuple[str, bytes]] = []
        match step.via:
            case "file":
                requests = [(f"{base}/ingest/file", request_bodies.as_json(d)) for d in documents]
            case "batch":
                body = request_bodies.as_json({"documents": documents})
                requests = [(f"{base}/ingest/batch", body)]
            case "ops":
                ops = [
                    {"type": "write", "path": d["path"], "content_base64": d["contentBase64"]}
                    for d in documents
                ]
                requests = [(f"{base}/documents/batch-ops", request_bodies.as_json({"ops": ops}))]
            case "put" | "append":
                verb, rest = ("PUT", "") if step.via == "put" else ("POST", "/append")
                target = f"{verb} {variables['brain_url']}/documents{rest}?path="
                requests = [
                    (
                        target + quote(d["path"]),
                        request_bodies.Content(base64=d["contentBase64"]).encoded(),
                    )
                    for d in documents
                ]
        sender = self._context.sender("daemon")
        outcome = StepResult("store")
        is_fixture = not (step.expect or step.require)
        for number, (line, sent) in enumerate(requests):
            headers = {} if step.via in ("put", "append") else JSON_HEADERS
            request, exchange = sender.request(line, headers, sent)
            outcome = await sender.send(request, exchange, 30)
            self._context.check_wire(results, outcome, sent, {})
            if outcome.status is None or outcome.status >= 300:
                break
            sources = documents if step.via == "batch" else documents[number : number + 1]
            if is_fixture and step.via in ("file", "batch"):
                require_acknowledged(outcome, sources)
        if is_fixture and (outcome.status is None or outcome.status >= 300):
            why = outcome.failure or f"{outcome.status} {outcome.body[:200]!r}"
            self._context.exchanges.append(outcome)
            raise stopped(self._context, outcome, (), why)
        return outcome

    async def _disk(self, step: DiskStep, results: CheckResults, extra: Variables) -> StepResult:
        variables = self._context.variables(extra)
        del results
        state = self._context.fixture.state
        dialect = self._context.fixture.runner.dialect
        paths = CasePaths() if dialect is None else Translation(dialect).paths
        path = paths.on_disk(substitute(step.path, variables))
        content = b""
        if step.content is not None:
            source = step.content
            plain = source if isinstance(source, str) else source.model_dump(exclude_none=True)
            content = request_bodies.content(substitute(plain, variables))
        target = substitute(step.to or "", variables)
        operations: dict[str, Callable[[], StepResult]] = {
            "read": partial(disk.read_file, state, path),
            "list": partial(disk.list_files, state, path, paths.from_disk),
            "write": partial(disk.write_file, state, path, content),
            "remove": partial(disk.remove_files, state, path),
            "remove_folder": partial(disk.remove_folder, state, path),
            "damage": partial(disk.damage_files, state, path, step.page, step.kind),
            "link": partial(disk.create_link, state, path, target),
            "hard_link": partial(disk.create_hard_link, state, path, paths.on_disk(target)),
        }
        try:
            return await asyncio.to_thread(operations[step.disk])
        except disk.NoSuchFileError as error:
            pattern = step.path.replace("${", "{")
            cause = f"the state folder has no file {pattern}"
            raise StoppedError(str(error), cause) from error

    async def _process(
        self, step: ProcessStep, results: CheckResults, extra: Variables
    ) -> StepResult:
        variables = self._context.variables(extra)
        del results
        fixture = self._context.fixture
        fixture.require_managed()
        env = substitute(step.env, variables)
        seconds = step.within_ms / 1e3
        started = time.perf_counter()
        report, cause = ProcessReport(alive=True), ""
        if step.process in {"stop", "kill", "start", "restart"}:
            self._context.expect_end()
        try:
            match step.process:
                case "stop":
                    report = await fixture.end(signal.SIGTERM, seconds)
                case "kill":
                    report = await fixture.end(signal.SIGKILL, seconds)
                case "inspect":
                    report = await fixture.inspect()
                case "fill_disk" | "free_disk":
                    await fixture.limit_files(full=step.process == "fill_disk")
                case "fails_to_start":
                    report = await fixture.fails_to_start(
                        env, substitute(step.arguments, variables)
                    )
                    names = [*sorted(step.env), *(a for a in step.arguments if a[:2] == "--")]
                    cause = f"starts all the same, with {', '.join(names)}" * report.alive
                case "second":
                    await fixture.start("second", env, substitute(step.arguments, variables))
                case "start" | "restart":
                    await fixture.stop()
                    await fixture.start(
                        "daemon",
                        env,
                        substitute(step.arguments, variables),
                        only_stdout=step.only_stdout,
                        without_host=step.without_host,
                    )
                    if step.without_host:
                        report = await fixture.inspect()
        except DaemonError as error:
            if not step.expect:
                # A daemon that does not start on its own state fails, whatever the case is about.
                self._context.start_failure = render_error(error)
                self._context.start_cause = start_cause(error, step.env)
                raise StoppedError(render_error(error), self._context.start_cause) from error
            report = ProcessReport(alive=False, ended=error.message, log=error.excerpt)
            cause = start_cause(error, step.env)
        took = round((time.perf_counter() - started) * 1e3, 3)
        label = f"process: {step.process}"
        return StepResult(label, took_ms=took, value=report.value(), cause=cause)

    async def _pause(self, step: PauseStep, results: CheckResults, extra: Variables) -> None:
        del results
        pause = substitute(step.pause, self._context.variables(extra))
        await asyncio.sleep(pause * step.share / 1e3)

    async def _until(self, step: UntilStep, results: CheckResults, extra: Variables) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + step.within_ms / 1e3
        while True:
            attempt = CheckResults()
            await self.run(step.until, attempt, extra)
            if attempt.holds or loop.time() >= end:
                results.merge(attempt)
                return
            results.wire += attempt.wire
            await asyncio.sleep(step.every_ms / 1e3)

    async def _repeat(self, step: RepeatStep, results: CheckResults, extra: Variables) -> None:
        for index in range(step.times):
            await self.run(step.repeat, results, {**extra, "index": index})

    async def _parallel(self, step: ParallelStep, results: CheckResults, extra: Variables) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for copy in range(step.copies):
                    variables = {**extra, "index": copy, "copy": step.copies > 1}
                    for branch in step.parallel:
                        group.create_task(self.run(branch, results, variables))
        except* DialectError as errors:
            raise errors.exceptions[0] from None
        except* (StoppedError, UntestableError) as errors:
            first = errors.exceptions[0]
            cause = first.cause if isinstance(first, StoppedError | UntestableError) else str(first)
            outcome = first.outcome if isinstance(first, StoppedError) else None
            raise StoppedError(str(first), cause, outcome) from first


def stopped(
    context: CaseContext, outcome: StepResult, expected: Sequence[int], why: str
) -> StoppedError:
    """Build the error for a request whose response leaves the rest of the case undone."""
    fault = context.root_fault((), outcome) or status_fault(why, outcome, expected)
    return StoppedError(f"{outcome.label}: {why}", context.cause(outcome, fault), outcome)


def _headers(step: RequestStep, variables: Variables) -> dict[str, Any]:
    """Return the step's headers; a JSON body gets a Content-Type unless the step sets one."""
    headers: dict[str, Any] = substitute(step.headers, variables)
    has_type = any(name.lower() == "content-type" for name in headers)
    has_json = "json_" in step.model_fields_set
    return {**headers, **JSON_HEADERS} if has_json and not has_type else headers


def _name(stream: str, extra: Variables) -> str:
    """Return the name of the stream, unique for each copy of a branch."""
    return f"{stream} {extra['index']}" if extra.get("copy") else stream
