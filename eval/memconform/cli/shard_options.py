"""Options of commands whose work is divided; `--help` of others does not import them."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from memconform.cli.commands import option

_Command = TypeVar("_Command", bound=Callable[..., Any])


def executor(group: str) -> Callable[[_Command], _Command]:
    """`--executor` and `--shards`: who does the shards."""
    address = option(
        "--executor",
        group=group,
        metavar="ADDRESS",
        callback=_checked_executor,
        help="Have a Dask cluster do the shards, and join them: dask://HOST:PORT of its scheduler,"
        " or dask:local?workers=N for processes here. The same command with the same --output"
        " continues.",
    )
    count = option(
        "--shards",
        group=group,
        type=click.IntRange(min=1),
        metavar="N",
        show_default="4 a worker of this machine, or 16",
        help="Number of shards, with --executor.",
    )
    return lambda command: address(count(command))


def _checked_executor(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        from memconform.cluster.address import ClusterAddress  # noqa: PLC0415 - few commands need it

        try:
            ClusterAddress.parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return value


def shard(group: str, work: str) -> Callable[[_Command], _Command]:
    """`--shard`: one of several parts, which machines without contact choose alike."""
    return option(
        "--shard",
        group=group,
        metavar="I/N",
        callback=_checked_shard,
        help=f"Only shard I of N, 1/N to N/N, of the {work}; memconform merge joins the results.",
    )


def _checked_shard(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        # Few commands need it.
        from memconform.datasets.sharding import Shard  # noqa: PLC0415 - see above

        try:
            Shard.parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return value
