"""Clients for the servers that tests start."""

import httpx

from tests.conftest import WAIT_SECONDS

_ONE_REQUEST_EACH = httpx.Limits(max_keepalive_connections=0)


def client_of(address: str) -> httpx.AsyncClient:
    """A client of a server on this machine, with a connection for each request.

    A server closes a connection that was idle for five seconds. On a busy machine that happened
    while the next request was on its way, and looked like a daemon that gives no answer.
    """
    return httpx.AsyncClient(
        base_url=address, trust_env=False, timeout=WAIT_SECONDS, limits=_ONE_REQUEST_EACH
    )
