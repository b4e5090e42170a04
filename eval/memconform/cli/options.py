"""Options that several verbs share. What their values come to is elsewhere: `--help` needs none."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar, get_args

import click

from memconform.daemons.kinds import UpstreamKind
from memconform.printing.escaping import Lines
from memconform.printing.logs import LEVELS
from memconform.printing.output import echo

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
    type=click.Choice(LEVELS),
    default="warning",
    show_default=True,
    help="Least level of log lines on stderr.",
)


def schema(model: str) -> Callable[[_Command], _Command]:
    """The flag `--schema`, which prints what `--json` keeps to: a model, as `module:Model`."""

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
        if value:
            found = resolve_name(f"memconform.{model}").model_json_schema()
            echo(Lines(json.dumps(found, indent=2)))
            ctx.exit()

    return click.option(
        "--schema",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help="Print the JSON Schema of --json and exit.",
    )


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
