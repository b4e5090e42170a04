"""Options of the verbs that score stored answers, and their values, typed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from memconform.cli import benchmark_options
from memconform.cli.commands import OUTPUT, option
from memconform.cli.judge_options import JUDGE, PanelFlags
from memconform.cli.options import writable

_Command = TypeVar("_Command", bound=Callable[..., Any])

_ANSWERS = "What to score"


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
    strip_reasoning: bool
    prediction: str | None = None
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

prediction = option(
    "--prediction",
    group=_ANSWERS,
    metavar="NAME",
    help="Score the key NAME_prediction of a file that LoCoMo's own code wrote with several.",
)

errata = benchmark_options.errata(_ANSWERS)

resume = option(
    "--resume",
    group=JUDGE,
    metavar="RUN",
    help="Continue an interrupted scoring: what it judged is not asked again.",
)

prompts = benchmark_options.prompts(
    JUDGE, "Wording of the longmemeval rubric: memconform's, or that of the authors (--script)."
)

script = benchmark_options.script(JUDGE, "evaluate_qa.py", "the prompts")

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
