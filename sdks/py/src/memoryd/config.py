"""Settings of a daemon, from its command line and its environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.providers import ConfigError, Providers, providers

_TOKEN = re.compile("[!-~]+")


@dataclass(frozen=True, slots=True)
class Config:
    home: Path
    providers: Providers = field(default_factory=Providers)
    query_prefix: str = ""
    """Put before a query, and not before a chunk, when it is embedded."""
    run_id: str | None = None
    auth_token: str | None = field(default=None, repr=False)
    """Wanted of every request where it is set."""

    @classmethod
    def from_env(
        cls, home: Path, env: Mapping[str, str], auth_token: str | None = None
    ) -> "Config":
        """Raises ConfigError for what this daemon cannot serve.

        `auth_token` is the command line's, which goes before that of `env`.
        """
        token = env.get("JB_AUTH_TOKEN") if auth_token is None else auth_token
        if token is not None and not _TOKEN.fullmatch(token):
            # Not repeated: most of it may be the token that was meant.
            raise ConfigError("the token of --auth-token or JB_AUTH_TOKEN is no visible ASCII")
        return cls(
            home=home,
            providers=providers(env),
            query_prefix=env.get("JB_EMBED_QUERY_PREFIX", ""),
            run_id=env.get("MEMCONFORM_RUN_ID"),
            auth_token=token,
        )
