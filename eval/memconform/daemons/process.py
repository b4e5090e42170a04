"""One daemon as an operating-system process, watched over by its guard."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil

from memconform.daemons.resources import process_tree
from memconform.errors import DaemonError
from memconform.printing.logs import Logger

_log = Logger()

_GUARD = Path(__file__).with_name("guard.py")

TERM_GRACE_SECONDS = 5.0
"""The contract's limit for a daemon to end after SIGTERM, open streams included."""

_GUARD_START_SECONDS = 30.0
"""A guard starts in 10 ms; this is for a machine that swaps, and bounds one that never answers."""

_GUARD_WAKE_SECONDS = 0.25
"""How often a guard that has reported nothing yet is woken, should it have been stopped."""

_GUARD_SWEEP_SECONDS = 7.0
"""More than the 5.5 s that a guard gives itself to end what is left of its daemon."""

_KILL_SECONDS = 2.0
"""How long we try ourselves where the guard does not answer."""

OUTPUT_BYTES = 1 << 20
"""The most that `DaemonProcess.output` returns at a time."""

_TAIL_BYTES = 16_384


class DaemonProcess:
    """A started command; its output goes straight to `log`, so that it can never block on us.

    Its guard cuts a log of more than 64 MiB to a head and a tail.
    """

    def __init__(
        self, guard: asyncio.subprocess.Process, pid: int, log: Path, log_start: int
    ) -> None:
        self._guard = guard
        self.pid = pid
        self.log = log
        self._log_start = log_start
        self.started_at = _started_at(pid)
        """In epoch seconds; None where it had ended before we could look."""
        self.left_over: list[str] = []
        """Descendants that had left the process group and were killed after the command's end."""
        self._ended = asyncio.create_task(self._read_end())

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
    ) -> Self:
        """Start `argv` in its own process group.

        Raises:
            DaemonError: where the command cannot be started.
        """
        path = await asyncio.to_thread(log.absolute)
        with path.open("ab") as output:
            log_start = output.tell()
            guard = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(_GUARD), str(path), *argv),
                env=env,
                cwd=cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=output,
                # A Ctrl-C at the terminal is for the harness, which then stops its daemons.
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(_GUARD_START_SECONDS):
                kind, _, value = await _read_first_report(guard)
        except BaseException as error:
            # Cancelled or out of time, with a child that nobody has a handle of.
            await finish(_abandon_guard(guard))
            if not isinstance(error, TimeoutError):
                raise
            kind, value = "error", f"no answer within {_GUARD_START_SECONDS:g} s"
        if kind != "pid":
            await guard.wait()
            raise DaemonError(
                f"cannot start {' '.join(argv)}: {value or 'the guard ended'}",
                code="spawn_failed",
                hint="is the build complete, and [serve] argv right?",
                excerpt=tail(log, log_start),
            )
        _log.info("process started", pid=int(value), argv=list(argv), output=str(log))
        return cls(guard, int(value), log, log_start)

    async def _read_end(self) -> str:
        kind, _, value = await _read_report(self._guard)
        if kind == "left":
            self.left_over.append(value)
            kind, _, value = await _read_report(self._guard)
        status = await self._guard.wait()
        if kind == "exit":
            return _describe_status(int(value))
        # The guard was killed, by its daemon or for want of memory; the daemon must not outlive it.
        if self.started_at is not None and _started_at(self.pid) == self.started_at:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.left_over += _kill_orphans(self.pid)
        return f"ended with its guard, which was {_describe_status(status)}"

    def tail(self) -> str:
        """The last lines of what this process wrote."""
        return tail(self.log, self._log_start)

    def output(self, start: int) -> bytes:
        """What this process wrote behind its byte `start`, at most a megabyte of it.

        The last of it, where the log was cut before that byte.
        """
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start += self._log_start
            file.seek(start if start <= size else max(0, size - _TAIL_BYTES))
            return file.read(OUTPUT_BYTES)

    @property
    def alive(self) -> bool:
        return not self._ended.done()

    async def wait(self) -> str:
        """How the command ended, once it has: `exit status 1`, `killed by SIGSEGV`."""
        return await asyncio.shield(self._ended)

    async def stop(self) -> str:
        """End the whole group and every descendant: SIGTERM, after `TERM_GRACE_SECONDS` SIGKILL."""
        _log.info("process is stopped", pid=self.pid)
        # A daemon can stop its guard, which is its parent; what is not stopped ignores this.
        _send(self._guard, signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.wait(), TERM_GRACE_SECONDS)
        except TimeoutError:
            _log.warning("process ignores SIGTERM", pid=self.pid, seconds=TERM_GRACE_SECONDS)
            _send(self._guard, signal.SIGCONT)
            self.signal(signal.SIGKILL)
            with suppress(TimeoutError):
                return await asyncio.wait_for(self.wait(), _GUARD_SWEEP_SECONDS)
            _log.warning("guard does not answer", pid=self._guard.pid)
            self.left_over += await _end_without_guard(self._guard, self.pid)
            return await self.wait()
        finally:
            # The guard ends the group when its input ends, whatever interrupted us here.
            if self._guard.stdin is not None:
                self._guard.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Send `number` to the whole group; nothing once the command has ended."""
        # While the guard has not reported the end it has not reaped the leader, so that the
        # group's id still is the group's.
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


async def _read_first_report(guard: asyncio.subprocess.Process) -> tuple[str, str, str]:
    """What `_read_report` returns, of a guard that its daemon may have stopped meanwhile."""
    report = asyncio.create_task(_read_report(guard))
    try:
        # The daemon runs before its guard has reported it: a SIGSTOP at once holds the report up.
        while not (await asyncio.wait([report], timeout=_GUARD_WAKE_SECONDS))[0]:
            _send(guard, signal.SIGCONT)
        return report.result()
    finally:
        report.cancel()


async def _read_report(guard: asyncio.subprocess.Process) -> tuple[str, str, str]:
    """The next line that the guard reports, as its first word, a space and the rest."""
    line = await guard.stdout.readline() if guard.stdout else b""
    return line.decode().strip().partition(" ")


def _send(guard: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        guard.send_signal(number)


async def _abandon_guard(guard: asyncio.subprocess.Process) -> None:
    """End a guard, and with it the daemon that it may have started."""
    _send(guard, signal.SIGCONT)
    if guard.stdin is not None:
        guard.stdin.close()
    try:
        await asyncio.wait_for(guard.wait(), _GUARD_SWEEP_SECONDS)
    except TimeoutError:
        await _end_without_guard(guard)


async def _end_without_guard(
    guard: asyncio.subprocess.Process, group: int | None = None
) -> list[str]:
    """End all descendants of a guard that does not answer, then the guard.

    Returns:
        The names of those that had left the process group `group`.
    """
    escaped = await asyncio.to_thread(_kill_descendants, guard.pid, group)
    _send(guard, signal.SIGKILL)
    await guard.wait()
    return escaped


def _kill_descendants(guard: int, group: int | None) -> list[str]:
    """Kill what a guard should have killed, until none is left or `_KILL_SECONDS` have passed.

    Returns:
        The names of those that had left the process group `group`.
    """
    # On Linux orphans become the guard's children even while it is stopped: none gets lost.
    return _kill_all(lambda: process_tree(guard)[1:], group)


def _kill_orphans(group: int) -> list[str]:
    """Kill what a guard that was killed has left to us, as `_kill_descendants` does.

    It is left to us where the program has called `adopt_orphans`; a program that only uses this
    package keeps its own way with orphans.

    Not in a thread: nothing must start a guard meanwhile, which would look like an orphan.
    """
    return _kill_all(_orphans, group)


def _orphans() -> list[psutil.Process]:
    """Our children that another process started.

    Each guard has called setsid, so that what it started has another session id than we have; what
    we start beside guards has ours.
    """
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.Error, OSError):
            foreign = os.getsid(child.pid) != os.getsid(0)
            if foreign and str(_GUARD) not in child.cmdline():
                found.append(child)
    return found


def _kill_all(find: Callable[[], list[psutil.Process]], group: int | None) -> list[str]:
    """Kill what `find` finds until it finds nothing that runs, or `_KILL_SECONDS` have passed."""
    escaped: dict[int, str] = {}
    end = time.monotonic() + _KILL_SECONDS
    while running := [process for process in find() if _runs(process)]:
        for process in running:
            with suppress(psutil.Error, OSError):
                found = os.getpgid(process.pid)
                if found != group:
                    escaped[process.pid] = f"{process.name()} (pid {process.pid})"
                # As the guard does; but its own group lives until nothing else does.
                if found not in (os.getpgrp(), process.ppid()):
                    os.killpg(found, signal.SIGKILL)
                process.kill()
        if time.monotonic() > end:
            break
        time.sleep(0.001)
    return list(escaped.values())


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Await `work` to its end, whatever cancels us meanwhile; the cancellation is raised then."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001 - raised below, as the task's own result
            break
    task.result()
    if cancelled is not None:
        raise cancelled


def _started_at(pid: int) -> float | None:
    """When a process began, which tells it from a later one with its id."""
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
    """The last lines of a log behind byte `start`, as text whatever bytes it holds."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            # A log that was cut may be shorter than it was.
            file.seek(max(start if start <= size else 0, size - _TAIL_BYTES))
            # Not to the end, which a daemon that writes fast moves away as we read.
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
