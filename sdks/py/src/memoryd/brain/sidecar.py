"""The sidecar of a document: what an ingest sent besides the content, as JSON."""

from typing import Any

from pydantic_core import from_json

from memoryd.wire import exact_json


def parse_sidecar(sidecar: bytes | None) -> dict[str, Any]:
    """Decode a sidecar; one that is not an object, or nested too deep, is empty."""
    try:
        from_json(sidecar or b"", allow_inf_nan=False)
        loaded = exact_json.loads(sidecar or b"")
    except ValueError:
        return {}
    return loaded if isinstance(loaded, dict) and exact_json.are_finite(loaded) else {}
