"""The contract's version and its enumerations, importable without the models."""

from enum import StrEnum

CONTRACT_VERSION = "1"


class Mode(StrEnum):
    """How chunks are retrieved."""

    AUTO = "auto"
    HYBRID = "hybrid"
    HYBRID_RERANK = "hybrid-rerank"
    BM25 = "bm25"
    SEMANTIC = "semantic"


class Profile(StrEnum):
    """A part of the contract that a daemon claims."""

    CORE = "core"
    ASK = "ask"
    DOCUMENTS = "documents"
    EVENTS = "events"
    AUTH = "auth"
