"""A guard as the harness sees it: a process that can be ended from the moment it exists.

An interrupt cancels a task where it awaits. `asyncio.create_subprocess_exec` awaits after it has
started the process, and kills it if it is cancelled there; a guard that was killed leaves its
daemon running. Here a guard is started, registered and connected without an await.
"""

import asyncio
import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, Self

import psutil

from memconform.daemons.resources import process_tree

_GUARD = Path(__file__).with_name("guard.py")

_WAKE_SECONDS = 0.25
"""Interval at which a guard that has not reported yet is resumed, in case it was stopped."""

SWEEP_SECONDS = 7.0
"""More than the 5.5 s that a guard allows itself to end the rest of its daemon."""

_KILL_SECONDS = 2.0
"""How long to kill processes ourselves if the guard does not answer."""

_EXIT_POLL_SECONDS = 0.001
"""A guard that has closed its standard output is exiting, which takes less than a millisecond."""

_REPORT_BYTES = 4096

_unfinished: set["GuardProcess"] = set()
"""Guards whose end has not been seen."""


class GuardProcess:
    """A started guard, until `wait` or `end` has returned."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._reports = asyncio.StreamReader()
        self._is_silent = asyncio.Event()
        loop = asyncio.get_running_loop()

        def receive() -> None:
            if data := os.read(output, _REPORT_BYTES):
                self._reports.feed_data(data)
            else:
                loop.remove_reader(output)
                self._reports.feed_eof()
                self._is_silent.set()

        assert process.stdout is not None  # noqa: S101 - it is a pipe
        output = process.stdout.fileno()
        loop.add_reader(output, receive)

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        output: BinaryIO,
    ) -> Self:
        """Start a guard that runs `argv`, with `output` open for appending to `log`."""
        _end_guards_at_exit()
        guard = cls(
            subprocess.Popen(
                [sys.executable, "-I", "-S", str(_GUARD), str(log), *argv],
                bufsize=0,
                env=env,
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                # Ctrl-C must reach only the harness, which then stops its daemons.
                start_new_session=True,
            )
        )
        _unfinished.add(guard)
        return guard

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read_report(self) -> tuple[str, str]:
        """Read the next report, split into its first word and the rest; both empty at the end."""
        line = await self._reports.readline()
        kind, _, value = line.decode().strip().partition(" ")
        return kind, value

    async def read_first_report(self) -> tuple[str, str]:
        """Read the first report of a guard that its daemon may have stopped in the meantime."""
        report = asyncio.create_task(self.read_report())
        try:
            # The daemon runs before its guard reports it, so an immediate SIGSTOP delays the
            # report.
            while not (await asyncio.wait([report], timeout=_WAKE_SECONDS))[0]:
                self.resume()
            return report.result()
        finally:
            report.cancel()

    def resume(self) -> None:
        """Continue a guard that its daemon has stopped; a running guard ignores it."""
        self._send(signal.SIGCONT)

    def release(self) -> None:
        """Have the guard end its daemon, with all descendants."""
        self.resume()
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def wait(self) -> int:
        """Wait until the guard has ended; returns its exit code."""
        # Its standard output closes when it ends.
        await self._is_silent.wait()
        while (code := self._process.poll()) is None:  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(_EXIT_POLL_SECONDS)
        self._forget()
        return code

    async def end(self) -> None:
        """End the guard and the daemon that it may have started."""
        self.release()
        try:
            async with asyncio.timeout(SWEEP_SECONDS):
                await self.wait()
        except TimeoutError:
            await self.end_by_force()

    async def end_by_force(self, group: int | None = None) -> list[str]:
        """Kill all descendants of a guard that does not answer, then the guard.

        Returns:
            The names of descendants outside the process group `group`.
        """
        escaped = await asyncio.to_thread(_kill_descendants, self.pid, group)
        self._send(signal.SIGKILL)
        await self.wait()
        return escaped

    def finish(self, seconds: float) -> None:
        """Wait at most `seconds` for a guard that was released, then end it by force."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            _kill_descendants(self.pid, None)
            self._process.kill()
            code = self._process.wait()
        if code < 0:
            # Somebody killed it, and what it watched became ours.
            kill_orphans(None)
        self._forget()

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _forget(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        _unfinished.discard(self)


@cache
def _end_guards_at_exit() -> None:
    atexit.register(end_guards)


def end_guards() -> None:
    """End the daemons of all guards that still run; needs no event loop, and none may run.

    `asyncio.run` cancels the tasks that a cancelled command leaves, and so those that would end
    daemons: they no longer wait for them. So the program does before it exits.
    """
    for guard in _unfinished:
        guard.release()
    deadline = time.monotonic() + SWEEP_SECONDS
    for guard in list(_unfinished):
        guard.finish(max(0.0, deadline - time.monotonic()))


def _kill_descendants(guard: int, group: int | None) -> list[str]:
    """Kill all descendants of a guard, trying for at most `_KILL_SECONDS`.

    Returns:
        The names of descendants outside the process group `group`.
    """
    # On Linux, orphans become the guard's children even while it is stopped, so none is lost.
    return _kill_all(lambda: process_tree(guard)[1:], group)


def kill_orphans(group: int | None) -> list[str]:
    """Kill the orphans of a guard that was killed.

    They are our children only if the program has called `adopt_orphans`; a program that merely
    imports this package keeps its own handling of orphans.

    Do not run this in a thread: a guard started concurrently would look like an orphan.

    Returns:
        The names of orphans outside the process group `group`.
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
