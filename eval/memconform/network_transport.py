"""A transport of httpx that follows the variables of a shell, as `network.py` reads them."""

import os
from collections.abc import Mapping

import httpx

from memconform.network import Proxy, certificates, proxy_for


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
        proxy = proxy_for(address, self._env)
        key = request.url.scheme, proxy
        if key not in self._transports:
            named = certificates(self._env, address) if request.url.scheme == "https" else None
            self._transports[key] = httpx.HTTPTransport(
                verify=True if named is None else named.context(),
                proxy=None if proxy is None else proxy.url,
                trust_env=False,
            )
        return self._transports[key].handle_request(request)

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()
