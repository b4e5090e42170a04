"""The parameters of a query."""

import re
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from memoryd.problem import invalid

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def parameters(request: Request, *names: str) -> dict[str, str]:
    """The query parameters among `names`.

    Raises:
        Problem: `validation_error` if the query is not form-encoded UTF-8 or repeats a parameter.
    """
    query: bytes = request.scope["query_string"]
    if _BAD_ESCAPE.search(query):
        raise invalid("the query contains an invalid percent escape")
    values: dict[str, str] = {}
    for pair in query.split(b"&"):
        name, _, value = pair.partition(b"=")
        key, text = _decode(name), _decode(value)
        if key in values:
            raise invalid(f"{key}: is given more than once")
        if key in names:
            values[key] = text
    return values


def flag(values: dict[str, str], name: str) -> bool:
    value = values.get(name, "false")
    if value not in ("true", "false"):
        raise invalid(f"{name}: must be true or false")
    return value == "true"


def _decode(form: bytes) -> str:
    try:
        return unquote_to_bytes(form.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise invalid("the query is not valid UTF-8") from None
