"""Options of the verbs that judge answers, and their values, typed."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from memconform.cli.commands import REFERENCE, SCORING, PathType, option
from memconform.cli.options import SECONDS, Finite

JUDGE = "The judge"
WHAT = "What to score"
ANSWERS = "A file of answers"

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFlags:
    """How language models are called, and what they may cost. Names are those of the flags."""

    max_cost_usd: float | None
    prices: Path | None
    allow_unpriced: bool
    cache: bool
    cache_only: bool
    llm_concurrency: int
    llm_timeout: float
    dry_run: bool
    judge_header: tuple[str, ...]

    @property
    def model_env(self) -> Mapping[str, str]:
        """The environment that the settings of model services are read from."""
        from memconform.llm.settings import model_environment  # noqa: PLC0415 - of judges alone

        return model_environment(self.judge_header, os.environ)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelFlags(CallFlags):
    """Which judges decide."""

    judge: tuple[str, ...]
    judge_repeat: int | None
    tie: Literal["error", "correct", "incorrect"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFlags(PanelFlags):
    """Which judges decide, and when they may."""

    accept_weak_judge: bool
    accept_floating_judge: bool


def _apply(command: _Command, *decorators: Callable[[_Command], _Command]) -> _Command:
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def _hide_headers(
    _: click.Context, __: click.Parameter, headers: tuple[str, ...]
) -> tuple[str, ...]:
    """Check headers, and mask them, whether or not the command asks a model.

    A result holds the command line, which had the header in plain if no judge was opened.
    """
    if headers:
        from memconform.llm.settings import model_environment  # noqa: PLC0415 - of judges alone

        model_environment(headers, {})
    return headers


def judge_header(group: str) -> Callable[[_Command], _Command]:
    """The flag --judge-header, below a heading of the help."""
    return option(
        "--judge-header",
        group=group,
        multiple=True,
        metavar="NAME:VALUE",
        show_default="MEMCONFORM_JUDGE_HEADERS",
        callback=_hide_headers,
        help="Send this header with every call to a model service, whatever the model does; its"
        " value is masked in output, if it is short only after its name (see"
        " docs/RESULTS.md#secrets). May be given several times.",
    )


def call_options(
    command: _Command,
    *,
    group: str = JUDGE,
    budget: str = "JB_EVAL_BUDGET_USD, or no limit",
    forecasts: bool = True,
) -> _Command:
    """The flags that limit what calls to language models cost, below a heading of the help.

    `budget` describes the default of --max-cost-usd; --dry-run is for commands that forecast.
    """
    dry_run = option(
        "--dry-run",
        group=group,
        is_flag=True,
        help="Print the estimated calls, tokens and cost, and exit.",
    )
    return _apply(
        command,
        option(
            "--max-cost-usd",
            group=group,
            type=Finite(min=0, max=1_000_000),
            metavar="USD",
            show_default=budget,
            help="Stop before a call that could exceed this many dollars. What was paid for is"
            " kept.",
        ),
        option(
            "--prices",
            group=group,
            type=PathType(),
            metavar="FILE",
            show_default="MEMCONFORM_PRICES",
            help="TOML file of prices; its models take precedence over the shipped ones.",
        ),
        option(
            "--allow-unpriced",
            group=group,
            is_flag=True,
            help="Call models whose price is unknown; they count as free.",
        ),
        option(
            "--cache/--no-cache",
            group=group,
            default=True,
            help="Use replies that were paid for before. With --no-cache every call is made.",
        ),
        option(
            "--cache-only",
            group=group,
            is_flag=True,
            help="Make no call: anything that is not cached is an error.",
        ),
        option(
            "--llm-concurrency",
            group=group,
            type=click.IntRange(1, 64),
            default=16,
            metavar="N",
            help="Calls in flight to one provider; fewer while it answers 429.",
        ),
        option(
            "--llm-timeout",
            group=group,
            type=SECONDS,
            default=120.0,
            metavar="SECONDS",
            help="Time allowed for a call with its retries.",
        ),
        judge_header(group),
        *([dry_run] if forecasts else []),
    )


_OF_RUN = ", or {} of the run that is scored again"


_DEFAULT_JUDGE = "JB_EVAL_JUDGE_MODEL, or gpt-4o"


def panel_options(command: _Command, *, judge: str = _DEFAULT_JUDGE) -> _Command:
    """The flags that choose judges; `judge` describes the default of --judge."""
    return _panel_options(command, "1", "error", judge)


def _panel_options(
    command: _Command, repeat: str, tie: str, judge: str = _DEFAULT_JUDGE
) -> _Command:
    """The flags that choose judges, with the defaults that their help shows."""
    return _apply(
        command,
        option(
            "--judge",
            group=JUDGE,
            multiple=True,
            metavar="MODEL",
            show_default=judge,
            help="Model that judges answers: provider:model (openai, anthropic, gemini, ollama),"
            " gpt-… or claude-…, or `fake`, which compares words offline. May be given several"
            " times: the majority decides.",
        ),
        option(
            "--judge-repeat",
            group=JUDGE,
            type=click.IntRange(1, 20),
            metavar="N",
            show_default=repeat,
            help="Ask each judge N times about an answer, and report contradictions.",
        ),
        option(
            "--tie",
            group=JUDGE,
            type=click.Choice(["error", "correct", "incorrect"]),
            show_default=tie,
            help="What an even split of several judges means.",
        ),
    )


def judge_options(
    command: _Command, *, group: str = SCORING, judge: str = _DEFAULT_JUDGE
) -> _Command:
    """The flags that choose judges, and allow them to decide over a floor."""
    repeat, tie = "1" + _OF_RUN.format("those"), "error" + _OF_RUN.format("that")
    return _apply(
        command,
        lambda command: _panel_options(command, repeat, tie, judge),
        option(
            "--accept-weak-judge",
            group=group,
            is_flag=True,
            help="Allow a floor with a judge whose calibration found that it accepts more than 5 %"
            " of wrong answers.",
        ),
        option(
            "--accept-floating-judge",
            group=group,
            is_flag=True,
            help="Allow a floor with a model name that its vendor may point to another model.",
        ),
    )


errata = option(
    "--errata",
    group=WHAT,
    type=REFERENCE,
    metavar="none|NAME|FILE",
    show_default="those that ship, for the public files that they describe",
    help="Of benchmarks, questions whose reference answer is disputed: none, the errata that ship"
    " (locomo, longmemeval, wmb), or a JSON file. Scores are shown with and without them.",
)
partial = option(
    "--partial",
    group=ANSWERS,
    is_flag=True,
    help="Count only the questions that the file has. Without it, missing ones are not measured,"
    " and there are bounds instead of a score.",
)
