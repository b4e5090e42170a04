"""Runs one command in a process group of its own, and ends that group when it should end.

Started as a program of its own (`python -I -S guard.py COMMAND…`), with nothing but the standard
library, because it must outlive the harness for a moment: a harness that is killed with SIGKILL
cannot tidy up, but the pipe that it held as the guard's standard input closes.

stdin   held open by the harness; its end ends the daemon
stdout  reports to the harness: `pid N`, then `exit STATUS`; or `error MESSAGE`
stderr  the daemon's standard output and standard error
"""

import os
import select
import signal
import sys
from contextlib import suppress


def main(argv: list[str]) -> int:
    wake, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    signal.set_wakeup_fd(wake_end)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A terminal sends these to every process in the foreground; the harness decides, not we.
        signal.signal(ignored, signal.SIG_IGN)
    try:
        pid = os.posix_spawnp(
            argv[0],
            argv,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, 2, 1),
            ],
            setpgroup=0,
            setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE],
        )
    except OSError as error:
        _report(f"error {argv[0]}: {error.strerror}")
        return 1
    _report(f"pid {pid}")
    while not _exited(pid):
        readable, _, _ = select.select([0, wake], [], [])
        if wake in readable:
            os.read(wake, 64)
        if 0 in readable and not os.read(0, 64):
            break
    # The leader may be gone and its children not; as long as we have not reaped it, its process
    # id, and so the group's, cannot belong to anyone else.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    _report(f"exit {os.waitstatus_to_exitcode(status)}")
    return 0


def _exited(pid: int) -> bool:
    """Whether the child has ended, without reaping it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _report(line: str) -> None:
    with suppress(OSError):
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
