"""The addresses of model services as variables hold them, checked before a client is made."""

import re
import shlex
from collections.abc import Callable, Iterator

from memconform.errors import UsageError
from memconform.network import split_address, unescaped
from memconform.redaction import hide_credentials, masked_address

_OLLAMA_PORTS = {"": 11434, "http": 80, "https": 443}
"""Ports where OLLAMA_HOST names none, by its scheme."""
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - not bound to
"""A server listens at these; its clients connect to loopback."""
_QUOTES = "\"' \t\r\n"
_CUT_SCHEME = re.compile(r"(?:(https?)(?::(?!:)/?(?!/|\d+(?:/|\Z))|//)|//)(?=[^/])", re.IGNORECASE)
"""A scheme without some of `http://`: `http:host`, `http:/host`, `http//host`, `//host`. In
`http:80`, it is the name of a host; nobody knows what `http::1` means."""


def service_address(given: str, variable: str, complete: Callable[[str], str] = str.strip) -> str:
    """An address without the slash at its end, if it is one of http.

    Args:
        given: the variable's value.
        variable: that it comes from.
        complete: makes a whole address of a value.

    Raises:
        UsageError: `bad_service_address`, with an address near to the given one, if there is any.
    """
    hide_credentials(given, is_address=True)
    if fault := _fault(given, complete):
        # With an `@` anywhere, what is cut off may begin in the middle of a password.
        near = _nearest(given) if "@" not in given else ()
        better = (each for each in near if not _fault(each, complete))
        raise UsageError(
            f"{variable} is {masked_address(given)!r}, which is not the address of a service:"
            f" {fault}",
            code="bad_service_address",
            hint=f"export {variable}={shlex.quote(next(better, 'http://HOST:PORT'))}, or unset it",
        )
    address = complete(given)
    scheme, _, rest = address.partition("://")
    return f"{scheme.lower()}://{rest}".rstrip("/")


def ollama_address(value: str) -> str:
    """Ollama's OpenAI-compatible address, from OLLAMA_HOST in the forms that its own client takes.

    host, host:port, :port, scheme://host, IPv6 with and without brackets, each with a path or
    without one (https://github.com/ollama/ollama/blob/main/envconfig/config.go).

    Raises:
        UsageError: `bad_service_address`.
    """
    given = value.strip("\"'").strip()
    return f"{service_address(given, 'OLLAMA_HOST', _ollama_url)}/v1"


def _ollama_url(given: str) -> str:
    scheme, separator, rest = given.partition("://")
    scheme, rest = (scheme.lower(), rest) if separator else ("", given)
    userinfo, at, place = rest.partition("/")[0].rpartition("@")
    path = rest.partition("/")[2].strip("/").removesuffix("v1").rstrip("/")
    host, colon, port = place.rpartition(":")
    if not colon or "]" in port or (":" in host and not host.startswith("[")):
        host, port = place, ""
    host = host.strip("[]")
    host = _WILDCARDS.get(host, host)
    number = port or str(_OLLAMA_PORTS.get(scheme, 0))
    shown = f":{number}" if number not in ("80", "443") or port or not scheme else ""
    place = f"[{host}]" if ":" in host else host
    return f"{scheme or 'http'}://{userinfo}{at}{place}{shown}" + (f"/{path}" if path else "")


def _fault(given: str, complete: Callable[[str], str]) -> str:
    """What is wrong with the address of a service; empty if nothing is."""
    if _CUT_SCHEME.match(given):
        return "it has a part of the scheme only"
    address = complete(given)
    scheme, separator, _ = address.partition("://")
    if not separator:
        return "the scheme is missing"
    if scheme.lower() not in ("http", "https"):
        shown = f" {scheme!r}" if scheme.isalnum() else ""
        return f"the scheme{shown} is neither http nor https"
    try:
        split_address(address)
    except ValueError as error:
        return unescaped(address) or str(error)
    if not {"?", "#"} & set(address):
        return ""
    return unescaped(address) or "it has a query or a fragment"


def _nearest(given: str) -> Iterator[str]:
    """Addresses that a refused value was probably meant to be; they may be refused, too."""
    text = re.split(r"[?#]", given.strip(_QUOTES), maxsplit=1)[0].rstrip(_QUOTES)
    cut = _CUT_SCHEME.match(text)
    if cut is not None:
        yield f"{(cut[1] or 'http').lower()}://{text[cut.end() :]}"
        return
    yield text
    if "://" not in text:
        yield f"http://{text}"
