"""Options of `memconform lme run` and `lme tri` that say who reads and judges, and how long."""

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from memconform.cli import options as given
from memconform.cli.commands import FOLDER, option
from memconform.cli.judge_options import call_options, panel_options
from memconform.cli.lme.values import Duration

_MODELS = "Models"


def model_options() -> tuple[Callable[[Any], Any], ...]:
    """The decorators, in the order of the help."""
    return (
        given.reader(
            _MODELS,
            "Model that answers; with JB_LLM_PROVIDER=fake every model is the scripted one.",
            aliases=("--actor",),
            show_default="JB_LME_ACTOR_MODEL, or gpt-4o",
        ),
        option(
            "--no-reader",
            group=_MODELS,
            is_flag=True,
            help="Answer nothing: what was retrieved goes to the judge.",
        ),
        option(
            "--max-iterations",
            group=_MODELS,
            type=click.IntRange(0, 100),
            default=0,
            metavar="N",
            show_default="8",
            help="Replies of the agent to one question, its answer included.",
        ),
        option(
            "--question-timeout",
            group=_MODELS,
            type=Duration(),
            default=0.0,
            metavar="DURATION",
            show_default="90s",
            help="Time after which the agent may search no more, and must answer.",
        ),
        option(
            "--judge-timeout",
            group=_MODELS,
            type=Duration(),
            default=0.0,
            metavar="DURATION",
            show_default="--llm-timeout",
            help="Time allowed for a call of the judge with its retries; a question whose judge"
            " took longer is not measured.",
        ),
        option(
            "--reader-cache-dir",
            group=_MODELS,
            type=FOLDER,
            metavar="DIR",
            show_default="the cache of replies",
            help="Folder for the reader's replies.",
        ),
        option(
            "--judge-cache-dir",
            group=_MODELS,
            type=FOLDER,
            metavar="DIR",
            show_default="the cache of replies",
            help="Folder for the judges' replies.",
        ),
        option(
            "--context-tokens",
            group=_MODELS,
            type=click.IntRange(8_192, 1_000_000_000),
            metavar="N",
            show_default="the model's, from the table of prices",
            help="Context window of the reader, at four bytes a token.",
        ),
        option(
            "--concurrency",
            group=_MODELS,
            type=click.IntRange(1, 64),
            default=8,
            metavar="N",
            help="Questions that are read and judged at once. Daemons are asked one question at a"
            " time.",
        ),
        partial(call_options, group=_MODELS, budget="JB_EVAL_BUDGET_USD, or 20", forecasts=False),
        partial(panel_options, judge="JB_LME_JUDGE_MODEL, or claude-haiku-4-5"),
    )
