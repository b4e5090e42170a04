"""Flags that the verbs share which run cases: `conform` and `client`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from memconform.cli.commands import OUTPUT, PathType, option
from memconform.cli.options import (
    html,
    json_file,
    log_level,
    markdown,
    output,
    quiet,
    schema,
    writable,
)
from memconform.cli.shard_options import shard

_Command = TypeVar("_Command", bound=Callable[..., Any])

CASES_GROUP = "Which cases"
LIMITS = "Limits"


@dataclass(frozen=True, slots=True)
class CaseRunOptions:
    """Flags of a verb that runs cases, under their own names."""

    sdk: tuple[str, ...]
    case: tuple[str, ...]
    shard: str | None
    known: tuple[Path, ...]
    write_known: str | None
    junit: str | None
    json_file: str | None
    html: bool
    markdown: str | None
    trace: bool
    stop_at_first: bool
    output: Path
    verbose: bool
    quiet: bool
    log_level: str


def _new_file(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Reject a target that exists: it may be a list with reasons that somebody wrote."""
    if value is not None and (value == "-" or Path(value).exists()):
        raise click.BadParameter(f"{value!r} exists already; name a new file")
    return writable(ctx, param, value)


def _together(*flags: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """A decorator that adds flags, which `--help` shows in this order."""
    return lambda command: reduce(lambda made, flag: flag(made), reversed(flags), command)


selection_flags = _together(
    option(
        "--case",
        group=CASES_GROUP,
        multiple=True,
        metavar="GLOB",
        help="Run only cases whose id matches GLOB, in which * and ? stand for others. A check id"
        " (case#slot) selects its whole case. May be given several times.",
    ),
    shard(CASES_GROUP, "cases"),
)
"""`--case` and `--shard`."""

report_flags = _together(
    option(
        "--known",
        group=CASES_GROUP,
        multiple=True,
        type=PathType(),
        metavar="FILE",
        help="List of checks and causes that are known to fail, in addition to those of each"
        " sdk.toml; docs/CONFORMANCE.md has the format. May be given several times.",
    ),
    option(
        "-x",
        "stop_at_first",
        group=LIMITS,
        is_flag=True,
        help="Start no further case after the first failing check.",
    ),
    output,
    option(
        "--trace",
        group=OUTPUT,
        is_flag=True,
        help="Save the exchanges of every case, not only of failing ones.",
    ),
    option(
        "-v",
        "--verbose",
        group=OUTPUT,
        is_flag=True,
        help="Show every check, including those that pass, instead of a list of causes.",
    ),
    option(
        "--write-known",
        group=OUTPUT,
        callback=_new_file,
        metavar="FILE",
        help="Write the causes of all failures that no list covers yet to a new FILE, as a list"
        " for --known.",
    ),
    json_file,
    html,
    schema("conformance.results:ConformReport"),
    option(
        "--junit",
        group=OUTPUT,
        callback=writable,
        metavar="FILE",
        help="Also write the report to FILE as JUnit XML; - is standard output.",
    ),
    markdown,
    quiet,
    log_level,
)
"""What is known to fail, and where results go."""
