"""Parsers of flag values that several commands share."""

import os
import re
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence

from memconform.client.recorder import TOKEN_VARIABLE
from memconform.contract.core import BRAIN_ID_PATTERN
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import UsageError
from memconform.network import HeaderError, split_header

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def daemon_variables(values: Sequence[str]) -> dict[str, str]:
    """Parse the variables of `--env NAME=VALUE`.

    Raises:
        UsageError: if a value is malformed (code `bad_env`).
    """
    variables = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not _VARIABLE.fullmatch(name) or "\0" in value:
            raise UsageError(
                f"--env {name} is not a variable", code="bad_env", hint="write --env NAME=VALUE"
            )
        variables[name] = value
    return variables


def configure_runner(
    runner: SdkRunner, upstream: UpstreamKind, variables: Mapping[str, str]
) -> None:
    """Set what a daemon's answers come from, and its variables of --env.

    Raises:
        UsageError: `no_real_upstream`; `bad_service_address` for a model service that the daemon
            would ask, and that the shell or --env gives an address that is none.
    """
    runner.use_upstream(upstream)
    runner.use_variables(variables)
    if upstream == "real":
        from memconform.llm.settings import require_daemon_service  # noqa: PLC0415 - rare

        require_daemon_service(ChainMap(dict(variables), dict(os.environ)))


def request_headers(values: Sequence[str]) -> dict[str, str]:
    """Parse the headers of `--header NAME:VALUE` and MEMCONFORM_AUTH_TOKEN, and hide their values.

    Raises:
        UsageError: if a header is malformed (code `bad_header`).
    """
    headers = {}
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token:
        try:
            name, value = split_header(f"Authorization: Bearer {token}")
        except HeaderError as error:
            raise UsageError(
                f"{TOKEN_VARIABLE} is not a valid header value",
                code="bad_header",
                hint="use printable ASCII only",
            ) from error
        headers[name] = value
    for text in values:
        try:
            name, value = split_header(text)
        except HeaderError as error:
            raise UsageError(f"--header {error}", code="bad_header", hint=error.hint) from error
        headers[name] = value
    return headers


def comma_separated(values: Iterable[str]) -> tuple[str, ...]:
    """Split the values of a repeatable flag, such as `A,B`, into their parts."""
    return tuple(part for text in values for part in text.split(",") if part)


def question_ids(values: Sequence[str]) -> tuple[str, ...]:
    """The ids of `--ids`; none if the flag is not given.

    Raises:
        UsageError: if it is given and names none, as with an empty variable (`no_ids`).
    """
    ids = comma_separated(values)
    if values and not ids:
        raise UsageError("--ids names no question", code="no_ids", hint="write --ids A,B")
    return ids


def require_brain_id(flag: str, brain: str) -> None:
    """Raise UsageError `bad_brain` unless a flag's value can be the id of a brain."""
    if re.fullmatch(BRAIN_ID_PATTERN, brain) is None or brain in (".", ".."):
        raise UsageError(
            f"{flag} {brain!r} is not a brain id",
            code="bad_brain",
            hint="use 1 to 128 of the characters A-Z a-z 0-9 . _ -, but not . or ..",
        )
