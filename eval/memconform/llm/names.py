"""Names of models, and which service and address a name stands for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from memconform.errors import UsageError
from memconform.redaction import hide, hide_credentials

PROVIDERS = ("openai", "anthropic", "gemini", "ollama", "fake")

_VENDOR_BY_NAME = (
    (re.compile(r"(?:gpt-|chatgpt-|o\d)"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "gemini"),
)
_KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
_ADDRESSES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"
_OLLAMA = "127.0.0.1:11434"
FAKE_MODEL = "lexical-2"
"""What the scripted upstream judges by; numbered, because replies are cached by this name."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A provider and its model, written `provider:model`."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"

    @classmethod
    def of_daemons(cls, env: Mapping[str, str]) -> "ModelName | None":
        """The model that JB_LLM_PROVIDER and JB_LLM_MODEL choose; None unless both name one."""
        provider, model = env.get("JB_LLM_PROVIDER", ""), env.get("JB_LLM_MODEL", "")
        return cls(provider, model) if provider in PROVIDERS and model else None

    @classmethod
    def parse(cls, text: str, env: Mapping[str, str]) -> "ModelName":
        """Read `provider:model`, or a model whose vendor its name or JB_LLM_PROVIDER gives.

        Raises:
            UsageError: `unknown_provider`, if neither does.
        """
        head, colon, rest = text.partition(":")
        if text == "fake":
            return cls("fake", FAKE_MODEL)
        if colon and head in PROVIDERS and rest:
            return cls(head, rest)
        for pattern, provider in _VENDOR_BY_NAME:
            if pattern.match(text):
                return cls(provider, text)
        provider = env.get("JB_LLM_PROVIDER", "")
        if text and provider in PROVIDERS:
            return cls(provider, text)
        raise UsageError(
            f"the provider of model {text!r} is unknown",
            code="unknown_provider",
            hint=f"write provider:{text or 'model'}, with one of {', '.join(PROVIDERS)}; vLLM and"
            " other compatible servers are openai, with OPENAI_BASE_URL",
        )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is served, and how a call is authorized."""

    base_url: str | None
    """None is the vendor's own address."""
    api_key: str = field(repr=False)
    temporary: bool = False
    """Whether a command serves it for itself, on another port each time."""

    @property
    def stable_address(self) -> str | None:
        """What caches and results know the service by; None where its name is enough."""
        return None if self.temporary else self.base_url


def has_key(provider: str, env: Mapping[str, str]) -> bool:
    """Whether the environment holds a provider's key."""
    return bool(env.get(_KEYS.get(provider, "")))


def address(name: ModelName, env: Mapping[str, str]) -> str | None:
    """Where a model is served, by the vendors' own variables; None is the vendor's own address.

    Raises:
        UsageError: `bad_service_address` for a variable that holds no http address.
    """
    match name.provider:
        case "ollama":
            host = env.get("OLLAMA_HOST") or _OLLAMA
            checked = _http(host if "://" in host else f"http://{host}", "OLLAMA_HOST")
            return f"{checked.rstrip('/')}/v1"
        case "gemini":
            return _GEMINI
        case "fake":
            return None
    variable = _ADDRESSES[name.provider]
    given = env.get(variable)
    return _http(given, variable) if given else None


def endpoint(name: ModelName, env: Mapping[str, str]) -> Endpoint:
    """The address and key of a model, by the vendors' own variables; the key is hidden from output.

    Raises:
        UsageError: `no_api_key` without the vendor's key, `bad_api_key` for one that cannot be
            sent, `bad_service_address` for a variable that holds no http address.
    """
    where = address(name, env)
    if name.provider == "ollama":
        return Endpoint(where, "ollama")
    variable = _KEYS[name.provider]
    key = env.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(
            f"{variable} holds characters that no API key has",
            code="bad_api_key",
            hint=f"export {variable} again, in one line",
        )
    if not key:
        raise UsageError(
            f"{name} needs {variable}, which is not set",
            code="no_api_key",
            hint=f"export {variable}=…, or give `fake` in place of this model, as in --judge fake",
        )
    hide(key)
    return Endpoint(where, key)


def _http(given: str, variable: str) -> str:
    try:
        parts = urlsplit(given)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # Not repeated: it may hold a password.
        raise UsageError(
            f"{variable} is not an http address",
            code="bad_service_address",
            hint=f"export {variable}=http://HOST:PORT",
        )
    hide_credentials(given)
    return given
