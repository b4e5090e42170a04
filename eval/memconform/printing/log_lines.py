"""What structlog makes of a log line."""

import logging
from functools import cache
from typing import Any

import structlog
from structlog.typing import EventDict, FilteringBoundLogger

from memconform.printing.escaping import printable
from memconform.printing.logs import LogSettings


def write(settings: LogSettings | None, level: str, event: str, values: dict[str, object]) -> None:
    """Show a line, as structlog does by itself where there are no settings."""
    logger = structlog.get_logger() if settings is None else _logger(settings)
    getattr(logger, level)(event, **values)


@cache
def _logger(settings: LogSettings) -> FilteringBoundLogger:
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(settings.stream),
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[settings.least.upper()]
        ),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _printable,
            structlog.dev.ConsoleRenderer(colors=settings.stream.isatty()),
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
