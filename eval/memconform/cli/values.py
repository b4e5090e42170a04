"""What the values of flags that several verbs share come to."""

import os
import re
from collections.abc import Iterable, Sequence

from memconform.client.recorder import TOKEN_VARIABLE
from memconform.errors import UsageError
from memconform.redaction import hide, hide_header
from memconform.runs.plan import DEFAULT_FLOOR, Floor

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def daemon_variables(given: Sequence[str]) -> dict[str, str]:
    """The variables of `--env NAME=VALUE`; raises UsageError for what is none."""
    variables = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not _VARIABLE.fullmatch(name) or "\0" in value:
            raise UsageError(
                f"--env {name} is not a variable", code="bad_env", hint="write --env NAME=VALUE"
            )
        variables[name] = value
    return variables


def request_headers(given: Sequence[str]) -> dict[str, str]:
    """The headers of `--header NAME:VALUE` and of MEMCONFORM_AUTH_TOKEN, all kept secret.

    Raises:
        UsageError: for what is no header.
    """
    headers = {}
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token:
        hide(token)
        if not _is_header_value(token):
            raise UsageError(
                f"{TOKEN_VARIABLE} holds what no header can",
                code="bad_header",
                hint="a token is printable ASCII",
            )
        headers["Authorization"] = f"Bearer {token}"
    for text in given:
        name, colon, value = (part.strip() for part in text.partition(":"))
        hide_header(value)
        if not colon or not _HEADER_NAME.fullmatch(name) or not _is_header_value(value):
            raise UsageError(
                f"--header {name} is not a header",
                code="bad_header",
                hint="write --header 'Name: value'",
            )
        headers[name] = value
    return headers


def comma_separated(given: Iterable[str]) -> tuple[str, ...]:
    """The parts of `A,B`, of a flag that may also be given several times."""
    return tuple(part for text in given for part in text.split(",") if part)


def _is_header_value(value: str) -> bool:
    return value.isascii() and value.isprintable()


def read_floors(given: Sequence[str]) -> tuple[Floor, ...]:
    """The floors of `--floor`; raises UsageError for what is none."""
    read = [Floor.parse(text) for text in given]
    if all(floor.tag is not None for floor in read):
        read.insert(0, DEFAULT_FLOOR)
    return tuple(read)
