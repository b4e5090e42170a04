"""The program's entry point: it handles interrupts before it imports anything that takes time."""

import gc
import os
import signal
from contextlib import suppress
from types import FrameType
from typing import NoReturn

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130
"""`ExitCode.INTERRUPTED`, whose module is one of those that take time."""


def main() -> None:
    """Run the program; a signal ends it with exit code 130 from the first import on.

    Nothing has begun while modules are imported, so nothing needs to be ended. Python would print a
    traceback of the import on Ctrl-C, and die of SIGTERM with a status that no document lists.
    """
    # A signal that is ignored from the start, as a hang-up under nohup, stays ignored.
    handled = [each for each in _INTERRUPTS if signal.getsignal(each) is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _end)
    # As while a verb is imported (cli/lazy.py).
    gc.disable()
    from memconform.cli.main import main as run  # noqa: PLC0415 - see above

    gc.enable()

    # It takes over the signals where it can end the program in order.
    run(interrupts=handled)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    # Standard error may be closed, full, or a pipe that nobody reads.
    with suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)
