"""What structlog makes of a log line."""

import logging
from functools import cache
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger

from memconform.printing.escaping import printable


def write_line(stream: TextIO | None, level: str, event: str, values: dict[str, object]) -> None:
    """Show a line on a stream, or as structlog does by itself where there is none."""
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
            structlog.dev.ConsoleRenderer(colors=stream.isatty()),
        ],
    )
    return logger


def _printable(_: Any, __: str, event: EventDict) -> EventDict:  # noqa: ANN401 - structlog's signature
    """Values as lines of a log may show them, before the renderer adds its colours."""
    return {
        printable(key): value
        if value is None or isinstance(value, int | float)
        else printable(str(value))
        for key, value in event.items()
    }
