"""The one redaction: secrets that were told to it leave the harness in no file, log or line."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import IO, Any

SHORTEST = 8
"""A shorter value is no secret, and hiding it would blot out ordinary text."""

MASK = "(hidden)"

_secrets: set[str] = set()
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


def hide(secret: str, *, shortest: int = SHORTEST) -> None:
    """Keep `secret` out of everything that is written from now on, if it is long enough."""
    if len(secret) >= shortest:
        # Also as it stands inside JSON, where quotes and other letters are escaped.
        _secrets.update((secret, json.dumps(secret)[1:-1]))
        _secrets.add(json.dumps(secret, ensure_ascii=False)[1:-1])
        _pattern.cache_clear()


def is_secret(name: str) -> bool:
    """Whether an environment variable's name says that its value is a secret."""
    return _NAMES.search(name) is not None


def hide_variables(variables: dict[str, str]) -> None:
    """Hide the values of variables that are secrets, and credentials inside addresses."""
    for name, value in variables.items():
        if is_secret(name):
            hide(value)
        for userinfo in _USERINFO.findall(value):
            hide(userinfo, shortest=4)
            hide(userinfo.rpartition(":")[2], shortest=4)


def without_credentials(address: str) -> str:
    """`address`, or any other text, without what stands as `user:password@` in it."""
    return _USERINFO.sub(MASK, address)


@cache
def _pattern() -> re.Pattern[bytes] | None:
    longest_first = sorted(_secrets, key=len, reverse=True)
    return re.compile(b"|".join(re.escape(s.encode()) for s in longest_first)) if _secrets else None


def redact_bytes(data: bytes) -> bytes:
    """`data` with every secret masked."""
    pattern = _pattern()
    return data if pattern is None else pattern.sub(MASK.encode(), data)


def redact_stream(source: IO[bytes], size: int = 1 << 20) -> Iterator[bytes]:
    """What `redact_bytes` makes of a whole file, in pieces, with `size` bytes in memory."""
    pattern = _pattern()
    longest = max((len(secret.encode()) for secret in _secrets), default=1)
    buffer = b""
    while chunk := source.read(size):
        buffer += chunk
        # What begins before this point lies in the buffer to its end, whichever secret it is.
        pieces, position, complete = [], 0, len(buffer) - longest + 1
        for match in pattern.finditer(buffer) if pattern is not None else ():
            if match.start() >= complete:
                break
            pieces += [buffer[position : match.start()], MASK.encode()]
            position = match.end()
        end = max(position, complete)
        yield b"".join((*pieces, buffer[position:end]))
        buffer = buffer[end:]
    yield redact_bytes(buffer)


def redact(text: str) -> str:
    """`text` with every secret masked."""
    if _pattern() is None:
        return text
    return redact_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def redact_values(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """`value` with every secret masked in its strings; keys and what is no string stay.

    Masking the finished JSON instead could break its syntax, or its keys.
    """
    if _pattern() is None:
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [redact_values(each) for each in value]
    return value


def forget() -> None:
    """Hide nothing any more; for tests."""
    _secrets.clear()
    _pattern.cache_clear()
