"""A transport of httpx that follows the variables of a shell, as `network.py` reads them."""

import os
from collections.abc import Mapping
from typing import Any

import httpx

from memconform.network import Certificates, Proxy, speaks_tls, way_to
from memconform.tls import no_certificates


def way_options(
    library: Any,  # noqa: ANN401 - httpx, or what a vendor uses in its place
    address: str,
    proxy: Proxy | None,
    trusted: Certificates | None,
) -> dict[str, Any]:
    """The parameters `verify` and `proxy` of a client or transport that goes this way alone."""
    if trusted is not None:
        context = trusted.context()
    elif speaks_tls(address, proxy):
        context = library.create_ssl_context(trust_env=False)
    else:
        context = no_certificates()
    if proxy is None:
        return {"verify": context}
    # Without a context of its own, TLS with the proxy goes by SSL_CERT_FILE, whatever it holds.
    of_proxy = context if proxy.url.lower().startswith("https:") else None
    return {"verify": context, "proxy": library.Proxy(proxy.url, ssl_context=of_proxy)}


class ShellTransport(httpx.BaseTransport):
    """Sends each request by way of the proxy and with the certificates that are set for its host.

    httpx reads the same variables, but takes a bad value for a bug: SOCKS without its package is an
    ImportError, and a missing file of certificates a FileNotFoundError that names neither.
    """

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._env = os.environ if env is None else env
        self._transports: dict[tuple[str, Proxy | None], httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request.

        Raises:
            UsageError: `bad_proxy`, `no_socks` or `bad_certificates`, naming the variable.
            httpx.HTTPError: if it fails on its way.
        """
        address = f"{request.url.scheme}://{request.url.netloc.decode()}"
        proxy, trusted = way_to(address, self._env)
        key = request.url.scheme, proxy
        if key not in self._transports:
            self._transports[key] = httpx.HTTPTransport(
                **way_options(httpx, address, proxy, trusted), trust_env=False
            )
        return self._transports[key].handle_request(request)

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()
