"""Opens judges: names, budget, clients, and the offline upstream where one is fake."""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memconform.daemons.upstream import scripted_upstream
from memconform.errors import UsageError
from memconform.llm.budget_client import open_ledger
from memconform.llm.names import ModelName
from memconform.llm.prices import Prices
from memconform.llm.session import CallPolicy, LlmSession
from memconform.llm.settings import Endpoint, has_key
from memconform.scoring.judge.records import TieRule
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.storage.temporary import temporary_folder

_VARIABLE = "JB_EVAL_JUDGE_MODEL"
_DEFAULTS = (
    # gpt-4o as of the day that its price was read: an alias is no measure.
    ("openai", "gpt-4o-2024-08-06"),
    ("anthropic", "claude-sonnet-4-5-20250929"),
    ("gemini", "gemini-2.5-flash"),
)
"""The judge where none is named, by the first key that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """The judges of a command line, and how they are called."""

    names: tuple[str, ...] = ()
    """As `--judge` gives them; empty takes JB_EVAL_JUDGE_MODEL, or the default of a vendor."""
    repeat: int = 1
    tie: TieRule = "error"
    budget_usd: float | None = None
    prices: Path | None = None
    policy: CallPolicy = field(default_factory=CallPolicy)


def judge_names(given: Sequence[str], env: Mapping[str, str]) -> list[ModelName]:
    """The judges to ask: those given, else JB_EVAL_JUDGE_MODEL, else the default of the vendor
    whose key is set, else the model that JB_LLM_PROVIDER and JB_LLM_MODEL choose for daemons.

    Raises:
        UsageError: `no_judge` where none is named and no vendor's key is set; `judge_twice`;
            `unknown_provider`.
    """
    names = [ModelName.parse(text, env) for text in given]
    if not names and (named := env.get(_VARIABLE, "").strip()):
        names = [ModelName.parse(named, env, source=_VARIABLE)]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"judge {name} was given twice",
                code="judge_twice",
                hint="use --judge-repeat to ask one judge several times",
            )
    if names:
        return names
    for provider, model in _DEFAULTS:
        if has_key(provider, env):
            return [ModelName(provider, model)]
    if (own := ModelName.of_daemons(env)) is not None:
        return [own]
    raise UsageError(
        "judging needs a model, and no API key is set",
        code="no_judge",
        hint="export OPENAI_API_KEY (or ANTHROPIC_API_KEY, GEMINI_API_KEY), or type --judge fake,"
        " or --scorer exact where the command has it",
    )


@asynccontextmanager
async def open_session(
    names: Sequence[ModelName],
    spec: JudgeSpec,
    env: Mapping[str, str],
    *,
    ledger: Path | None = None,
) -> AsyncIterator[LlmSession]:
    """A session for these models; the scripted upstream runs as long, if one of them is fake.

    What is spent is kept in the file `ledger`, so that the budget holds for all commands that name
    it; without one as `Ledger` says.

    Raises:
        UsageError: for a price file or a ledger that cannot be used.
        DaemonError: where the scripted upstream does not start.
    """
    async with AsyncExitStack() as stack:
        fake = None
        if any(name.provider == "fake" for name in names):
            folder = stack.enter_context(temporary_folder("memconform-judge-"))
            # By its id another command's upstream would be taken for a process that this one left.
            run_id = f"judge-{secrets.token_hex(8)}"
            upstream = await stack.enter_async_context(scripted_upstream(folder, run_id))
            fake = Endpoint(f"{upstream.base_url}/v1", "fake", temporary=True)
        session = LlmSession(
            open_ledger(spec.budget_usd, ledger),
            policy=spec.policy,
            prices=Prices.load(spec.prices),
            env=env,
            fake=fake,
        )
        yield await stack.enter_async_context(aclosing(session))


@asynccontextmanager
async def open_judge(spec: JudgeSpec, env: Mapping[str, str]) -> AsyncIterator[JudgeScorer]:
    """The judge scorer of a command line; its clients are closed with the block.

    Raises:
        UsageError: as `judge_names`, and for a model without key or price.
        DaemonError: where the scripted upstream does not start.
    """
    names = judge_names(spec.names, env)
    async with open_session(names, spec, env) as session:
        models = [session.model(name) for name in names]
        yield JudgeScorer(models, repeat=spec.repeat, tie=spec.tie)
