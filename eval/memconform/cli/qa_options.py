"""Options of the verbs that score stored answers, and their values, typed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from memconform.cli.grouping import OUTPUT, option
from memconform.cli.judge_options import JUDGE, PanelFlags
from memconform.cli.options import writable

_Command = TypeVar("_Command", bound=Callable[..., Any])

_ANSWERS = "What to score"

RUBRICS = ("lenient", "longmemeval", "strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class QaOptions(PanelFlags):
    """The command lines of `judge longmemeval` and `judge locomo`. Names are those of the flags."""

    suite: Literal["longmemeval", "locomo"]
    hypotheses: Path
    data: str
    partial: bool
    errata: str | None
    rubric: str | None
    resume: str | None
    output: Path
    json_file: str | None
    quiet: bool
    prompts: Literal["own", "official"] = "own"
    script: Path | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """The command line of `judge metrics`."""

    log: Path
    data: str
    partial: bool
    errata: str | None
    json_file: str | None


hypotheses = option(
    "--hypotheses",
    group=_ANSWERS,
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help='Stored answers, {"question_id": …, "hypothesis": …} a line.',
)

partial = option(
    "--partial",
    group=_ANSWERS,
    is_flag=True,
    help="Count only the questions that the file has. Without it, missing ones are not measured,"
    " and there are bounds instead of a score.",
)

errata = option(
    "--errata",
    group=_ANSWERS,
    metavar="none|NAME|FILE",
    show_default="those that ship, for the public files that they describe",
    help="Questions whose reference answer is disputed: none, the errata that ship (locomo,"
    " longmemeval), or a JSON file. Scores are shown with and without them.",
)

resume = option(
    "--resume",
    group=JUDGE,
    metavar="RUN",
    help="Continue an interrupted scoring: what it judged is not asked again.",
)

prompts = option(
    "--prompts",
    group=JUDGE,
    type=click.Choice(["own", "official"]),
    default="own",
    help="Wording of the longmemeval rubric: memconform's, or that of the authors (--script).",
)

script = option(
    "--script",
    group=JUDGE,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The authors' evaluate_qa.py, from which --prompts official reads the prompts; it is not"
    " executed.",
)

log = option(
    "--log",
    group=OUTPUT,
    metavar="FILE",
    callback=writable,
    help="Also write the labels of the longmemeval rubric to FILE, as evaluate_qa.py does; - is"
    " standard output.",
)


def data(suite: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --data, for the file of a benchmark."""
    return option(
        "--data",
        group=_ANSWERS,
        metavar="PATH|NAME",
        required=True,
        help=f"The questions: {suite}, or the name of a fetched source.",
    )


def rubric(*, unless_given: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --rubric; `unless_given` describes the default."""
    return option(
        "--rubric",
        group=JUDGE,
        metavar="NAMES",
        show_default=unless_given,
        help=f"What counts as right: one or several of {', '.join(RUBRICS)}, separated by commas.",
    )
