"""Embeddings from an OpenAI-compatible server, for systems that run inside the harness."""

from collections.abc import Sequence

import httpx
import numpy as np
from pydantic import BaseModel, FiniteFloat, ValidationError

from memconform.errors import DaemonError
from memconform.network_transport import ShellTransport
from memconform.redaction import hide_credentials, masked_address
from memconform.validation_faults import first_fault

_BATCH = 64
_SECONDS = 120.0


class _Row(BaseModel, defer_build=True):
    index: int
    embedding: list[FiniteFloat]


class _Rows(BaseModel, defer_build=True):
    data: list[_Row]


class RemoteEmbedder:
    """An embedder backed by one model of a server; vectors are scaled to length 1.

    Raises:
        DaemonError: from any method, if the server fails or its response is invalid
            (`embedder_failed`).
    """

    def __init__(self, base_url: str, model: str, key: str | None) -> None:
        self.name = model
        hide_credentials(base_url, is_address=True)
        self._url = f"{base_url.rstrip('/')}/embeddings"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(
            transport=ShellTransport(), trust_env=False, headers=headers, timeout=_SECONDS
        )
        [vector] = self.embed(["How long is a vector?"])
        self.dimensions = len(vector)

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Embed the texts, 64 per request."""
        return [
            vector
            for start in range(0, len(texts), _BATCH)
            for vector in self._batch(texts[start : start + _BATCH])
        ]

    def _batch(self, texts: Sequence[str]) -> list[Sequence[float]]:
        body = {"model": self.name, "input": list(texts), "encoding_format": "float"}
        try:
            response = self._http.post(self._url, json=body).raise_for_status()
            rows = sorted(
                _Rows.model_validate_json(response.content).data, key=lambda row: row.index
            )
        except httpx.HTTPError as error:
            raise self._failed(str(error) or type(error).__name__) from error
        except ValidationError as error:
            raise self._failed(first_fault(error)) from error
        lengths = {len(row.embedding) for row in rows}
        if [row.index for row in rows] != list(range(len(texts))) or len(lengths) > 1:
            raise self._failed(f"sent {len(texts)} texts, received {len(rows)} vectors")
        vectors = np.array([row.embedding for row in rows])
        scale = np.linalg.norm(vectors, axis=1, keepdims=True)
        for text, length in zip(texts, scale[:, 0], strict=True):
            # Its items would be ranked in the order of the file, which looks like a bad model.
            if length == 0 and text.strip():
                raise self._failed(f"the vector of {text[:60]!r} is zero")
        unit: list[Sequence[float]] = (vectors / np.where(scale == 0, 1, scale)).tolist()
        return unit

    def _failed(self, reason: str) -> DaemonError:
        return DaemonError(
            f"{masked_address(self._url)} cannot embed with {self.name}: {reason}",
            code="embedder_failed",
            hint="check --embed-base-url, which must end in /v1, and --embed-model",
        )
