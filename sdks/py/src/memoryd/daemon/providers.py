"""The reader, embedder and reranker that the configuration selects.

A vendor's client is imported only when it is needed: OpenAI's alone takes 0.3 s.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from memoryd.config import Config, Provider
from memoryd.embed.embed import Embedder
from memoryd.embed.featurehash import FeatureHash
from memoryd.embed.openai import OpenAIEmbedder
from memoryd.llm.anthropic import AnthropicChat
from memoryd.llm.llm import ChatModel
from memoryd.llm.openai import OpenAIChat
from memoryd.reader.fake import FakeReader
from memoryd.reader.llm import LLMReader
from memoryd.reader.reader import Reader
from memoryd.rerank.http import HttpReranker
from memoryd.rerank.llm import LLMReranker
from memoryd.rerank.rerank import Reranker
from memoryd.upstream import RETRIES, SilenceTimeout


@dataclass(frozen=True, slots=True)
class Providers:
    reader: Reader | None = None
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    close_hooks: tuple[Callable[[], Awaitable[None]], ...] = ()
    """Called at shutdown, on the event loop of the server."""


def create_providers(config: Config) -> Providers:
    return _Factory(config).make()


class _Factory:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._close_hooks: list[Callable[[], Awaitable[None]]] = []

    def make(self) -> Providers:
        return Providers(
            reader=self._reader(self._config.llm),
            embedder=self._embedder(self._config.embed),
            reranker=self._reranker(self._config.rerank),
            close_hooks=tuple(self._close_hooks),
        )

    def _silence_timeout(self, name: str, secret: str | None = None) -> SilenceTimeout:
        return SilenceTimeout(name, self._config.upstream_timeout_s, secret)

    def _reader(self, llm: Provider) -> Reader | None:
        match llm.name:
            case "none":
                return None
            case "fake":
                return FakeReader()
        return LLMReader(self._chat(llm, llm.model or ""))

    def _embedder(self, provider: Provider) -> Embedder | None:
        match provider.name:
            case "none":
                return None
            case "fake":
                return FeatureHash()
        model = provider.model or ""
        client, silence_timeout = self._openai(provider)
        # A digest, because an address may contain a password, and the name is stored.
        address = hashlib.sha256(provider.host.encode()).hexdigest()[:12]
        return OpenAIEmbedder(f"{provider.name}/{model}@{address}", client, model, silence_timeout)

    def _reranker(self, provider: Provider) -> Reranker | None:
        match provider.name:
            case "none":
                return None
            case "llm":
                return LLMReranker(self._chat(self._config.llm, provider.model or ""))
        url, key = provider.url or "", provider.key
        silence_timeout = self._silence_timeout("the reranker", key)
        # Without a key, the client would send OPENAI_API_KEY from the environment.
        client = self._openai_client(url, key or "none")
        from openai import Omit  # noqa: PLC0415 - see the module's docstring

        headers = {} if key is not None else {"Authorization": Omit()}
        return HttpReranker(client, url, provider.model, silence_timeout, headers)

    def _chat(self, llm: Provider, model: str) -> ChatModel:
        if llm.name != "anthropic":
            client, silence_timeout = self._openai(llm)
            return OpenAIChat(client, model, silence_timeout)
        from anthropic import AsyncAnthropic  # noqa: PLC0415 - see the module's docstring

        anthropic = AsyncAnthropic(
            api_key=llm.key,
            base_url=llm.url or "https://api.anthropic.com",
            max_retries=RETRIES,
        )
        self._close_hooks.append(anthropic.close)
        return AnthropicChat(anthropic, model, self._silence_timeout(llm.name, llm.key))

    def _openai(self, provider: Provider) -> tuple[Any, SilenceTimeout]:
        """The client for OpenAI, or for Ollama, which has the same API and ignores the key."""
        client = self._openai_client(provider.url, provider.key or "ollama")
        return client, self._silence_timeout(provider.name, provider.key)

    def _openai_client(self, base_url: str | None, key: str) -> Any:  # noqa: ANN401 - imported below
        from openai import AsyncOpenAI  # noqa: PLC0415 - see the module's docstring

        client = AsyncOpenAI(
            api_key=key,
            base_url=base_url or "https://api.openai.com/v1",  # not an empty OPENAI_BASE_URL
            max_retries=RETRIES,
        )
        self._close_hooks.append(client.close)
        return client
