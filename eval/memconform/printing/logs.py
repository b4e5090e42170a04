"""Log lines on standard error; structlog is imported when the first one is shown.

Most runs log nothing, and importing structlog took an eighth of their start-up time.
"""

import sys
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")


class Logger:
    """Logger with structlog's methods; values are shown after the event."""

    def debug(self, event: str, **values: object) -> None:
        _write("debug", event, values)

    def info(self, event: str, **values: object) -> None:
        _write("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        _write("warning", event, values)


_settings: list[tuple[str, TextIO]] = []
"""Minimum level and stream set by `configure_logs`; empty means structlog's defaults."""


def configure_logs(level: str) -> None:
    """Show lines of this level and above on the current standard error."""
    _settings[:] = [(level, sys.stderr)]


def reset_logs() -> None:
    """Undo `configure_logs`."""
    _settings.clear()


def _write(level: str, event: str, values: dict[str, object]) -> None:
    minimum, stream = _settings[0] if _settings else (LEVELS[0], None)
    if LEVELS.index(level) < LEVELS.index(minimum):
        return

    from memconform.printing import log_format  # noqa: PLC0415 - imports structlog, which few runs need

    log_format.write_line(stream, level, event, values)
