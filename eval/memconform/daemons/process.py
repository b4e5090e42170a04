"""One daemon as an operating-system process, watched over by its guard."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
import structlog

from memconform.errors import DaemonError

_log = structlog.get_logger()

_GUARD = Path(__file__).with_name("guard.py")

TERM_GRACE_SECONDS = 5.0
"""The contract's limit for a daemon to end after SIGTERM, open streams included."""

_TAIL_BYTES = 16_384


class DaemonProcess:
    """A started command; its output goes straight to `log`, so that it can never block on us."""

    def __init__(
        self, guard: asyncio.subprocess.Process, pid: int, log: Path, log_start: int
    ) -> None:
        self._guard = guard
        self.pid = pid
        self.log = log
        self._log_start = log_start
        self.started_at = _started_at(pid)
        """In epoch seconds; None where it had ended before we could look."""
        self._ended = asyncio.create_task(self._read_end())

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
    ) -> Self:
        """Start `argv` in its own process group.

        Raises:
            DaemonError: where the command cannot be started.
        """
        with log.open("ab") as output:
            log_start = output.tell()
            guard = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(_GUARD), *argv),
                env=env,
                cwd=cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=output,
                # A Ctrl-C at the terminal is for the harness, which then stops its daemons.
                start_new_session=True,
            )
        kind, _, value = await _read_report(guard)
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
        status = await self._guard.wait()
        if kind == "exit":
            return _describe_status(int(value))
        # The guard was killed, by hand or for want of memory; the daemon must not outlive it.
        if self.started_at is not None and _started_at(self.pid) == self.started_at:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        return f"ended with its guard, which was {_describe_status(status)}"

    def tail(self) -> str:
        """The last lines of what this process wrote."""
        return tail(self.log, self._log_start)

    def output(self, start: int) -> bytes:
        """What this process wrote behind its byte `start`, at most a megabyte of it."""
        with self.log.open("rb") as file:
            file.seek(self._log_start + start)
            return file.read(1 << 20)

    @property
    def alive(self) -> bool:
        return not self._ended.done()

    async def wait(self) -> str:
        """How the command ended, once it has: `exit status 1`, `killed by SIGSEGV`."""
        return await asyncio.shield(self._ended)

    async def stop(self) -> str:
        """End the whole group: SIGTERM, after `TERM_GRACE_SECONDS` SIGKILL."""
        _log.info("process is stopped", pid=self.pid)
        self.signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.wait(), TERM_GRACE_SECONDS)
        except TimeoutError:
            _log.warning("process ignores SIGTERM", pid=self.pid, seconds=TERM_GRACE_SECONDS)
            self.signal(signal.SIGKILL)
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


async def _read_report(guard: asyncio.subprocess.Process) -> tuple[str, str, str]:
    """The next line that the guard reports, as its first word, a space and the rest."""
    line = await guard.stdout.readline() if guard.stdout else b""
    return line.decode().strip().partition(" ")


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
            file.seek(max(start, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
