"""From the judge's flags to a judge that is open, or to what it would cost."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from memconform.cli.judge_options import CallFlags, JudgeFlags, PanelFlags
from memconform.datasets.question import Question
from memconform.errors import UsageError
from memconform.llm.budget import read_budget
from memconform.llm.cache import ReplyCache
from memconform.llm.prices import Prices
from memconform.llm.session import CacheUse, CallPolicy
from memconform.printing.output import echo
from memconform.runs.plan import Floor
from memconform.scoring.judge.forecast import Forecast, forecast_judging
from memconform.scoring.judge.gate import calibrations, require_pinned, require_trusted
from memconform.scoring.judge.session import JudgeSpec, judge_names, open_judge
from memconform.scoring.scorer import OpenScorer


def call_policy(flags: CallFlags) -> CallPolicy:
    """How calls are made.

    Raises:
        UsageError: for flags that contradict each other.
    """
    if flags.cache_only and not flags.cache:
        raise UsageError(
            "--cache-only and --no-cache exclude each other",
            code="cache_flags",
            hint="use one of them",
        )
    use: CacheUse = "only" if flags.cache_only else "use" if flags.cache else "off"
    return CallPolicy(
        concurrency=flags.llm_concurrency,
        deadline_s=flags.llm_timeout,
        cache=use,
        allow_unpriced=flags.allow_unpriced,
    )


def judge_spec(flags: PanelFlags) -> JudgeSpec:
    """The judges that the flags ask for.

    Raises:
        UsageError: `bad_budget` if JB_EVAL_BUDGET_USD is not an amount of dollars.
    """
    return JudgeSpec(
        names=flags.judge,
        repeat=flags.judge_repeat or 1,
        tie=flags.tie or "error",
        budget_usd=read_budget(flags.max_cost_usd, flags.model_env),
        prices=flags.prices,
        policy=call_policy(flags),
    )


@asynccontextmanager
async def open_judge_scorer(
    flags: JudgeFlags, floors: Sequence[Floor], results: Path
) -> AsyncIterator[OpenScorer]:
    """The judge of a command, which may call its service until the block ends; raises as
    `open_scorer`.
    """
    spec = judge_spec(flags)
    gated = any(floor.rate > 0 for floor in floors)
    if gated and not flags.accept_floating_judge:
        require_pinned(judge_names(spec.names, flags.model_env), Prices.load(spec.prices))
    async with open_judge(spec, flags.model_env) as judge:
        known = calibrations(judge.settings, results)
        if gated and not flags.accept_weak_judge:
            require_trusted(known)
        yield OpenScorer(judge, judge.settings, known)


def show_forecast(
    flags: JudgeFlags, answers: Iterable[tuple[Question, str | None]], *, exact: bool
) -> None:
    """Print what judging would take.

    Args:
        flags: which judges, and whether they use the cache.
        answers: each with its question; None where it is not known yet.
        exact: whether the answers are known, so that cached calls can be counted.

    Raises:
        UsageError: as `judge_names`.
    """
    spec = judge_spec(flags)
    prices = Prices.load(spec.prices)
    rows = forecast_judging(
        judge_names(spec.names, flags.model_env),
        prices,
        answers,
        flags.model_env,
        repeat=spec.repeat,
        cache=ReplyCache() if exact and spec.policy.cache != "off" else None,
    )
    show_forecasts(rows, prices.as_of)
    if not exact:
        echo("answers are not known yet: 400 characters are assumed, and no call is cached")


def show_forecasts(rows: Sequence[Forecast], as_of: str) -> None:
    """Print forecasts, a line a model, and their sum."""
    for row in rows:
        cost = "price unknown" if row.cost_usd is None else f"at most ${row.cost_usd:.4f}"
        cost += " (price unverified)" if row.unverified else ""
        echo(
            f"{row.role} {row.model}: {row.calls} calls ({row.cached} cached),"
            f" {row.input_tokens} tokens in, at most {row.output_tokens} out, {cost}"
        )
    known = [row.cost_usd for row in rows if row.cost_usd is not None]
    unknown = "" if len(known) == len(rows) else ", and models without a price"
    echo(
        f"total: at most ${sum(known):.4f}{unknown}, without repairs and retries"
        f" (prices of {as_of}); nothing was asked"
    )
