"""Compressed JSON inside an HTML file: a script element that no browser executes, in base64."""

import base64
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from memconform.redaction import redact_values

_GZIP = 16 + zlib.MAX_WBITS
"""`wbits` for a gzip header, which DecompressionStream reads."""
_LEVEL = 6


def _dumps(value: Any) -> str:  # noqa: ANN401 - any JSON
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _finite(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same with NaN and infinities as text: a trace may have them, and JSON has not."""
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


@dataclass(slots=True)
class Blocks:
    """Named blocks, compressed as they are added, so that only compressed data stays in memory."""

    _encoded: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        """Compress a value, with secrets masked.

        Lone surrogates, which are no UTF-8, are written as escapes; `JSON.parse` restores them.
        """
        masked = redact_values(value)
        try:
            text = _dumps(masked)
        except ValueError:
            text = _dumps(_finite(masked))
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
        packed = packer.compress(text.encode("ascii")) + packer.flush()
        self._encoded[name] = base64.b64encode(packed).decode("ascii")

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._encoded.items())
