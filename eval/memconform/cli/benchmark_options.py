"""Options that verbs share which score answers to a benchmark's questions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memconform.cli.commands import option
from memconform.cli.judge_options import JUDGE

_Command = TypeVar("_Command", bound=Callable[..., Any])

RUBRICS = ("lenient", "longmemeval", "strict")


def errata(group: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --errata to a group of flags."""
    return option(
        "--errata",
        group=group,
        metavar="none|NAME|FILE",
        show_default="those that ship, for the public files that they describe",
        help="Questions whose reference answer is disputed: none, the errata that ship (locomo,"
        " longmemeval), or a JSON file. Scores are shown with and without them.",
    )


def prompts(group: str, about: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --prompts; `about` says whose wording there is."""
    return option(
        "--prompts",
        group=group,
        type=click.Choice(["own", "official"]),
        default="own",
        help=about,
    )


def script(group: str, file: str, content: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --script, for the authors' `file`."""
    return option(
        "--script",
        group=group,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"The authors' {file}, from which --prompts official reads {content}; it is not"
        " executed.",
    )


def rubric(*, unless_given: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --rubric for one; `unless_given` describes the default."""
    return option(
        "--rubric",
        group=JUDGE,
        type=click.Choice(RUBRICS),
        show_default=unless_given,
        help="What counts as right.",
    )


def rubrics(*, unless_given: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --rubric for several; `unless_given` describes the default."""
    return option(
        "--rubric",
        group=JUDGE,
        metavar="NAMES",
        show_default=unless_given,
        help=f"What counts as right: one or several of {', '.join(RUBRICS)}, separated by commas.",
    )
