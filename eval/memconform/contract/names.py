"""The contract's version and its enumerations, importable without the models."""

from enum import StrEnum
from typing import Literal

CONTRACT_VERSION = "1"


class Mode(StrEnum):
    """How chunks are retrieved."""

    AUTO = "auto"
    HYBRID = "hybrid"
    HYBRID_RERANK = "hybrid-rerank"
    BM25 = "bm25"
    SEMANTIC = "semantic"


RankBy = Literal["score", "position"]
"""What ranks chunks: their scores, which must not rise, or their positions alone."""


class Profile(StrEnum):
    """A part of the contract that a daemon claims."""

    CORE = "core"
    ASK = "ask"
    DOCUMENTS = "documents"
    EVENTS = "events"
    AUTH = "auth"
    SHARED_STATE = "shared-state"


class Reader(StrEnum):
    """What answers questions: a value of `JB_LLM_PROVIDER`."""

    FAKE = "fake"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"


LANGUAGE_MODELS = frozenset(Reader) - {Reader.FAKE}
"""Readers that are language models."""

READER_VARIABLE = "JB_LLM_PROVIDER"
"""Selects the reader of a daemon."""


class Embedder(StrEnum):
    """What turns texts into vectors: a value of `JB_EMBED_PROVIDER`."""

    FAKE = "fake"
    OPENAI = "openai"
    OLLAMA = "ollama"


REMOTE_EMBEDDERS = frozenset(Embedder) - {Embedder.FAKE}
"""Embedders that are services, which the scripted upstream can take the place of."""

EMBEDDER_VARIABLE = "JB_EMBED_PROVIDER"
"""Selects the embedder of a daemon."""

EMBEDDER_MODES = frozenset({Mode.SEMANTIC, Mode.HYBRID, Mode.HYBRID_RERANK})
"""Modes that compare vectors."""
