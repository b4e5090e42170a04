"""Compressed JSON inside an HTML file: a script element that no browser executes, in base64."""

import base64
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memconform.redaction import redact_values

_GZIP = 16 + zlib.MAX_WBITS
"""`wbits` for a gzip header, which DecompressionStream reads."""
_LEVEL = 6


@dataclass(slots=True)
class Blocks:
    """Named blocks, compressed as they are added, so that only compressed data stays in memory."""

    _encoded: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        """Compress a value, with secrets masked.

        Lone surrogates, which are no UTF-8, are written as escapes; `JSON.parse` restores them.
        """
        text = json.dumps(redact_values(value), separators=(",", ":"), ensure_ascii=True)
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
        packed = packer.compress(text.encode("ascii")) + packer.flush()
        self._encoded[name] = base64.b64encode(packed).decode("ascii")

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._encoded.items())
