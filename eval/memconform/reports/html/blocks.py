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
_ROWS = 1_000
"""Rows of a column that are encoded at a time."""


def _dumps(value: Any) -> str:  # noqa: ANN401 - any JSON
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _pieces(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """The JSON of a value, with secrets masked; a table's columns a thousand rows at a time.

    Copies of all rows would take three times the memory of the rows.
    """
    columns = value.values() if isinstance(value, dict) else ()
    if not any(isinstance(column, list) and len(column) > _ROWS for column in columns):
        yield _masked(value)
        return
    before = "{"
    for name, column in value.items():
        # Names of columns are the report's own, and hide nothing.
        yield f"{before}{_dumps(name)}:"
        before = ","
        if isinstance(column, list):
            for start in range(0, len(column), _ROWS):
                yield "," if start else "["
                yield _masked(column[start : start + _ROWS])[1:-1]
            yield "]" if column else "[]"
        else:
            yield _masked(column)
    yield "}"


def _masked(value: Any) -> str:  # noqa: ANN401 - any JSON
    masked = redact_values(value)
    try:
        return _dumps(masked)
    except ValueError:
        return _dumps(_finite(masked))


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
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
        packed = b"".join(packer.compress(text.encode("ascii")) for text in _pieces(value))
        self._encoded[name] = base64.b64encode(packed + packer.flush()).decode("ascii")

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._encoded.items())
