"""JSON that keeps every number as it was written: a float64 would change 0.1000000000000000001."""

import math
from typing import Any

import simplejson
from simplejson import RawJSON

_EXACT_LENGTH = 15


def loads(text: bytes | str) -> Any:  # noqa: ANN401 - any JSON value
    """Decode JSON; numbers that a float64 may change become RawJSON.

    Raises:
        ValueError: if `text` is not JSON in UTF-8.
    """
    return _DECODER.decode(text if isinstance(text, str) else text.decode())


def _number(text: str) -> int | float | RawJSON:
    # Up to 15 digits come back; a RawJSON takes ten times the memory of the text.
    if len(text) > _EXACT_LENGTH or "e" in text.lower():
        return RawJSON(text)
    return float(text) if "." in text else int(text)


# Made once: simplejson's functions make one a call, which takes longer than a small document.
_DECODER = simplejson.JSONDecoder(parse_float=_number, parse_int=_number)
_ENCODER = simplejson.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dumps(value: object) -> str:
    """Encode what `loads` returned, or any other JSON value.

    Raises:
        ValueError: for NaN and infinity.
    """
    return _ENCODER.encode(value)


def are_finite(value: object) -> bool:
    """Whether all numbers in what `loads` returned are in the range of a float64."""
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, RawJSON) and not math.isfinite(float(node.encoded_json)):
            return False
        if isinstance(node, dict):
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return True
