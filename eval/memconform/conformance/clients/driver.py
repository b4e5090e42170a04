"""A driver: the program around a client that is told what to call, as sdks/DRIVER.md says."""

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from memconform.conformance.clients.case import Claim, ErrorKind, Wire
from memconform.conformance.clients.wire import Event
from memconform.contract.strict_json import reject_constant
from memconform.daemons.process import DaemonProcess
from memconform.daemons.tasks import finish
from memconform.errors import DaemonError
from memconform.records import Record
from memconform.storage.temporary import temporary_folder
from memconform.validation_faults import first_fault

_LINE_BYTES = 64 << 20
"""Longest line of a driver: an event of 8 MiB, escaped."""
_READ_BYTES = 1 << 20
_START_SECONDS = 60.0
"""An interpreter starts in 0.1 s; the limit is for swapping machines."""
_GRACE_S = 20.0
"""How long a call may take beyond its deadline."""
_MOST_EVENTS = 300_000
"""Events of one call: three times those of the largest case."""
_PAGE = "sdks/DRIVER.md describes the protocol"
_COMMAND = "check `command` of [client] in sdk.toml, and that [client.build] makes what it starts"


class Hello(Record):
    """The first line of a driver."""

    driver: str = Field(min_length=1, max_length=80)
    protocol: Literal[1]
    claims: list[Claim]
    wire: Wire = "memory"


class Failure(Record):
    """The error that a client reported."""

    kind: ErrorKind
    status: int | None = None
    code: str | None = None
    message: str = ""


@dataclass(slots=True)
class Observed:
    """What a client has reported of one call, as it arrives."""

    events: list[Event] = field(default_factory=list)
    ended: Literal["ok", "cancelled", "error", "silent"] | None = None
    """`silent`: neither a line nor an end within the time of the call."""
    result: Any = None
    """What `search` or `ingest` returned."""
    failure: Failure | None = None
    yielded_at: float | None = None
    """When it reported the last event, in seconds of the monotonic clock."""
    ended_at: float | None = None
    """When it reported the end, in seconds of the monotonic clock."""
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def reported(self, events: int) -> None:
        """Wait until the client has reported so many events."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.events) >= events)

    async def note(self) -> None:
        """Wake whoever waits for what was just reported."""
        if self.ended is not None:
            self.ended_at = time.monotonic()
        async with self._changed:
            self._changed.notify_all()


class DriverError(DaemonError):
    """A driver broke its protocol, or ended."""


def _broken(
    name: str, why: str, process: DaemonProcess, code: str = "driver_invalid", *, hint: str = _PAGE
) -> DriverError:
    message = f"the driver of {name} {why}"
    return DriverError(message, code=code, hint=hint, excerpt=process.tail())


class Driver:
    """A running driver; calls are made one after the other."""

    def __init__(
        self,
        name: str,
        process: DaemonProcess,
        reader: asyncio.StreamReader,
        commands: int,
    ) -> None:
        self.process = process
        self._name = name
        self._reader = reader
        self._commands = commands
        self._calls = 0
        self._lines: deque[bytes] = deque()
        """Lines that have been read and not been looked at."""
        self._pieces: list[bytes] = []
        """The line whose end has not been read."""
        self._ended = asyncio.create_task(process.wait())

    async def hello(self) -> Hello:
        """Read the first line.

        Raises:
            DriverError: `driver_invalid` if it is not that of the protocol, `driver_ended`.
        """
        if not await self._read(_START_SECONDS):
            why = f"says nothing for {_START_SECONDS:g} s"
            raise _broken(self._name, why, self.process, hint=_COMMAND)
        line = self._lines.popleft()
        try:
            return Hello.model_validate_json(line)
        except ValidationError as error:
            why = f"begins with a line that is not valid: {first_fault(error)}: {line[:200]!r}"
            raise _broken(self._name, why, self.process) from error

    async def call(self, command: Mapping[str, Any], observed: Observed) -> None:
        """Make one call; `observed` has what is reported, as it is.

        Raises:
            DriverError: `driver_invalid` if a line is not that of the protocol, `driver_ended`.
        """
        self._calls += 1
        line = json.dumps({"id": self._calls, **command}) + "\n"
        limit = command["deadlineMs"] / 1e3 + _GRACE_S
        sending = asyncio.create_task(_write(self._commands, line.encode()))
        try:
            async with asyncio.timeout(limit):
                await self._observe(observed, limit)
        except TimeoutError:
            observed.ended = "silent"
            await observed.note()
        finally:
            sending.cancel()

    async def _observe(self, observed: Observed, limit: float) -> None:
        while observed.ended is None:
            if not self._lines and not await self._read(limit):
                observed.ended = "silent"
            while self._lines and observed.ended is None:
                self._take(self._lines.popleft(), observed)
                if len(observed.events) > _MOST_EVENTS:
                    # A client that yields without end would fill the memory of this machine.
                    observed.ended = "silent"
            await observed.note()

    def _take(self, line: bytes, observed: Observed) -> None:
        try:
            fault = self._report(json.loads(line, parse_constant=reject_constant), observed)
        except ValidationError as error:
            fault = first_fault(error)
        except (ValueError, RecursionError):
            fault = "it is not JSON; does the client print to stdout?"
        if fault:
            why = f"wrote a line that is not valid: {fault}: {line[:200]!r}"
            raise _broken(self._name, why, self.process)

    def _report(self, report: object, observed: Observed) -> str:
        """Add a line to what was observed; returns what is wrong with it."""
        match report:
            case {"id": number} if number != self._calls:
                return f"it has the id {number} of another call"
            case dict() if "id" not in report:
                return "it has no id"
            case {"event": str(name), **rest}:
                observed.events.append((name, rest.get("data")))
                observed.yielded_at = time.monotonic()
            case {"error": dict(error)}:
                observed.failure = Failure.model_validate(error)
                observed.ended = "error"
            case {"cancelled": True}:
                observed.ended = "cancelled"
            case {"ok": result}:
                observed.result = result
                observed.ended = "ok"
            case _:
                return "it is neither an event nor the end of a call"
        return ""

    async def _read(self, seconds: float) -> bool:
        """Read until there is a whole line; False if none comes in this time."""
        reading = asyncio.create_task(self._read_lines())
        try:
            await asyncio.wait(
                [reading, self._ended], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not reading.done() and self._ended.done():
                # What it wrote before its end may still have to be read.
                await asyncio.wait([reading], timeout=1)
            if reading.done():
                reading.result()
                return True
        finally:
            reading.cancel()
        if self._ended.done():
            how = self._ended.result()
            hint = _PAGE if self._calls else _COMMAND
            raise _broken(self._name, f"ended: {how}", self.process, "driver_ended", hint=hint)
        return False

    async def _read_lines(self) -> None:
        """Read pieces, of many lines each, until one is complete."""
        while not self._lines:
            if not (read := await self._reader.read(_READ_BYTES)):
                raise _broken(self._name, "cannot be read any more", self.process)
            head, *others = read.split(b"\n")
            self._pieces.append(head)
            if others:
                self._lines += [b"".join(self._pieces), *others[:-1]]
                self._pieces = others[-1:]
            elif sum(map(len, self._pieces)) > _LINE_BYTES:
                raise _broken(self._name, f"wrote a line of over {_LINE_BYTES} B", self.process)

    def close(self) -> None:
        """Stop watching it."""
        self._ended.cancel()


async def _write(descriptor: int, data: bytes) -> None:
    """Write all of `data` to a pipe, as fast as it is read.

    asyncio's own transport takes a pipe that is open both ways for one that has been closed.
    """
    loop = asyncio.get_running_loop()
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            writable = loop.create_future()
            loop.add_writer(descriptor, writable.set_result, None)
            try:
                await writable
            finally:
                loop.remove_writer(descriptor)


@asynccontextmanager
async def running_driver(
    name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
) -> "AsyncIterator[tuple[Driver, Hello]]":
    """Run a driver until the block is left.

    Args:
        name: of its SDK.
        argv: its command.
        env: its whole environment.
        cwd: its folder.
        log: the file to which its stderr is added.

    Raises:
        DriverError: `driver_invalid`, `driver_ended`.
        DaemonError: `spawn_failed` if it cannot be started.
    """
    loop = asyncio.get_running_loop()
    with temporary_folder("memconform-") as folder:
        paths = [folder / "commands", folder / "reports"]
        for path in paths:
            os.mkfifo(path)
        # Open both ways: neither end then waits for the other, nor sees an end between processes.
        commands, reports = (os.open(path, os.O_RDWR | os.O_NONBLOCK) for path in paths)
        reader = asyncio.StreamReader(limit=_READ_BYTES)
        incoming, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reports, "rb", buffering=0)
        )
        try:
            process = await DaemonProcess.start(
                ["sh", "-c", 'exec "$@" <"$0/commands" >"$0/reports"', str(folder), *argv],
                env=env,
                cwd=cwd,
                log=log,
            )
            process.purpose["driver"] = name
            driver = Driver(name, process, reader, commands)
            try:
                yield driver, await driver.hello()
            finally:
                driver.close()
                await finish(_stop(process))
        finally:
            incoming.close()
            os.close(commands)


async def _stop(process: DaemonProcess) -> None:
    await process.stop()
