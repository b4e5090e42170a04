"""A daemon as an operating-system process under its guard."""

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
from memconform.errors import DaemonError, limit_hint
from memconform.printing.logs import Logger

_log = Logger()

_GUARD = Path(__file__).with_name("guard.py")

TERM_GRACE_SECONDS = 5.0
"""The contract's limit for a daemon to end after SIGTERM, open streams included."""

_GUARD_START_SECONDS = 30.0
"""A guard starts in 10 ms; the limit is for swapping machines and guards that never answer."""

_GUARD_WAKE_SECONDS = 0.25
"""Interval at which a guard that has not reported yet is resumed, in case it was stopped."""

_GUARD_SWEEP_SECONDS = 7.0
"""More than the 5.5 s that a guard allows itself to end the rest of its daemon."""

_KILL_SECONDS = 2.0
"""How long to kill processes ourselves if the guard does not answer."""

OUTPUT_BYTES = 1 << 20
"""The most bytes that `DaemonProcess.output` returns at a time."""

_TAIL_BYTES = 16_384


class DaemonProcess:
    """A started command. Its output goes straight to `log`, so it can never block on the harness.

    The guard cuts a log of more than 64 MiB to a head and a tail.
    """

    def __init__(
        self, guard: asyncio.subprocess.Process, pid: int, log: Path, log_start: int
    ) -> None:
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
            guard = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(_GUARD), str(path), *argv),
                env=env,
                cwd=cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=output,
                # Ctrl-C must reach only the harness, which then stops its daemons.
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(_GUARD_START_SECONDS):
                kind, _, value = await _read_first_report(guard)
        except BaseException as error:
            # Cancelled or timed out, with a child to which nobody has a handle.
            await finish(_abandon_guard(guard))
            if not isinstance(error, TimeoutError):
                raise
            kind, value = "error", f"no answer within {_GUARD_START_SECONDS:g} s"
        if kind != "pid":
            await guard.wait()
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
        kind, _, value = await _read_report(self._guard)
        if kind == "left":
            self.left_over.append(value)
            kind, _, value = await _read_report(self._guard)
        status = await self._guard.wait()
        if kind == "exit":
            return _describe_status(int(value))
        # The guard was killed, by its daemon or for lack of memory; the daemon must not outlive it.
        if self.started_at is not None and _started_at(self.pid) == self.started_at:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.left_over += _kill_orphans(self.pid)
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
        # A daemon can stop its guard, which is its parent; a running guard ignores SIGCONT.
        _send(self._guard, signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.wait(), TERM_GRACE_SECONDS)
        except TimeoutError:
            self.ignored_sigterm = True
            _log.warning(
                "process ignores SIGTERM",
                **self.purpose,
                pid=self.pid,
                seconds=TERM_GRACE_SECONDS,
            )
            _send(self._guard, signal.SIGCONT)
            self.signal(signal.SIGKILL)
            with suppress(TimeoutError):
                return await asyncio.wait_for(self.wait(), _GUARD_SWEEP_SECONDS)
            _log.warning("guard does not answer", pid=self._guard.pid)
            self.left_over += await _end_without_guard(self._guard, self.pid)
            return await self.wait()
        finally:
            # The guard ends the group when its input closes, whatever interrupted us here.
            if self._guard.stdin is not None:
                self._guard.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Send signal `number` to the whole group; does nothing once the command has ended."""
        # Until the guard reports the end it has not reaped the leader, so the group's id cannot
        # have been reused.
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


async def _read_first_report(guard: asyncio.subprocess.Process) -> tuple[str, str, str]:
    """Read the first report of a guard that its daemon may have stopped in the meantime."""
    report = asyncio.create_task(_read_report(guard))
    try:
        # The daemon runs before its guard reports it, so an immediate SIGSTOP delays the report.
        while not (await asyncio.wait([report], timeout=_GUARD_WAKE_SECONDS))[0]:
            _send(guard, signal.SIGCONT)
        return report.result()
    finally:
        report.cancel()


async def _read_report(guard: asyncio.subprocess.Process) -> tuple[str, str, str]:
    """Read the guard's next report line, split into its first word, a space and the rest."""
    line = await guard.stdout.readline() if guard.stdout else b""
    return line.decode().strip().partition(" ")


def _send(guard: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        guard.send_signal(number)


async def _abandon_guard(guard: asyncio.subprocess.Process) -> None:
    """End a guard and the daemon that it may have started."""
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
    """Kill all descendants of a guard that does not answer, then the guard.

    Returns:
        The names of descendants outside the process group `group`.
    """
    escaped = await asyncio.to_thread(_kill_descendants, guard.pid, group)
    _send(guard, signal.SIGKILL)
    await guard.wait()
    return escaped


def _kill_descendants(guard: int, group: int | None) -> list[str]:
    """Kill all descendants of a guard, trying for at most `_KILL_SECONDS`.

    Returns:
        The names of descendants outside the process group `group`.
    """
    # On Linux, orphans become the guard's children even while it is stopped, so none is lost.
    return _kill_all(lambda: process_tree(guard)[1:], group)


def _kill_orphans(group: int) -> list[str]:
    """Kill the orphans of a guard that was killed, as `_kill_descendants` does.

    They are our children only if the program has called `adopt_orphans`; a program that merely
    imports this package keeps its own handling of orphans.

    Do not run this in a thread: a guard started concurrently would look like an orphan.
    """
    return _kill_all(_orphans, group)


def _orphans() -> list[psutil.Process]:
    """Our children that another process started.

    Each guard calls setsid, so processes that it started have a session id other than ours; other
    children of ours have our session id.
    """
    orphans = []
    for child in psutil.Process().children():
        with suppress(psutil.Error, OSError):
            foreign = os.getsid(child.pid) != os.getsid(0)
            if foreign and str(_GUARD) not in child.cmdline():
                orphans.append(child)
    return orphans


def _kill_all(find: Callable[[], list[psutil.Process]], group: int | None) -> list[str]:
    """Kill processes until `find` returns none that runs, or `_KILL_SECONDS` have passed.

    Returns:
        The names of processes outside the process group `group`.
    """
    escaped: dict[int, str] = {}
    deadline = time.monotonic() + _KILL_SECONDS
    while running := [process for process in find() if _is_running(process)]:
        for process in running:
            with suppress(psutil.Error, OSError):
                process_group = os.getpgid(process.pid)
                if process_group != group:
                    escaped[process.pid] = f"{process.name()} (pid {process.pid})"
                # Kill by group as the guard does, but spare the guard's own group until the end.
                if process_group not in (os.getpgrp(), process.ppid()):
                    os.killpg(process_group, signal.SIGKILL)
                process.kill()
        if time.monotonic() > deadline:
            break
        time.sleep(0.001)
    return list(escaped.values())


def _is_running(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Await `work` to completion even if cancelled; the cancellation is raised afterwards."""
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
