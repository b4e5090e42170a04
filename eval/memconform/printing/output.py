"""Writing to standard output and standard error, for everything that does not use rich."""

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from memconform.printing.escaping import (
    COMMAND_MARK,
    disarm_commands,
    escape_lines,
    printable,
)
from memconform.redaction import redact

_STYLING = re.compile(
    r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\x1b\]8;(?:id=[0-9]+)?;(?:file:///[!-~]*)?\x1b\\)"
)
"""Control sequences that rich writes to a terminal: colours, cursor movements, links to files."""


_reserved: list[bool] = []
"""Not empty while standard output is kept for what an option writes."""


@contextmanager
def reserved_stdout() -> Iterator[None]:
    """Keep standard output for what an option writes: text for people goes to standard error."""
    _reserved.append(True)
    try:
        yield
    finally:
        _reserved.pop()


def is_stdout_reserved() -> bool:
    """Whether standard output is kept for what an option writes."""
    return bool(_reserved)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print redacted and escaped text: one line, or several as `Lines`; `err` is standard error.

    Raises:
        OSError: if the stream cannot be written.
    """
    stream = sys.stderr if err or _reserved else sys.stdout
    stream.write(f"{printable(text)}\n")
    stream.flush()


class SafeStream(io.TextIOWrapper):
    """A standard stream that masks and escapes whatever is written to it.

    The last line of defence: logs, warnings and tracebacks of libraries pass through here too, and
    only here is it known where a line begins after rich has wrapped and padded it.
    """

    _line = ""
    """The end of the current line, from which a CI command could still be completed."""

    def write(self, text: str, /) -> int:
        """Mask, escape and write text; returns the number of characters of `text`."""
        self.write_masked(redact(text))
        return len(text)

    def write_masked(self, text: str) -> None:
        """Write text that is already masked, such as JSON, whose syntax a mask could break."""
        safe = self._styled(text) if _takes_styles(self) else escape_lines(text)
        # A marker may arrive in pieces. The earlier part was disarmed, so it stays unchanged.
        line = disarm_commands(self._line + safe)
        super().write(line[len(self._line) :])
        line = line.rpartition("\n")[2]
        self._line = line.strip() if line.strip() in ("", ":") else f".{line[-COMMAND_MARK:]}"

    def write_commands(self, text: str) -> None:
        """Write whole lines of CI commands that the program means, whose texts are escaped."""
        super().write(text)
        self._line = ""

    @staticmethod
    def _styled(text: str) -> str:
        parts = _STYLING.split(text)
        # Odd parts are the separators.
        return "".join(p if i % 2 else escape_lines(p) for i, p in enumerate(parts))


def _takes_styles(stream: IO[str]) -> bool:
    """Whether rich writes control sequences to this stream."""
    return stream.isatty() or bool({"FORCE_COLOR", "TTY_COMPATIBLE"} & os.environ.keys())


_NOT_PLAIN = re.compile(r"[^\x20-\x7e\n\t]|#(?=#(?i:vso|teamcity)?\[)")


def write_output(text: str) -> None:
    """Write text to standard output; its secrets must be masked already."""
    sys.stdout.write(text)


def write_commands(text: str) -> None:
    """Write CI commands to standard output; the texts in them must be masked and escaped."""
    if isinstance(sys.stdout, SafeStream):
        sys.stdout.write_commands(text)
    else:
        sys.stdout.write(text)


def write_json_output(text: str) -> None:
    """Write JSON to standard output, in ASCII that no terminal or CI server interprets.

    The values are unchanged: anything outside ASCII is in a JSON string, where an escape is
    equivalent.
    """
    plain = _NOT_PLAIN.sub(_json_escape, text)
    if isinstance(sys.stdout, SafeStream):
        sys.stdout.write_masked(plain)
    else:
        sys.stdout.write(plain)


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
