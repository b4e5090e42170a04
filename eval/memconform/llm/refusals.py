"""What a service says of a request that it refuses, without what it repeats of the request.

Parameters are known by their names in a refusal. Validators and gateways repeat the request beside
what they say, whole or in part, under keys of their own: what is repeated was not refused.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_MOST: Final = 4_000
"""Characters of a refusal in which names are looked for."""
_SAYS: Final = re.compile(
    r"err|fault|fail|msg|message\Z|detail|desc|reason|title|cause|param|field|loc|path|pointer"
    r"|propert|arg|code|type|status|name|meta|raw|issue|violation|unsupported|unrecogni|unknown"
    r"|invalid|extra|keys?\Z|hint|info|source",
    re.IGNORECASE,
)
"""Keys under which services say what is wrong, and with what."""
_TELLS: Final = re.compile(r"err|msg|message\Z|detail|desc|reason|issue|violation", re.IGNORECASE)
"""Those under which they say what is wrong."""
_REPEATS: Final = re.compile(
    r"request|input|body|prompt|content|payload|messages|generat|received|ctx", re.IGNORECASE
)
_LIMIT: Final = re.compile(r"max_(?:completion_)?tokens")
"""A limit may be refused for its value, which the text about it says."""
_OPENING: Final = re.compile(r"\{|\w\(")
_OF_REQUEST: Final = re.compile(r"""\bmessages\b\\*["']?\s*[:=]\s*[\[(]|\\*["']model\\*["']\s*:""")
"""What every request has, as JSON, or as Python or a log writes it."""


def refusal_details(body: object) -> str:
    """What the body of a refusal says, as JSON."""
    return json.dumps(_said(body), default=str, ensure_ascii=False)[:_MOST]


def _said(part: Any) -> Any:  # noqa: ANN401 - whatever JSON was sent
    if isinstance(part, str):
        return _without_request(part[:_MOST])
    if isinstance(part, list):
        return [_said(each) for each in part]
    if isinstance(part, Mapping):
        return {key: said for key in part if (said := _of_key(str(key), part[key])) is not None}
    return part


def _of_key(key: str, value: object) -> object | None:
    """What is said under a key; None if that is a part of the request."""
    if _SAYS.search(key) and not _REPEATS.search(key):
        return _said(value)  # type: ignore[no-any-return] # as it was sent
    texts = value if isinstance(value, list) else [value]
    if texts and all(isinstance(text, str) and re.search(r"[^\W\d_]", text) for text in texts):
        # By field, as in {"temperature": ["is not supported"]}; a prompt has a key, too.
        return _said(value) if _LIMIT.fullmatch(key) else ""
    parts = [each for each in texts if isinstance(each, Mapping) and any(map(_TELLS.search, each))]
    return _said(parts) if parts and not _REPEATS.search(key) else None


def _without_request(text: str) -> str:
    """A text without the request that it repeats; the end of that may be cut off."""
    key, opening = _OF_REQUEST.search(text), _OPENING.search(text)
    if key is None or opening is None or opening.start() > key.start():
        return text
    request = text[opening.start() :]
    is_whole = request.count("{") <= request.count("}") and request.count("(") <= request.count(")")
    end = max(request.rfind("}"), request.rfind(")")) + 1 if is_whole else len(request)
    return text[: opening.start()] + request[end:]
