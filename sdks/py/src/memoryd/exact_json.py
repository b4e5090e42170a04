"""JSON that keeps every number as it was written: a float64 would change 0.1000000000000000001."""

import math
from typing import Any

import simplejson
from simplejson import RawJSON


def loads(text: bytes | str) -> Any:  # noqa: ANN401 - any JSON value
    """Decode JSON; numbers become RawJSON.

    Raises:
        ValueError: if `text` is not JSON in UTF-8.
    """
    return simplejson.loads(text, parse_float=RawJSON, parse_int=RawJSON)


def dumps(value: object) -> str:
    """Encode what `loads` returned, or any other JSON value.

    Raises:
        ValueError: for NaN and infinity.
    """
    return simplejson.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


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
