"""Options that several verbs share."""

import asyncio
import json
import logging
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
import structlog
from pydantic import BaseModel

from memconform.cli.streams import drop_output
from memconform.client.recorder import TOKEN_VARIABLE
from memconform.daemons.runner import UpstreamKind
from memconform.errors import ExitCode, UsageError
from memconform.printing.escaping import Lines, printable
from memconform.printing.output import echo, write_json_output, write_output
from memconform.redaction import hide, hide_header
from memconform.runs.plan import DEFAULT_FLOOR, Floor
from memconform.storage.writing import Sink, device, replacing

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

_Command = TypeVar("_Command", bound=Callable[..., Any])

output = click.option(
    "--output", type=click.Path(path_type=Path), default="results", help="Where results go."
)


def sdks(*, required: bool) -> Callable[[_Command], _Command]:
    """The flags that choose SDKs: several, or all that can run here."""

    def decorated(command: _Command) -> _Command:
        no_skip = click.option(
            "--no-skip", is_flag=True, help="Fail where an SDK of `--sdk all` cannot run here."
        )
        sdk = click.option(
            "--sdk",
            multiple=True,
            required=required,
            metavar="SDK",
            help="A known name, a path to sdk.toml, package.module:Class, or"
            " url:http://127.0.0.1:PORT. May be given several times; `all` is every known one that"
            " can run here.",
        )
        return sdk(no_skip(command))

    return decorated


floors = click.option(
    "--floor",
    multiple=True,
    metavar="RATE",
    help="Least pass rate, 0.90 unless given; also tag:NAME=RATE. May be given several times.",
)

upstream = click.option(
    "--upstream",
    type=click.Choice(get_args(UpstreamKind)),
    default="own",
    show_default=True,
    help="What answers the daemon's calls: its own fakes, an upstream of ours, or the real services"
    " that your shell's variables name.",
)

env = click.option(
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable for the daemon, before all others: JB_LLM_PROVIDER=anthropic.",
)

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
            echo(Lines(json.dumps(model.model_json_schema(), indent=2)))
            ctx.exit()

    return click.option(
        "--schema",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help="Print the JSON Schema of --json and exit.",
    )


def _printable(_: Any, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:  # noqa: ANN401 - structlog's signature
    """Values as lines of a log may show them, before the renderer adds its colours."""
    return {
        printable(key): value
        if value is None or isinstance(value, int | float)
        else printable(str(value))
        for key, value in event.items()
    }


def daemon_variables(given: Sequence[str]) -> dict[str, str]:
    """The variables of `--env NAME=VALUE`; raises UsageError for what is none."""
    variables = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not _VARIABLE.fullmatch(name) or "\0" in value:
            raise UsageError(
                f"--env {name} is no variable", code="bad_env", hint="write --env NAME=VALUE"
            )
        variables[name] = value
    return variables


def request_headers(given: Sequence[str]) -> dict[str, str]:
    """The headers of `--header NAME:VALUE` and of MEMCONFORM_AUTH_TOKEN, all kept secret.

    Raises:
        UsageError: for what is no header.
    """
    headers = {}
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token:
        hide(token)
        if not _is_header_value(token):
            raise UsageError(
                f"{TOKEN_VARIABLE} holds what no header can",
                code="bad_header",
                hint="a token is printable ASCII",
            )
        headers["Authorization"] = f"Bearer {token}"
    for text in given:
        name, colon, value = (part.strip() for part in text.partition(":"))
        hide_header(value)
        if not colon or not _HEADER_NAME.fullmatch(name) or not _is_header_value(value):
            raise UsageError(
                f"--header {name} is no header",
                code="bad_header",
                hint="write --header 'Name: value'",
            )
        headers[name] = value
    return headers


def comma_separated(given: Iterable[str]) -> tuple[str, ...]:
    """The parts of `A,B`, of a flag that may also be given several times."""
    return tuple(part for text in given for part in text.split(",") if part)


def run_to_end(work: Coroutine[Any, Any, ExitCode]) -> ExitCode:
    """What `work` returns; one that a signal has cancelled is an interrupted one."""
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def cancel_on_signals() -> None:
    """Let the first Ctrl-C, SIGTERM or hang-up end the run with its results.

    More of them change nothing: a second one would break off the writing of the results. A hang-up
    that is ignored from the start, as under nohup, stays ignored.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    interrupts = [number for number in _INTERRUPTS if not _is_ignored_hang_up(number)]
    on_terminal = sys.stdout.isatty()

    def cancel(received: int, _: object) -> None:
        if received == signal.SIGHUP and on_terminal:
            # The terminal is gone, and would end the run as an output that cannot be written.
            drop_output()
        # Handlers, the loop's own too, are taken back before the process ends: one more would be
        # its death then.
        for number in interrupts:
            signal.signal(number, signal.SIG_IGN)
        if task is not None:
            with suppress(RuntimeError):  # the loop is closed: there is nothing left to end
                loop.call_soon_threadsafe(task.cancel)

    for number in interrupts:
        signal.signal(number, cancel)


def _is_ignored_hang_up(number: signal.Signals) -> bool:
    return number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN


def _is_header_value(value: str) -> bool:
    return value.isascii() and value.isprintable()


def read_floors(given: Sequence[str]) -> tuple[Floor, ...]:
    """The floors of `--floor`; raises UsageError for what is none."""
    read = [Floor.parse(text) for text in given]
    if all(floor.tag is not None for floor in read):
        read.insert(0, DEFAULT_FLOOR)
    return tuple(read)


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
            _printable,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
    )


def json_target(file: str) -> AbstractContextManager[Sink]:
    """Where `--json FILE` writes: `-` is standard output, a file appears whole or not at all."""
    return _target(file, write_json_output)


def text_target(file: str) -> AbstractContextManager[Sink]:
    """The same for text that is not JSON."""
    return _target(file, write_output)


@contextmanager
def _target(file: str, write: Callable[[str], None]) -> Iterator[Sink]:
    if file == "-":
        yield Sink(lambda data: write(data.decode()))
    elif Path(file).exists() and not Path(file).is_file():
        # A device or a pipe is written to; renaming a file over it would replace it.
        with device(Path(file)) as sink:
            yield sink
    else:
        with replacing(Path(file).resolve()) as sink:
            yield sink


def writable(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Refuse a target that cannot be written before anything runs for it."""
    if value is None or value == "-":
        return value
    folder = Path(value).parent
    if not value or not folder.is_dir() or not os.access(folder, os.W_OK) or Path(value).is_dir():
        raise click.BadParameter(f"{value!r} cannot be written")
    return value


json_file = click.option(
    "--json",
    "json_file",
    metavar="FILE",
    callback=writable,
    help="Write it to FILE as JSON too; - is stdout.",
)


class Finite(click.FloatRange):
    """NaN is within every range of click's."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


SECONDS = Finite(min=0, min_open=True)
