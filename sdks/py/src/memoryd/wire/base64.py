"""Base64 as the contract requires it."""

import base64

from memoryd.problem import invalid


def decode_base64(content: str, key: str) -> bytes:
    """Decode base64; raises Problem `validation_error` that names `key` if it is invalid."""
    try:
        decoded = base64.b64decode(content, validate=True)
    except ValueError:
        raise invalid(f"{key}: is not valid base64") from None
    # The decoder ignores the bits that pad the last character.
    if base64.b64encode(decoded) != content.encode():
        raise invalid(f"{key}: is not canonical base64")
    return decoded
