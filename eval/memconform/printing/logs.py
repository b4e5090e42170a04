"""Log lines on standard error; structlog is imported by the first one that is shown.

Most runs log nothing, and importing structlog was an eighth of what their start took.
"""

import sys
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")


class Logger:
    """structlog's methods; values are shown behind the event."""

    def debug(self, event: str, **values: object) -> None:
        _write("debug", event, values)

    def info(self, event: str, **values: object) -> None:
        _write("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        _write("warning", event, values)


_settings: list[tuple[str, TextIO]] = []
"""The least level and the stream of `configure_logs`; none before, and structlog's own hold."""


def configure_logs(level: str) -> None:
    """Show lines of this level and above on standard error, which is what it is now."""
    _settings[:] = [(level, sys.stderr)]


def reset_logs() -> None:
    """Undo `configure_logs`."""
    _settings.clear()


def _write(level: str, event: str, values: dict[str, object]) -> None:
    least, stream = _settings[0] if _settings else (LEVELS[0], None)
    if LEVELS.index(level) < LEVELS.index(least):
        return
    from memconform.printing import log_lines  # noqa: PLC0415 - structlog, which few runs need

    log_lines.write_line(stream, level, event, values)
