"""What results say of a language model."""

import hashlib
from typing import TYPE_CHECKING, Any

from memconform.llm.names import ModelName
from memconform.records import Record

if TYPE_CHECKING:
    # Every result has these records, and few need the prices.
    from memconform.llm.prices import ModelTraits


class ModelSettings(Record):
    """A model as it was asked for: what decides its replies besides the prompt."""

    model: str
    """`provider:model`."""
    sampling: dict[str, Any]
    """The sampling parameters in force."""
    address: str = ""
    """The first 12 hex digits of the SHA-256 of the address, which may hold a password; empty for
    the vendor's own. Two servers may give one name to two models."""

    @classmethod
    def of(cls, name: ModelName, traits: "ModelTraits", address: str | None) -> "ModelSettings":
        """The settings of a model at an address; None is the vendor's own."""
        digest = hashlib.sha256(address.encode()).hexdigest()[:12] if address else ""
        return cls(model=str(name), sampling=dict(traits.sampling), address=digest)
