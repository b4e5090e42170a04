"""What results say of a language model."""

import hashlib
from typing import Any

from memconform.llm.names import ModelName
from memconform.llm.prices import ModelTraits
from memconform.llm.settings import CONNECT_S, Endpoint
from memconform.records import Record
from memconform.redaction import without_credentials
from memconform.storage.provenance import ModelService


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
    def of(cls, name: ModelName, traits: ModelTraits, address: str | None) -> "ModelSettings":
        """The settings of a model at an address; None is the vendor's own."""
        digest = hashlib.sha256(address.encode()).hexdigest()[:12] if address else ""
        return cls(model=str(name), sampling=dict(traits.sampling), address=digest)


def service_settings(provider: str, endpoint: Endpoint) -> ModelService:
    """What results and `doctor` say of how a service is reached."""
    return ModelService(
        provider=provider,
        address=without_credentials(endpoint.url),
        address_variable=endpoint.variable if endpoint.base_url else "",
        proxy="" if endpoint.proxy is None else str(endpoint.proxy),
        certificates="" if endpoint.certificates is None else str(endpoint.certificates),
        connect_timeout_s=CONNECT_S,
        key_variable=endpoint.key_variable,
        headers=sorted(endpoint.headers),
        api_version=endpoint.api_version or "",
    )
