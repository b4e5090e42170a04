"""Runs one command in its own process group and ends every process that it started.

It is a separate program (`python -I -S guard.py LOG COMMAND…`) that uses only the standard library,
because it must briefly outlive the harness: a harness killed with SIGKILL cannot clean up, but the
pipe that it holds as the guard's standard input closes.

stdin   held open by the harness; the guard ends the daemon when it closes
stdout  reports to the harness: `pid N`, then `left NAMES` if descendants outside the process group
        were still running, then `exit STATUS`; or `error MESSAGE`
stderr  the daemon's standard output and standard error: the file LOG, opened for appending

On Linux the guard is a child subreaper: a descendant whose parent ends becomes the guard's child,
even after `setsid` and with an empty environment, so none can escape. On other systems the guard
ends only the process group.
"""

# Starting a daemon waits for this program. `signal` and `contextlib` take 3 ms each to import
# (they load enum and functools), ctypes 3 ms more; the built-in modules below take 1 ms in all.
import _signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_EXIT_GRACE_SECONDS = 0.5
"""Time for children outside the process group, which the daemon may have asked to end."""
_SWEEP_SECONDS = 5.0
"""A process in uninterruptible sleep does not end; the guard must, and it reports the process."""
_ROUND_SECONDS = 0.1
"""The most of a round of the sweep that counts; one takes a few milliseconds."""
_MAX_NAMES = 8

_POLL_SECONDS = 0.1
_BUSY_POLL_SECONDS = 0.01
_BUSY_BYTES = 1 << 20

HEAD_BYTES = 16 << 20
TAIL_BYTES = 24 << 20
CAP_BYTES = 64 << 20
"""A longer log is cut to its head and tail. The cap is well above their sum, so that each byte of a
daemon that never stops writing is copied once or twice, not each time the log is checked."""
_LINE_BYTES = 64 << 10
_COPY_BYTES = 1 << 20


def main(argv: list[str]) -> int:
    """Run the command `argv[1:]` with the log `argv[0]`; returns the exit status."""
    log, command = _Log(argv[0]), argv[1:]
    wake, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    _signal.set_wakeup_fd(wake_end)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    for ignored in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        # A terminal sends these to every foreground process; only the harness decides.
        _signal.signal(ignored, _signal.SIG_IGN)
    adopt_orphans()
    # A daemon may stop us with SIGSTOP; once the harness is gone nothing else resumes us.
    _prctl(_PR_SET_PDEATHSIG, _signal.SIGCONT)
    try:
        pid = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, 2, 1),
            ],
            setpgroup=0,
            setsigdef=[_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGPIPE],
        )
    except OSError as error:
        _report(f"error {command[0]}: {error.strerror}")
        return 1
    _report(f"pid {pid}")
    grace = _EXIT_GRACE_SECONDS
    while not _exited(pid):
        readable, _, _ = select.select([0, wake], [], [], log.limit())
        if wake in readable:
            os.read(wake, 64)
            _reap_orphans(pid)
        if 0 in readable and not os.read(0, 64):
            grace = 0
            break
    names, status = _end_all(pid, grace)
    log.limit()
    if names:
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        _report(f"left {', '.join(names[:_MAX_NAMES])}{more}")
    _report(f"exit {status}")
    return 0


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants; only Linux supports this."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    try:
        # The C module behind ctypes; ctypes itself takes 3 ms to import.
        import _ctypes  # noqa: PLC0415 - a Python may be built without it

        function = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        _ctypes.call_function(function, (option, int(value), 0, 0, 0))
    except (ImportError, AttributeError, OSError):
        return


def _exited(pid: int) -> bool:
    """Whether the child has ended, without reaping it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _reap_orphans(leader: int) -> None:
    for child in _children():
        if child != leader:
            _reap(child)


def _reap(pid: int) -> int | None:
    """The exit code of a child that has ended; None if it has not, or is not our child."""
    try:
        reaped, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if reaped else None


def _end_all(leader: int, grace: float) -> tuple[list[str], int]:
    """Kill the process group and every descendant until none is left.

    Descendants outside the group get `grace` seconds to end by themselves.

    Returns:
        The names of descendants outside the group that had to be killed, and the leader's exit
        code.
    """
    # The leader may have ended before its children. Until we reap it, its process id, and so the
    # group's id, cannot be reused.
    _kill(-leader)
    escaped: dict[int, str] = {}
    elapsed, before = 0.0, time.monotonic()
    while elapsed < grace + _SWEEP_SECONDS:
        # Children of a killed process become ours and are handled in the next round.
        children = [child for child in _children() if child != leader]
        for child in children:
            name, group, ended = _describe(child)
            if not ended and group != leader:
                if elapsed < grace:
                    continue
                escaped.setdefault(child, f"{name} (pid {child})")
            if not ended:
                _kill_with_group(child, group)
            _reap(child)
        if not children and _exited(leader):
            status = _reap(leader)
            # /proc may omit a child while another ends; waitid does not.
            if not _any_child():
                return list(escaped.values()), status or 0
            left = grace + _SWEEP_SECONDS - elapsed
            return [*escaped.values(), *_end_rest(time.monotonic() + left)], status or 0
        time.sleep(0.001)
        now = time.monotonic()
        # While the machine stood still, no descendant could end by itself.
        elapsed += min(now - before, _ROUND_SECONDS)
        before = now
    status = _reap(leader)
    return list(escaped.values()), -_signal.SIGKILL if status is None else status


def _end_rest(deadline: float) -> list[str]:
    """Kill processes that became our children after the leader was reaped; returns their names."""
    names: dict[int, str] = {}
    while _any_child() and time.monotonic() < deadline:
        for child in _children():
            name, group, _ = _describe(child)
            names.setdefault(child, f"{name} (pid {child})")
            _kill_with_group(child, group)
            _reap(child)
        time.sleep(0.001)
    return list(names.values())


def _kill_with_group(pid: int, group: int) -> None:
    # A signal to a group reaches even a process that keeps forking and exiting: the kernel sends it
    # between two forks. Only descendants can be in a descendant's group, but they can join ours.
    if group not in (0, os.getpgrp()):
        _kill(-group)
    _kill(pid)


def _kill(pid: int) -> None:
    """Send SIGKILL to a process, or to the process group `-pid`."""
    try:  # noqa: SIM105 - contextlib takes 3 ms to import
        os.kill(pid, _signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _any_child() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children() -> list[int]:
    """Our children, including zombies; empty without /proc."""
    try:
        with open("/proc/thread-self/children", "rb", buffering=0) as file:  # noqa: PTH123 - pathlib takes 8 ms to import
            return [int(pid) for pid in file.read(1 << 20).split()]
    except OSError:
        pass
    try:
        entries = os.listdir("/proc")  # noqa: PTH208 - as above
    except OSError:
        return []
    parent = str(os.getpid()).encode()
    processes = [int(entry) for entry in entries if entry.isdecimal()]
    return [pid for pid in processes if _stat(pid)[1][1:2] == [parent]]


def _describe(pid: int) -> tuple[str, int, bool]:
    """A process's name, its process group, and whether it has ended."""
    name, fields = _stat(pid)
    if not fields:
        return name, 0, True
    return name, int(fields[2]), fields[0] in (b"Z", b"X")


def _stat(pid: int) -> tuple[str, list[bytes]]:
    """A process's name, and the fields of /proc/PID/stat after it: state, parent, group…"""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - as above
            text = file.read(4096)
    except OSError:
        return "?", []
    name, _, rest = text.partition(b"(")[2].rpartition(b")")
    # A process chooses its own name, but a report must be one line.
    printable = "".join(c if c.isprintable() else "?" for c in name.decode("utf-8", "replace"))
    return printable, rest.split()


class _Log:
    """The log file behind standard error, limited to a head and a tail.

    The daemon writes to it directly: a pipe in between would cost two context switches for each
    line, and a slow or stopped guard would block the daemon. So the file is cut while the daemon
    appends to it. Output written in the microseconds between the last read and the cut is lost with
    the middle.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # A restarted daemon appends to the same file; each start has its own head and tail.
        self._base = self._size = os.fstat(2).st_size
        self._head_end = 0
        self._mark_bytes = 0
        self._omitted = 0

    def limit(self) -> float:
        """Cut the log if it is too long; returns the seconds until the next check."""
        size = os.fstat(2).st_size
        growth, self._size = size - self._size, size
        if size - self._base > CAP_BYTES:
            try:
                self._size = self._cut(size)
            except OSError:
                # The disk is full or the file was moved: keep at least the head.
                self._size = self._base + HEAD_BYTES
                os.ftruncate(2, self._size)
        return _BUSY_POLL_SECONDS if growth > _BUSY_BYTES else _POLL_SECONDS

    def _cut(self, size: int) -> int:
        """Move the tail to the end of the head; returns the new size."""
        file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if not os.path.samestat(os.fstat(file), os.fstat(2)):
                raise FileNotFoundError(self._path)
            # Cut at line ends: the halves of a secret cut in two would not be masked.
            if not self._head_end:
                begin = self._base + HEAD_BYTES - _LINE_BYTES
                newline = os.pread(file, _LINE_BYTES, begin).rfind(b"\n")
                self._head_end = begin + (newline + 1 or _LINE_BYTES)
            source = size - TAIL_BYTES
            source += os.pread(file, _LINE_BYTES, source).find(b"\n") + 1
            self._omitted += source - self._head_end - self._mark_bytes
            mark = _omission(self._omitted)
            self._mark_bytes = len(mark)
            end = self._head_end + _write_at(file, mark, self._head_end)
            limit = end + CAP_BYTES - HEAD_BYTES
            while end < limit and (data := os.pread(file, _COPY_BYTES, source)):
                source += len(data)
                end += _write_at(file, data, end)
            if (remainder := os.fstat(file).st_size - source) > 0:
                # The daemon writes faster than we copy.
                end += _write_at(file, _omission(remainder), end)
            os.ftruncate(file, end)
            return end
        finally:
            os.close(file)


def _omission(size: int) -> bytes:
    return f"\n[memconform: {size} bytes of output omitted here]\n".encode()


def _write_at(file: int, data: bytes, offset: int) -> int:
    written = 0
    while written < len(data):
        written += os.pwrite(file, data[written:], offset + written)
    return written


def _report(line: str) -> None:
    try:  # noqa: SIM105 - as above
        os.write(1, f"{line}\n".encode())
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
