"""Settings, from the command line and the environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.daemon.providers import ConfigError, Providers, providers, seconds

_TOKEN = re.compile("[!-~]+")


@dataclass(frozen=True, slots=True)
class Config:
    home: Path
    providers: Providers = field(default_factory=Providers)
    query_prefix: str = ""
    """Prepended to queries, but not to chunks, before they are embedded."""
    run_id: str | None = None
    request_timeout_s: float = 60.0
    """How long a request may take to arrive completely."""
    auth_token: str | None = field(default=None, repr=False)
    """The bearer token that requests must send; None if the daemon is open to all."""

    @classmethod
    def from_env(
        cls, home: Path, env: Mapping[str, str], auth_token: str | None = None
    ) -> "Config":
        """Read the settings; `auth_token`, of the command line, overrides that of `env`.

        Raises:
            ConfigError: for a setting that this daemon cannot serve.
        """
        token = env.get("JB_AUTH_TOKEN") if auth_token is None else auth_token
        if token is not None and not _TOKEN.fullmatch(token):
            # Not repeated: it may be the intended token but for one character.
            raise ConfigError("the token of --auth-token or JB_AUTH_TOKEN must be visible ASCII")
        return cls(
            home=home,
            providers=providers(env),
            query_prefix=env.get("JB_EMBED_QUERY_PREFIX", ""),
            run_id=env.get("MEMCONFORM_RUN_ID") or None,
            request_timeout_s=seconds(env, "JB_REQUEST_TIMEOUT", 60.0),
            auth_token=token,
        )
