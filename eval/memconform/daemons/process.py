"""A daemon as an operating-system process under its guard."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from memconform.daemons.guard_process import SWEEP_SECONDS, GuardProcess, kill_orphans
from memconform.daemons.tasks import finish
from memconform.errors import DaemonError, limit_hint
from memconform.printing.logs import Logger

_log = Logger()

TERM_GRACE_SECONDS = 5.0
"""The contract's limit for a daemon to end after SIGTERM, open streams included."""

_GUARD_START_SECONDS = 30.0
"""A guard starts in 10 ms; the limit is for swapping machines and guards that never answer."""

OUTPUT_BYTES = 1 << 20
"""The most bytes that `DaemonProcess.output` returns at a time."""

_TAIL_BYTES = 16_384


# Not `-m`: the working folder must not be searched for modules, which may be called as those of
# the program are.
PROGRAM = (
    *(sys.executable, "-P", "-c"),
    "import sys; sys.argv[0] = 'memconform'; from memconform.cli.start import main; main()",
)
"""What starts this program as a child, before its arguments."""


class DaemonProcess:
    """A started command. Its output goes straight to `log`, so it can never block on the harness.

    The guard cuts a log of more than 64 MiB to a head and a tail.
    """

    def __init__(self, guard: GuardProcess, pid: int, log: Path, log_start: int) -> None:
        self.purpose: dict[str, str] = {}
        """What it runs for, such as its SDK and the last case; named in warnings about it."""
        self._guard = guard
        self.pid = pid
        self.log = log
        self._log_start = log_start
        self.started_at = _started_at(pid)
        """In epoch seconds; None if it had already ended."""
        self.left_over: list[str] = []
        """Descendants outside the process group that were killed after the command ended."""
        self.ignored_sigterm = False
        """Whether `stop` had to send SIGKILL, because SIGTERM did not end the command in time."""
        self._ended = asyncio.create_task(self._read_end())

    @property
    def guard_pid(self) -> int:
        """The parent of the command, and of descendants whose own parents have ended."""
        return self._guard.pid

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
    ) -> Self:
        """Start `argv` in its own process group.

        Raises:
            DaemonError: `spawn_failed` if the command cannot be started.
        """
        path = await asyncio.to_thread(log.absolute)
        with path.open("ab") as output:
            log_start = output.tell()
            guard = GuardProcess.start(argv, env=env, cwd=cwd, log=path, output=output)
        try:
            async with asyncio.timeout(_GUARD_START_SECONDS):
                kind, value = await guard.read_first_report()
        except BaseException as error:
            # Cancelled or timed out, with a child to which nobody has a handle.
            await finish(guard.end())
            if not isinstance(error, TimeoutError):
                raise
            kind, value = "error", f"no answer within {_GUARD_START_SECONDS:g} s"
        if kind != "pid":
            await finish(guard.end())
            raise DaemonError(
                f"cannot start {' '.join(argv)}: {value or 'the guard ended'}",
                code="spawn_failed",
                hint=limit_hint(value)
                or "check that the build is complete and that [serve] argv is correct",
                excerpt=tail(log, log_start),
            )
        _log.info("process started", pid=int(value), argv=list(argv), output=str(log))
        return cls(guard, int(value), log, log_start)

    async def _read_end(self) -> str:
        kind, value = await self._guard.read_report()
        if kind == "left":
            self.left_over.append(value)
            kind, value = await self._guard.read_report()
        status = await self._guard.wait()
        if kind == "exit":
            return _describe_status(int(value))
        # The guard was killed, by its daemon or for lack of memory; the daemon must not outlive it.
        if self.started_at is not None and _started_at(self.pid) == self.started_at:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.left_over += kill_orphans(self.pid)
        return f"ended with its guard, which was {_describe_status(status)}"

    def tail(self) -> str:
        """The last lines of this process's output."""
        return tail(self.log, self._log_start)

    def output(self, start: int) -> bytes:
        """The output of this process from byte `start` on, at most OUTPUT_BYTES.

        If the log was cut before that byte, the end of the log.
        """
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start += self._log_start
            file.seek(start if start <= size else max(0, size - _TAIL_BYTES))
            return file.read(OUTPUT_BYTES)

    @property
    def alive(self) -> bool:
        """Whether the guard has not reported the command's end yet."""
        return not self._ended.done()

    async def wait(self) -> str:
        """Wait until the command ends; returns how: `exit status 1`, `killed by SIGSEGV`."""
        return await asyncio.shield(self._ended)

    async def stop(self) -> str:
        """End the group and every descendant; returns how the command ended.

        Sends SIGTERM, and SIGKILL after `TERM_GRACE_SECONDS`.
        """
        _log.info("process is stopped", pid=self.pid)
        # A daemon can stop its guard, which is its parent.
        self._guard.resume()
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(TERM_GRACE_SECONDS):
                return await self.wait()
        except TimeoutError:
            self.ignored_sigterm = True
            _log.warning(
                "process ignores SIGTERM",
                **self.purpose,
                pid=self.pid,
                seconds=TERM_GRACE_SECONDS,
            )
            self._guard.resume()
            self.signal(signal.SIGKILL)
            with suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_SECONDS):
                    return await self.wait()
            _log.warning("guard does not answer", pid=self._guard.pid)
            self.left_over += await self._guard.end_by_force(self.pid)
            return await self.wait()
        finally:
            # The guard ends the group when its input closes, whatever interrupted us here.
            self._guard.release()

    def signal(self, number: signal.Signals) -> None:
        """Send signal `number` to the whole group; does nothing once the command has ended."""
        # Until the guard reports the end it has not reaped the leader, so the group's id cannot
        # have been reused.
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


def _started_at(pid: int) -> float | None:
    """When a process started, which distinguishes it from a later one with the same id."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def _describe_status(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"


def tail(log: Path, start: int = 0, lines: int = 20) -> str:
    """The last lines of a log after byte `start`, decoded leniently; empty if it is unreadable."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            # A log that was cut may be shorter than `start`.
            file.seek(max(start if start <= size else 0, size - _TAIL_BYTES))
            # Do not read to the end, which a daemon that writes fast keeps moving.
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
