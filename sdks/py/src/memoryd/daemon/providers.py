"""The reader, embedder and reranker that the environment selects.

A vendor's client is imported only when it is needed: OpenAI's alone takes 0.3 s.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from memoryd.embed.embed import Embedder
from memoryd.embed.featurehash import FeatureHash
from memoryd.embed.openai import RemoteEmbedder
from memoryd.llm.anthropic import AnthropicChat
from memoryd.llm.llm import Chat
from memoryd.llm.openai import OpenAIChat
from memoryd.reader.fake import FakeReader
from memoryd.reader.llm import ModelReader
from memoryd.reader.reader import Reader
from memoryd.rerank.http import HttpReranker
from memoryd.rerank.llm import ModelReranker
from memoryd.rerank.rerank import Reranker
from memoryd.upstream import RETRIES, SilenceTimeout

_DEFAULT_TIMEOUT_S = 30.0

_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")
_MAX_TIMEOUT_S = 1_000_000

_OLLAMA_HOST, _OLLAMA_PORT = "127.0.0.1", 11434


class ConfigError(ValueError):
    """A setting has a value that this daemon cannot serve; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Providers:
    reader: Reader | None = None
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    close_hooks: tuple[Callable[[], Awaitable[None]], ...] = ()
    """Called at shutdown, on the event loop of the server."""


def providers(env: Mapping[str, str]) -> Providers:
    """Create the providers that `env` selects.

    Raises:
        ConfigError: for an unknown provider, a missing model, key or address, or an invalid
            address or timeout. Its message never repeats keys or addresses.
    """
    return _Factory(env).make()


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


class _Factory:
    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._close_hooks: list[Callable[[], Awaitable[None]]] = []

    def make(self) -> Providers:
        self._silence_timeout("every upstream")
        llm = self._choice("JB_LLM_PROVIDER", "fake", "openai", "anthropic", "ollama")
        embed = self._choice("JB_EMBED_PROVIDER", "fake", "openai", "ollama")
        rerank = self._choice("JB_RERANK_PROVIDER", "http", "llm")
        return Providers(
            reader=self._reader(llm),
            embedder=self._embedder(embed),
            reranker=self._reranker(rerank, llm),
            close_hooks=tuple(self._close_hooks),
        )

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

    @staticmethod
    def _require_address(name: str, address: str) -> None:
        try:
            parts = urlsplit(address)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            # Not repeated: it may contain a password.
            raise ConfigError(f"{name} must be an http(s) address")

    def _silence_timeout(self, name: str, secret: str | None = None) -> SilenceTimeout:
        limit = seconds(self._env, "JB_UPSTREAM_TIMEOUT", _DEFAULT_TIMEOUT_S)
        return SilenceTimeout(name, limit, secret)

    def _reader(self, provider: str) -> Reader | None:
        match provider:
            case "none":
                return None
            case "fake":
                return FakeReader()
        return ModelReader(self._chat(provider, self._required("JB_LLM_MODEL", provider)))

    def _embedder(self, provider: str) -> Embedder | None:
        match provider:
            case "none":
                return None
            case "fake":
                return FeatureHash()
        model = self._required("JB_EMBED_MODEL", f"JB_EMBED_PROVIDER={provider}")
        client, silence_timeout = self._openai(provider)
        base = self._env.get("OLLAMA_HOST" if provider == "ollama" else "OPENAI_BASE_URL") or ""
        # A digest, because an address may contain a password, and the name is stored.
        address = hashlib.sha256(base.encode()).hexdigest()[:12]
        return RemoteEmbedder(f"{provider}/{model}@{address}", client, model, silence_timeout)

    def _reranker(self, provider: str, llm: str) -> Reranker | None:
        if provider == "http":
            url = self._required("JB_RERANK_URL", "JB_RERANK_PROVIDER=http")
            self._require_address("JB_RERANK_URL", url)
            key = self._env.get("JB_RERANK_API_KEY") or None
            silence_timeout = self._silence_timeout("the reranker", key)
            # Without a key, the client would send OPENAI_API_KEY from the environment.
            client = self._openai_client(url, key or "none")
            model = self._env.get("JB_RERANK_MODEL") or None
            return HttpReranker(
                client, url, model, silence_timeout, _headers(with_key=key is not None)
            )
        if provider == "llm":
            if llm in ("none", "fake"):
                raise ConfigError(
                    f"JB_RERANK_PROVIDER=llm: JB_LLM_PROVIDER={llm} is not a language model"
                )
            model = self._env.get("JB_RERANK_MODEL") or self._required("JB_LLM_MODEL", llm)
            return ModelReranker(self._chat(llm, model))
        return None

    def _chat(self, provider: str, model: str) -> Chat:
        if provider != "anthropic":
            client, silence_timeout = self._openai(provider)
            return OpenAIChat(client, model, silence_timeout)
        from anthropic import AsyncAnthropic  # noqa: PLC0415 - see the module's docstring

        key = self._required("ANTHROPIC_API_KEY", provider)
        anthropic = AsyncAnthropic(
            api_key=key,
            base_url=self._env.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com",
            max_retries=RETRIES,
        )
        self._close_hooks.append(anthropic.close)
        return AnthropicChat(anthropic, model, self._silence_timeout(provider, key))

    def _openai(self, provider: str) -> tuple[Any, SilenceTimeout]:
        """The client for OpenAI, or for Ollama, which has the same API."""
        if provider == "ollama":
            host = self._env.get("OLLAMA_HOST") or _OLLAMA_HOST
            address = host if "://" in host else f"http://{host}"
            self._require_address("OLLAMA_HOST", address)
            parts = urlsplit(address)
            if "://" not in host and parts.port is None:
                address = parts._replace(netloc=f"{parts.netloc}:{_OLLAMA_PORT}").geturl()
            client = self._openai_client(f"{address.rstrip('/')}/v1", "ollama")
            return client, self._silence_timeout(provider)
        key = self._required("OPENAI_API_KEY", provider)
        if base := self._env.get("OPENAI_BASE_URL"):
            self._require_address("OPENAI_BASE_URL", base)
        client = self._openai_client(self._env.get("OPENAI_BASE_URL") or None, key)
        return client, self._silence_timeout(provider, key)

    def _openai_client(self, base_url: str | None, key: str) -> Any:  # noqa: ANN401 - imported below
        from openai import AsyncOpenAI  # noqa: PLC0415 - see the module's docstring

        client = AsyncOpenAI(
            api_key=key,
            base_url=base_url or "https://api.openai.com/v1",  # not an empty OPENAI_BASE_URL
            max_retries=RETRIES,
        )
        self._close_hooks.append(client.close)
        return client


def _headers(*, with_key: bool) -> dict[str, Any]:
    """Extra headers of a reranker's requests."""
    from openai import Omit  # noqa: PLC0415 - see the module's docstring

    return {} if with_key else {"Authorization": Omit()}
