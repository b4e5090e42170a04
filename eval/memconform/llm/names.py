"""Names of models, and which vendor a name stands for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from memconform.errors import UsageError

PROVIDERS = ("openai", "anthropic", "gemini", "ollama", "azure", "fake")

_VENDOR_BY_NAME = (
    (re.compile(r"(?:gpt-|chatgpt-|o\d)"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "gemini"),
)
FAKE_MODEL = "lexical-3"
"""What the scripted upstream judges by; numbered, because replies are cached by this name."""

MODEL_VARIABLES = ("JB_EVAL_JUDGE_MODEL", "JB_LME_ACTOR_MODEL", "JB_LME_JUDGE_MODEL")
"""Variables that name a model where no flag does."""


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
    def parse(cls, text: str, env: Mapping[str, str], *, source: str = "") -> "ModelName":
        """Read `provider:model`, or a model whose vendor its name or JB_LLM_PROVIDER gives.

        `source` is the variable that holds the text, where it is none of a flag.

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
            f"{source and f'{source}: '}the provider of model {text!r} is unknown",
            code="unknown_provider",
            hint=f"write provider:{text or 'model'}, with one of {', '.join(PROVIDERS)}; vLLM and"
            " other compatible servers are openai, with OPENAI_BASE_URL",
        )
