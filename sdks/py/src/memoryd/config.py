"""Settings of a daemon, from its command line and its environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.providers import Providers, providers


@dataclass(frozen=True, slots=True)
class Config:
    home: Path
    providers: Providers = field(default_factory=Providers)
    query_prefix: str = ""
    """Put before a query, and not before a chunk, when it is embedded."""
    run_id: str | None = None

    @classmethod
    def from_env(cls, home: Path, env: Mapping[str, str]) -> "Config":
        """Raises ConfigError for what this daemon cannot serve."""
        return cls(
            home=home,
            providers=providers(env),
            query_prefix=env.get("JB_EMBED_QUERY_PREFIX", ""),
            run_id=env.get("MEMCONFORM_RUN_ID"),
        )
