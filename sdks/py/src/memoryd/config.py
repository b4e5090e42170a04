"""The configuration, from the command line and the environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_TOKEN = re.compile("[!-~]+")

_DEFAULT_TIMEOUT_S = 30.0

_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")
_MAX_TIMEOUT_S = 1_000_000

_OLLAMA_HOST, _OLLAMA_PORT = "127.0.0.1", 11434


class ConfigError(ValueError):
    """A setting has a value that this daemon cannot serve; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A service, and what is needed to call it."""

    name: str = "none"
    model: str | None = None
    url: str | None = None
    """None for the default of the service's client."""
    key: str | None = field(default=None, repr=False)
    host: str = ""
    """The address as the variable has it, on which the name of an embedder depends."""


@dataclass(frozen=True, slots=True)
class Config:
    """A validated configuration: complete for the providers that it names."""

    home: Path
    llm: Provider = field(default_factory=Provider)
    embed: Provider = field(default_factory=Provider)
    rerank: Provider = field(default_factory=Provider)
    upstream_timeout_s: float = _DEFAULT_TIMEOUT_S
    """How long an upstream may be silent."""
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
        """Read the configuration; `auth_token`, of the command line, overrides that of `env`.

        Raises:
            ConfigError: for an unknown provider, a missing model, key or address, or an invalid
                address, timeout or token. Its message never repeats keys, tokens or addresses.
        """
        token = env.get("JB_AUTH_TOKEN") if auth_token is None else auth_token
        if token is not None and not _TOKEN.fullmatch(token):
            # Not repeated: it may be the intended token but for one character.
            raise ConfigError("the token of --auth-token or JB_AUTH_TOKEN must be visible ASCII")
        upstream_timeout_s = seconds(env, "JB_UPSTREAM_TIMEOUT", _DEFAULT_TIMEOUT_S)
        llm, embed, rerank = _Environment(env).providers()
        return cls(
            home=home,
            llm=llm,
            embed=embed,
            rerank=rerank,
            upstream_timeout_s=upstream_timeout_s,
            query_prefix=env.get("JB_EMBED_QUERY_PREFIX", ""),
            run_id=env.get("MEMCONFORM_RUN_ID") or None,
            request_timeout_s=seconds(env, "JB_REQUEST_TIMEOUT", 60.0),
            auth_token=token,
        )


def seconds(env: Mapping[str, str], name: str, default: float) -> float:
    """Read a number of seconds; raises ConfigError if the variable is anything else."""
    value = env.get(name) or str(default)
    # float() also accepts signs, exponents, underscores, white space and other digits.
    number = float(value) if _DECIMAL.fullmatch(value) else 0
    if not 0 < number <= _MAX_TIMEOUT_S:
        raise ConfigError(
            f"{name}={value}: must be a decimal number of seconds, more than 0"
            f" and at most {_MAX_TIMEOUT_S}"
        )
    return number


class _Environment:
    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def providers(self) -> tuple[Provider, Provider, Provider]:
        """The language model, the embedder and the reranker."""
        llm = self._choice("JB_LLM_PROVIDER", "fake", "openai", "anthropic", "ollama")
        embed = self._choice("JB_EMBED_PROVIDER", "fake", "openai", "ollama")
        rerank = self._choice("JB_RERANK_PROVIDER", "http", "llm")
        model = self._service(llm, "JB_LLM_MODEL")
        return model, self._service(embed, "JB_EMBED_MODEL"), self._reranker(rerank, model)

    def _choice(self, name: str, *choices: str) -> str:
        value = self._env.get(name) or "none"
        if value not in ("none", *choices):
            raise ConfigError(f"{name}={value}: must be one of none, {', '.join(choices)}")
        return value

    def _required(self, name: str, needed_by: str) -> str:
        value = self._env.get(name)
        if not value:
            raise ConfigError(f"{name} is not set, but {needed_by} needs it")
        return value

    def _service(self, name: str, model_variable: str) -> Provider:
        if name in ("none", "fake"):
            return Provider(name)
        model = self._required(model_variable, name)
        if name == "ollama":
            host = self._env.get("OLLAMA_HOST") or ""
            given = host or _OLLAMA_HOST
            address = given if "://" in given else f"http://{given}"
            _require_address("OLLAMA_HOST", address)
            parts = urlsplit(address)
            if "://" not in given and parts.port is None:
                address = parts._replace(netloc=f"{parts.netloc}:{_OLLAMA_PORT}").geturl()
            return Provider(name, model, f"{address.rstrip('/')}/v1", host=host)
        key = self._required(f"{name.upper()}_API_KEY", name)
        base = self._env.get(f"{name.upper()}_BASE_URL") or ""
        if base and name == "openai":
            _require_address("OPENAI_BASE_URL", base)
        return Provider(name, model, base or None, key, host=base)

    def _reranker(self, name: str, llm: Provider) -> Provider:
        model = self._env.get("JB_RERANK_MODEL") or None
        if name == "http":
            url = self._required("JB_RERANK_URL", "JB_RERANK_PROVIDER=http")
            _require_address("JB_RERANK_URL", url)
            return Provider(name, model, url, self._env.get("JB_RERANK_API_KEY") or None)
        if name == "llm":
            if llm.name in ("none", "fake"):
                raise ConfigError(
                    f"JB_RERANK_PROVIDER=llm: JB_LLM_PROVIDER={llm.name} is not a language model"
                )
            return Provider(name, model or llm.model)
        return Provider(name)


def _require_address(name: str, address: str) -> None:
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # Not repeated: it may contain a password.
        raise ConfigError(f"{name} must be an http(s) address")
