"""`memconform cache`."""

import re
from datetime import UTC, datetime

import click

from memconform.cli.commands import Group, option
from memconform.errors import ExitCode
from memconform.llm.cache import ReplyCache
from memconform.printing.output import echo

_UNITS = {"h": 3600, "d": 86_400, "w": 604_800}


def _seconds(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """An age as `--older-than` has it, in seconds."""
    del ctx, param
    match = re.fullmatch(r"(\d{1,6})([hdw])", value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not an age: write 12h, 30d or 8w.")
    return int(match[1]) * _UNITS[match[2]]


@click.group(
    "cache",
    cls=Group,
    examples=("memconform cache info", "memconform cache prune --older-than 30d"),
)
def command() -> None:
    """Show, prune and clear the replies of language models that are kept."""


@command.command("info", examples=("memconform cache info",))
def info_command() -> ExitCode:
    """Show where replies are kept, how many, and since when."""
    stats = ReplyCache().stats()
    echo(f"folder: {stats.folder}")
    echo(f"replies: {stats.entries}, {stats.bytes} bytes")
    if stats.oldest is not None:
        echo(f"oldest: {datetime.fromtimestamp(stats.oldest, UTC):%Y-%m-%d %H:%M} UTC")
    return ExitCode.OK


@command.command("clear", examples=("memconform cache clear",))
def clear_command() -> ExitCode:
    """Remove all replies, so that judging the same answers again costs as much again."""
    echo(f"removed {ReplyCache().prune()} replies")
    return ExitCode.OK


@command.command("prune", examples=("memconform cache prune --older-than 30d",))
@option(
    "--older-than",
    group="What to remove",
    callback=_seconds,
    required=True,
    metavar="AGE",
    help="Remove replies older than this: a number with h, d or w for hours, days or weeks.",
)
def prune_command(older_than: int) -> ExitCode:
    """Remove replies that were written long ago."""
    echo(f"removed {ReplyCache().prune(older_than)} replies")
    return ExitCode.OK
