"""Standard output and standard error, as everything but rich writes to them."""

import io
import os
import re
import sys
from typing import IO

from memconform.printing.escaping import (
    COMMAND_MARK,
    disarm_commands,
    escape_lines,
    printable,
)
from memconform.redaction import redact

_STYLING = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|\r)")
"""What rich writes to a terminal: colours, and the movements of its progress bars."""


def echo(text: str = "", *, err: bool = False) -> None:
    """Print text safely: one line, or several as `Lines`; to standard error with `err`.

    Raises:
        OSError: where the stream cannot be written.
    """
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{printable(text)}\n")
    stream.flush()


class SafeStream(io.TextIOWrapper):
    """A standard stream that masks and escapes what reaches it, whoever wrote it.

    The last line of defence: logging, warnings and tracebacks of libraries come this way too, and
    only here it is known where a line begins once rich has wrapped and padded it.
    """

    _line = ""
    """The end of the current line, as far as a command may still grow from it."""

    def write(self, text: str, /) -> int:
        self.write_masked(redact(text))
        return len(text)

    def write_masked(self, text: str) -> None:
        """Write what holds no secret, such as JSON, whose syntax a mask could break."""
        safe = self._styled(text) if _takes_styles(self) else escape_lines(text)
        # A mark may come in pieces. What is before was disarmed, so that it stays as it is.
        line = disarm_commands(self._line + safe)
        super().write(line[len(self._line) :])
        line = line.rpartition("\n")[2]
        self._line = line.strip() if line.strip() in ("", ":") else f".{line[-COMMAND_MARK:]}"

    @staticmethod
    def _styled(text: str) -> str:
        parts = _STYLING.split(text)
        # Odd parts are the separators; joined anew, they keep their places.
        return "".join(p if i % 2 else escape_lines(p) for i, p in enumerate(parts))


def _takes_styles(stream: IO[str]) -> bool:
    """Whether rich sends styles there."""
    return stream.isatty() or bool({"FORCE_COLOR", "TTY_COMPATIBLE"} & os.environ.keys())


_NOT_PLAIN = re.compile(r"[^\x20-\x7e\n\t]|#(?=#(?i:vso|teamcity)?\[)")


def write_output(text: str) -> None:
    """Write text to standard output, secrets masked before."""
    sys.stdout.write(text)


def write_json_output(text: str) -> None:
    """Write JSON to standard output: the same values, in ASCII that no terminal or CI server obeys.

    Whatever is outside ASCII stands in a string of JSON, where an escape means the same.
    """
    plain = _NOT_PLAIN.sub(_json_escape, text)
    if isinstance(sys.stdout, SafeStream):
        sys.stdout.write_masked(plain)
    else:
        sys.stdout.write(plain)


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
