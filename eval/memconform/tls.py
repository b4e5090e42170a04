"""TLS with a server that is reached directly, as daemons are."""

import ssl
from functools import cache

import httpcore


def tls_context(address: str) -> ssl.SSLContext:
    """The context of TLS with a server.

    For `https:` it trusts the system's certificates, or those that SSL_CERT_FILE and SSL_CERT_DIR
    name, and the public ones of certifi.
    """
    if address.lower().startswith("https:"):
        return _trusting(ssl.get_default_verify_paths())
    return no_certificates()


@cache
def _trusting(_: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    return httpcore.default_ssl_context()


@cache
def no_certificates() -> ssl.SSLContext:
    """For servers without TLS: the certificates take 30 ms to load, a tenth of a short run."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
