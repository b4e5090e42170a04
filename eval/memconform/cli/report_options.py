"""Flags of the commands that show stored results."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from memconform.cli.commands import OUTPUT, option
from memconform.cli.options import results, writable

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Which results to show, where."""

    results: tuple[str, ...]
    baseline: tuple[str, ...]
    output: Path
    file: str
    label: str = "memconform"


def stored_results(command: _Command) -> _Command:
    """Add the arguments and flags that name results and the file to write."""
    named = click.argument("results", nargs=-1, required=True, metavar="RESULT...")
    file = option(
        "--output-file",
        "-o",
        "file",
        group=OUTPUT,
        required=True,
        metavar="FILE",
        callback=writable,
        help="The file to write; - is standard output.",
    )
    baseline = option(
        "--baseline",
        group=OUTPUT,
        multiple=True,
        metavar="RESULT",
        help="Earlier results, or a folder of them: what passed there and fails now is a"
        " regression. May be given several times.",
    )
    return named(file(baseline(results(command))))
