"""Which reader, embedder and reranker a daemon has, by its environment.

A vendor's client is imported only where it is asked for: OpenAI's alone takes 0.3 s.
"""

import hashlib
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from memoryd.chat import AnthropicChat, Chat, OpenAIChat
from memoryd.embedding import Embedder, FeatureHash, RemoteEmbedder
from memoryd.reader import FakeReader, ModelReader, Reader
from memoryd.reranking import HttpReranker, ModelReranker, Reranker
from memoryd.upstream import RETRIES, SilenceTimeout

_DEFAULT_TIMEOUT_S = 30.0
_OLLAMA = "127.0.0.1:11434"


class ConfigError(ValueError):
    """A variable holds what this daemon cannot serve."""


@dataclass(frozen=True, slots=True)
class Providers:
    reader: Reader | None = None
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    """Called at the end, on the event loop that served."""


def providers(env: Mapping[str, str]) -> Providers:
    """Raises ConfigError for an unknown provider, or one without what it needs."""
    return _Factory(env).make()


class _Factory:
    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._closing: list[Callable[[], Awaitable[None]]] = []

    def make(self) -> Providers:
        self._silence_timeout("every upstream")
        llm = self._choice("JB_LLM_PROVIDER", "fake", "openai", "anthropic", "ollama")
        embed = self._choice("JB_EMBED_PROVIDER", "fake", "openai", "ollama")
        rerank = self._choice("JB_RERANK_PROVIDER", "http", "llm")
        return Providers(
            reader=self._reader(llm),
            embedder=self._embedder(embed),
            reranker=self._reranker(rerank, llm),
            closing=tuple(self._closing),
        )

    def _choice(self, name: str, *known: str) -> str:
        value = self._env.get(name) or "none"
        if value not in ("none", *known):
            raise ConfigError(f"{name}={value}: this daemon knows none, {', '.join(known)}")
        return value

    def _required(self, name: str, needed_by: str) -> str:
        value = self._env.get(name)
        if not value:
            raise ConfigError(f"{name} is not set, and {needed_by} needs it")
        return value

    @staticmethod
    def _refuse_no_address(name: str, address: str) -> None:
        try:
            parts = urlsplit(address)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            # Not repeated: it may hold a password.
            raise ConfigError(f"{name} is no http address")

    def _silence_timeout(self, name: str, secret: str | None = None) -> SilenceTimeout:
        given = self._env.get("JB_UPSTREAM_TIMEOUT") or str(_DEFAULT_TIMEOUT_S)
        try:
            seconds = float(given)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            raise ConfigError(f"JB_UPSTREAM_TIMEOUT={given}: a number of seconds is wanted")
        return SilenceTimeout(name, seconds, secret)

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
        where = self._env.get("OLLAMA_HOST" if provider == "ollama" else "OPENAI_BASE_URL") or ""
        # A digest, for an address may hold a password, and the name is stored.
        address = hashlib.sha256(where.encode()).hexdigest()[:12]
        return RemoteEmbedder(f"{provider}/{model}@{address}", client, model, silence_timeout)

    def _reranker(self, provider: str, llm: str) -> Reranker | None:
        if provider == "http":
            url = self._required("JB_RERANK_URL", "JB_RERANK_PROVIDER=http")
            self._refuse_no_address("JB_RERANK_URL", url)
            key = self._env.get("JB_RERANK_API_KEY") or None
            silence_timeout = self._silence_timeout("the reranker", key)
            # Left out, the client would send the key that it finds in the environment.
            client = self._openai_client(url, key or "none")
            model = self._env.get("JB_RERANK_MODEL") or None
            return HttpReranker(
                client, url, model, silence_timeout, _headers(with_key=key is not None)
            )
        if provider == "llm":
            if llm in ("none", "fake"):
                raise ConfigError(f"JB_RERANK_PROVIDER=llm: JB_LLM_PROVIDER={llm} is no model")
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
            base_url=self._env.get("ANTHROPIC_BASE_URL") or None,
            max_retries=RETRIES,
        )
        self._closing.append(anthropic.close)
        return AnthropicChat(anthropic, model, self._silence_timeout(provider, key))

    def _openai(self, provider: str) -> tuple[Any, SilenceTimeout]:
        """The client of `openai`, or of Ollama's address that speaks the same."""
        if provider == "ollama":
            host = self._env.get("OLLAMA_HOST") or _OLLAMA
            address = host if "://" in host else f"http://{host}"
            self._refuse_no_address("OLLAMA_HOST", address)
            client = self._openai_client(f"{address.rstrip('/')}/v1", "ollama")
            return client, self._silence_timeout(provider)
        key = self._required("OPENAI_API_KEY", provider)
        if base := self._env.get("OPENAI_BASE_URL"):
            self._refuse_no_address("OPENAI_BASE_URL", base)
        client = self._openai_client(self._env.get("OPENAI_BASE_URL") or None, key)
        return client, self._silence_timeout(provider, key)

    def _openai_client(self, base_url: str | None, key: str) -> Any:  # noqa: ANN401 - imported below
        from openai import AsyncOpenAI  # noqa: PLC0415 - see the module's docstring

        client = AsyncOpenAI(
            api_key=key,
            base_url=base_url,
            max_retries=RETRIES,
        )
        self._closing.append(client.close)
        return client


def _headers(*, with_key: bool) -> dict[str, Any]:
    """What a reranker's requests are sent with, beside what the client sends."""
    from openai import Omit  # noqa: PLC0415 - see the module's docstring

    return {} if with_key else {"Authorization": Omit()}
