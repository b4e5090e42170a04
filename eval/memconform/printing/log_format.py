"""Log lines, formatted by structlog."""

import logging
import os
from functools import cache
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger

from memconform.printing.escaping import printable


def write_line(stream: TextIO | None, level: str, event: str, values: dict[str, object]) -> None:
    """Write a log line to a stream, or by structlog's defaults if there is none."""
    logger = structlog.get_logger() if stream is None else _logger(stream)
    getattr(logger, level)(event, **values)


@cache
def _logger(stream: TextIO) -> FilteringBoundLogger:
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(stream),
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _printable,
            structlog.dev.ConsoleRenderer(colors=_takes_colors(stream)),
        ],
    )
    return logger


def _takes_colors(stream: TextIO) -> bool:
    """Whether the stream is a terminal with colours, and the user wants them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _printable(_: Any, __: str, event: EventDict) -> EventDict:  # noqa: ANN401 - structlog's signature
    """Make the values of a log line printable, before the renderer adds its colours."""
    return {
        printable(key): value
        if value is None or isinstance(value, int | float)
        else printable(str(value))
        for key, value in event.items()
    }
