"""Options that several verbs share."""

import codecs
import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import click
import structlog
from pydantic import BaseModel

from memconform.runs.store import replacing

_Command = TypeVar("_Command", bound=Callable[..., Any])

log_level = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="Least level of log lines on stderr.",
)


def schema(model: type[BaseModel]) -> Callable[[_Command], _Command]:
    """The flag `--schema`, which prints what `--json` keeps to."""

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
        if value:
            click.echo(json.dumps(model.model_json_schema(), indent=2))
            ctx.exit()

    return click.option(
        "--schema",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help="Print the JSON Schema of --json and exit.",
    )


def configure_logs(level: str) -> None:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
    )


@contextmanager
def json_target(file: str) -> Iterator[IO[str] | codecs.StreamWriter]:
    """Where `--json FILE` writes: `-` is standard output, a file appears whole or not at all."""
    if file == "-":
        yield sys.stdout
        return
    with replacing(Path(file)) as raw:
        yield codecs.getwriter("utf-8")(raw)
