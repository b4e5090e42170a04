"""The program's standard streams, whatever the shell has made of them."""

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
    """Loses what cannot be written: a pipe that nobody reads, a full disk."""

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - Python 3.11 has no name for buffers
        try:
            return super().write(data)
        except OSError:
            return len(data)


def prepare_streams() -> None:
    """Open what the shell closed, and let no run end because its progress cannot be told."""
    # Python has no `sys.stdout` behind `>&-`, and what is opened next would get its number.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    # Where there is no descriptor, whoever called us in this process has put a stream of its own.
    with suppress(io.UnsupportedOperation):
        raw = io.FileIO(sys.stdout.fileno(), "w", closefd=False)
        sys.stdout = _replacement(sys.stdout, raw, by_line=sys.stdout.isatty())
    with suppress(io.UnsupportedOperation):
        raw = _Lossy(sys.stderr.fileno(), "w", closefd=False)
        sys.stderr = _replacement(sys.stderr, raw, by_line=True)


_replaced: list[TextIO] = []
"""Held: a stream that nobody holds closes the descriptor, which its replacement writes to."""


def _replacement(stream: TextIO, raw: io.FileIO, *, by_line: bool) -> SafeStream:
    stream.flush()
    _replaced.append(stream)
    return SafeStream(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=by_line,
    )


def why_output_fails(error: Exception) -> str:
    """Why standard output cannot be written, if that is the error; else nothing."""
    if isinstance(error, OSError) and error.errno in _FULL:
        try:
            # An error of writing does not say which file it was.
            sys.stdout.write("\n")
            sys.stdout.flush()
        except OSError as again:
            return again.strerror or str(again)
    return ""


def drop_output() -> None:
    """The interpreter flushes at its end; where that fails it ends with a code of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
