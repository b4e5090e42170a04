"""Bodies that clients send: bounded, and JSON that means one thing only."""

import json
from typing import Any

from starlette.requests import Request

from memconform.contract.strict_json import decode, depth
from memconform.contract.wire import JsonValue
from memconform.upstream.dialects import BadRequestError
from memconform.upstream.script import Script

MAX_BODY = 32 << 20
"""Bytes of a body: 2,048 texts of 16 kB. What daemons send in the tests and benches is below 1."""
_MAX_DISCARDED = 4 * MAX_BODY
"""Bytes that are read of a body that is too large: a client that is cut off while it sends sees a
broken connection, and not the answer that says why."""
_MAX_DEPTH = 100
"""Levels of a body; records of one of 500 could not be written as JSON again."""

MAX_TEXTS = 2048
"""Texts to embed in one request: OpenAI's own limit. Each becomes 256 numbers, or 384."""
MAX_DOCUMENTS = 10_000
"""Documents to rerank in one request, as Cohere has it."""
_MAX_MODEL = 256
"""Characters of a model's name: an unknown one is compared with the known ones."""
_MAX_TOKENS = 1_000_000
"""Of an answer: more than any model of today gives."""
_COUNTS = {
    "n": 1,
    "max_tokens": _MAX_TOKENS,
    "max_completion_tokens": _MAX_TOKENS,
    "top_n": MAX_DOCUMENTS,
}
"""The most that a request may ask for. There is one choice of an answer: more would be the same."""


class BodyTooLargeError(ValueError):
    """A body has more than `MAX_BODY` bytes."""


async def read_body(request: Request) -> bytes:
    """The body of a request; raises BodyTooLargeError."""
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
        raise BodyTooLargeError(f"the body has more than {MAX_BODY:,} bytes")
    return bytes(body)


def parse_body(content: bytes) -> tuple[dict[str, Any], str]:
    """The object that a body is, and its text in one spelling.

    Raises:
        BadRequestError: for what is no JSON object, has a key twice, half of a surrogate pair or a
            number that no double holds, nests too deeply, or asks for absurdly much.
    """
    body = _parsed(content)
    if not isinstance(body, dict) or not isinstance(body.get("stream_options") or {}, dict):
        raise BadRequestError("a JSON object is wanted, and stream_options be one too")
    for key, most in _COUNTS.items():
        count = body.get(key)
        is_count = isinstance(count, int) and not isinstance(count, bool)
        if count is not None and not (is_count and 1 <= count <= most):
            raise BadRequestError(f"{key}: an integer from 1 to {most:,} is wanted")
    model = body.get("model")
    if isinstance(model, str) and len(model) > _MAX_MODEL:
        raise BadRequestError(f"model: a name has at most {_MAX_MODEL} characters")
    text = json.dumps(body, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRequestError("no text: it holds half of a surrogate pair") from error
    return body, text


def _parsed(content: bytes) -> JsonValue:
    try:
        value = decode(content.decode("utf-8-sig"))
    except ValueError as error:
        raise BadRequestError(f"no JSON: {error}") from error
    if depth(value) > _MAX_DEPTH:
        raise BadRequestError(f"no more than {_MAX_DEPTH} levels may nest")
    return value


def read_script(content: bytes) -> Script:
    """A script from its JSON.

    Raises:
        pydantic.ValidationError: for what a script does not have.
        BadRequestError: as `parse_body`, for JSON that is refused whatever it says.
    """
    return Script.model_validate(_parsed(content))
