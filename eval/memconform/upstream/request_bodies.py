"""Reads request bodies: bounded in size, strict about ambiguous JSON."""

import json
from typing import Any

from starlette.requests import Request

from memconform.contract.strict_json import decode, depth
from memconform.contract.wire import JsonValue
from memconform.upstream.chat_apis import BadRequestError
from memconform.upstream.script import Script

MAX_BODY = 32 << 20
"""Bytes of a body: 2,048 texts of 16 kB. Daemons in tests and benches send less than 1 MB."""
_MAX_DISCARDED = 4 * MAX_BODY
"""Bytes read of a body that is too large: a client that is cut off while sending sees a broken
connection instead of the error response."""
_MAX_DEPTH = 100
"""Nesting levels of a body; records of one with 500 could not be serialized to JSON again."""

MAX_TEXTS = 2048
"""Texts to embed per request: OpenAI's own limit. Each becomes 256 or 384 numbers."""
MAX_DOCUMENTS = 10_000
"""Documents to rerank per request: Cohere's limit."""
_MAX_MODEL = 256
"""Characters of a model name, because an unknown one is compared with the known ones."""
_MAX_TOKENS = 1_000_000
"""Tokens of an answer: more than any current model produces."""
_COUNTS = {
    "n": 1,
    "max_tokens": _MAX_TOKENS,
    "max_completion_tokens": _MAX_TOKENS,
    "top_n": MAX_DOCUMENTS,
}
"""Upper limits of request parameters. `n` is 1, because further choices would be identical."""


class BodyTooLargeError(ValueError):
    """A body exceeds `MAX_BODY` bytes."""


async def read_body(request: Request) -> bytes:
    """Read the body of a request; raises BodyTooLargeError if it exceeds `MAX_BODY`."""
    declared = request.headers.get("content-length", "0")
    body = bytearray()
    size = 0
    if not declared.isdecimal() or len(declared) > 15 or int(declared) <= _MAX_DISCARDED:
        async for piece in request.stream():
            size += len(piece)
            if size <= MAX_BODY:
                body += piece
            elif size > _MAX_DISCARDED:
                break
    else:
        size = int(declared)
    if size > MAX_BODY:
        raise BodyTooLargeError(f"the body exceeds {MAX_BODY:,} bytes")
    return bytes(body)


def parse_body(content: bytes) -> tuple[dict[str, Any], str]:
    """Parse a body; return the JSON object and its text in normalized form.

    Raises:
        BadRequestError: if the body is not a JSON object, repeats a key, holds a lone surrogate or
            a number beyond the range of a double, nests too deeply, or exceeds a limit.
    """
    body = _parse(content)
    if not isinstance(body, dict) or not isinstance(body.get("stream_options") or {}, dict):
        raise BadRequestError("the body and its stream_options must be JSON objects")
    for key, limit in _COUNTS.items():
        count = body.get(key)
        is_count = isinstance(count, int) and not isinstance(count, bool)
        if count is not None and not (is_count and 1 <= count <= limit):
            raise BadRequestError(f"{key}: must be an integer from 1 to {limit:,}")
    model = body.get("model")
    if isinstance(model, str) and len(model) > _MAX_MODEL:
        raise BadRequestError(f"model: must have at most {_MAX_MODEL} characters")
    text = json.dumps(body, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRequestError("invalid text: it holds half of a surrogate pair") from error
    return body, text


def _parse(content: bytes) -> JsonValue:
    try:
        value = decode(content.decode("utf-8-sig"))
    except ValueError as error:
        raise BadRequestError(f"invalid JSON: {error}") from error
    if depth(value) > _MAX_DEPTH:
        raise BadRequestError(f"the JSON nests deeper than {_MAX_DEPTH} levels")
    return value


def read_script(content: bytes) -> Script:
    """Parse a script from its JSON.

    Raises:
        pydantic.ValidationError: if it does not match the schema of a script.
        BadRequestError: if it is invalid or ambiguous JSON, or nests too deeply.
    """
    return Script.model_validate(_parse(content))
