"""The models of a replay: extractor, reader and judges."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memconform.cli.judge_session import call_policy
from memconform.cli.lme.options import LmeOptions
from memconform.errors import UsageError
from memconform.llm.budget import read_budget
from memconform.llm.budget_client import open_cache
from memconform.llm.cache import ReplyCache
from memconform.llm.names import ModelName
from memconform.llm.session import LlmSession, Model
from memconform.llm.settings import address, endpoint
from memconform.scoring.judge.session import judge_names

_BUDGET_USD = 20.0
_JUDGE = "claude-haiku-4-5"
_ACTOR = "gpt-4o"


@dataclass(frozen=True, slots=True)
class ReplayModels:
    """Who extracts, reads and judges, and what all of them may cost."""

    extractor: ModelName
    extractor_address: str
    """Digest of the service's address; empty for the vendor's own."""
    reader: ModelName
    judges: tuple[ModelName, ...]
    """None for exact scoring."""
    budget_usd: float
    options: LmeOptions
    """Which replies are kept where, and how long a judge may take."""

    def needed(self, *, extracts: bool) -> list[ModelName]:
        """The models that may be called."""
        reader = [] if self.options.no_reader else [self.reader]
        return [*([self.extractor] if extracts else []), *reader, *self.judges]

    def require_settings(self, *, reads: bool) -> None:
        """Raise UsageError for a reader or judge whose service the environment does not set."""
        for name in [*([self.reader] if reads else []), *self.judges]:
            if name.provider != "fake":
                endpoint(name, self.options.model_env)

    def open_reader(self, session: LlmSession) -> Model:
        """The reader, with its own cache of replies if it has one; raises as `session.model`."""
        return session.model(self.reader, cache=_cache(self.options.reader_cache_dir))

    def open_judges(self, session: LlmSession) -> list[Model]:
        """The judges, likewise."""
        cache = _cache(self.options.judge_cache_dir)
        timeout = self.options.judge_timeout or None
        return [session.model(name, cache=cache, deadline_s=timeout) for name in self.judges]


def replay_models(options: LmeOptions) -> ReplayModels:
    """The models that the flags and the environment name.

    With JB_LLM_PROVIDER=fake all are the scripted upstream, whatever their names.

    Raises:
        UsageError: for names without a provider, or flags that exclude each other.
    """
    call_policy(options)
    if not options.cache:
        raise UsageError(
            "with --no-cache, a continued replay would pay for every call again",
            code="cache_flags",
            hint="omit it: equal calls are made once, and a failed one is not cached",
        )
    env = options.model_env
    extractor = _model(options.extract_model, env)
    where = address(extractor, env)
    budget = read_budget(options.max_cost_usd, env)
    return ReplayModels(
        extractor=extractor,
        extractor_address=hashlib.sha256(where.encode()).hexdigest()[:12] if where else "",
        reader=_model(options.reader or env.get("JB_LME_ACTOR_MODEL") or _ACTOR, env),
        judges=_judges(options, env),
        budget_usd=_BUDGET_USD if budget is None else budget,
        options=options,
    )


def _cache(folder: Path | None) -> ReplyCache | None:
    return None if folder is None else open_cache(folder)


def _judges(options: LmeOptions, env: Mapping[str, str]) -> tuple[ModelName, ...]:
    given = options.judge or (env.get("JB_LME_JUDGE_MODEL", _JUDGE),)
    if given == ("",):
        return ()
    if _is_fake(env):
        given = tuple(dict.fromkeys("fake" for _ in given))
    return tuple(judge_names(given, env))


def _model(text: str, env: Mapping[str, str]) -> ModelName:
    return ModelName.parse("fake" if _is_fake(env) else text, env)


def _is_fake(env: Mapping[str, str]) -> bool:
    return env.get("JB_LLM_PROVIDER") == "fake"
