"""TLS with a server that is reached directly, as daemons are."""

import ssl
from functools import cache

import httpx


def tls_context(address: str) -> ssl.SSLContext:
    """The context of TLS with a server: the system's certificates, if it needs any."""
    return _context(secure=address.lower().startswith("https:"))


@cache
def _context(*, secure: bool) -> ssl.SSLContext:
    # The certificates take 30 ms to load: a tenth of the start of a short run.
    if secure:
        return httpx.create_ssl_context(trust_env=False)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
