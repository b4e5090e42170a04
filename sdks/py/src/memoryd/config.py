"""Settings of a daemon, from its command line and `JB_*` variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.embedding import Embedder, FeatureHash


class ConfigError(ValueError):
    """A variable holds what this daemon cannot serve."""


@dataclass(frozen=True, slots=True)
class Config:
    home: Path
    embedder: Embedder | None
    reader: str | None
    """`fake`, or None where `ask` cannot be served."""
    run_id: str | None

    @classmethod
    def from_env(cls, home: Path, env: Mapping[str, str]) -> "Config":
        """Raises ConfigError for a provider that this daemon does not have."""
        embedder = _choice(env, "JB_EMBED_PROVIDER", ("none", "fake"))
        reader = _choice(env, "JB_LLM_PROVIDER", ("none", "fake"))
        _choice(env, "JB_RERANK_PROVIDER", ("none",))
        return cls(
            home=home,
            embedder=FeatureHash() if embedder == "fake" else None,
            reader=None if reader == "none" else reader,
            run_id=env.get("MEMCONFORM_RUN_ID"),
        )


def _choice(env: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    value = env.get(name) or "none"
    if value not in known:
        raise ConfigError(f"{name}={value}: this daemon knows {', '.join(known)}")
    return value
