"""Set-up of the standard streams, which the shell may have closed or redirected."""

import errno
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from memconform.printing.output import SafeStream

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Lossy(io.FileIO):
    """Discards output that cannot be written, because of a closed pipe or a full disk."""

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - Python 3.11 has no name for buffers
        try:
            return super().write(data)
        except OSError:
            return len(data)


def prepare_streams() -> None:
    """Open streams that the shell closed, and keep unwritable progress output from ending a run."""
    # After `>&-` Python has no `sys.stdout`, and the next opened file would get its descriptor.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    # A stream without a descriptor was put there by a caller in this process; it stays.
    with suppress(io.UnsupportedOperation):
        raw = io.FileIO(sys.stdout.fileno(), "w", closefd=False)
        sys.stdout = _replacement(sys.stdout, raw, by_line=sys.stdout.isatty())
    with suppress(io.UnsupportedOperation):
        raw = _Lossy(sys.stderr.fileno(), "w", closefd=False)
        sys.stderr = _replacement(sys.stderr, raw, by_line=True)


_replaced: list[TextIO] = []
"""Original streams, kept because a collected stream closes the descriptor of its replacement."""


def _replacement(stream: TextIO, raw: io.FileIO, *, by_line: bool) -> SafeStream:
    stream.flush()
    _replaced.append(stream)
    return SafeStream(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=by_line,
    )


def why_output_fails(error: BaseException) -> str:
    """Return why standard output cannot be written, if that caused `error`; otherwise nothing."""
    if isinstance(error, OSError) and error.errno in _FULL:
        try:
            # A write error does not name its file.
            sys.stdout.write("\n")
            sys.stdout.flush()
        except OSError as again:
            return again.strerror or str(again)
    return ""


def drop_output() -> None:
    """Redirect standard output to nowhere, because a failed flush at exit changes the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
