"""The clients of the vendors' libraries, made from settings alone.

The libraries would read proxies, certificates, keys, addresses and headers from the environment
again, after `settings.py` has checked them. A proxy of the shell then saw every prompt, although
the service was on this machine.
"""

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from memconform.llm.http_hooks import EVENT_HOOKS
from memconform.llm.settings import CONNECT_S, Endpoint

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_READERS = ("openai._client", "openai.lib.azure", "anthropic._client", "anthropic._tracing")
"""Modules of the libraries that read variables whenever a client is made. Most of these are also
parameters, but not the headers of OPENAI_CUSTOM_HEADERS and ANTHROPIC_CUSTOM_HEADERS."""


def http_options(endpoint: Endpoint) -> dict[str, Any]:
    """Parameters of an httpx client, or of the client that a vendor derives from it."""
    options: dict[str, Any] = {
        "trust_env": False,
        "follow_redirects": False,
        "proxy": None if endpoint.proxy is None else endpoint.proxy.url,
    }
    if endpoint.certificates is not None:
        options["verify"] = endpoint.certificates.context()
    return options


def openai_client(endpoint: Endpoint) -> "AsyncOpenAI":
    """A client of OpenAI, a compatible server, or Azure OpenAI."""
    import openai  # noqa: PLC0415 - takes 0.3 s

    # As for the other: what its modules read later, they read from nothing.
    import openai.lib.azure  # noqa: PLC0415

    _seal()
    common: dict[str, Any] = {
        "api_key": endpoint.api_key,
        "organization": endpoint.organization,
        "project": endpoint.project,
        "default_headers": dict(endpoint.headers),
        "max_retries": 0,
        "timeout": openai.Timeout(None, connect=CONNECT_S),
        "http_client": openai.DefaultAsyncHttpxClient(
            event_hooks=EVENT_HOOKS, **http_options(endpoint)
        ),
    }
    if endpoint.api_version is not None:
        return openai.AsyncAzureOpenAI(
            base_url=endpoint.url, api_version=endpoint.api_version, **common
        )
    return openai.AsyncOpenAI(base_url=endpoint.url, **common)


def anthropic_client(endpoint: Endpoint) -> "AsyncAnthropic":
    """A client of Anthropic, or a compatible server."""
    import anthropic  # noqa: PLC0415 - takes 0.3 s

    _seal()
    return anthropic.AsyncAnthropic(
        api_key=endpoint.api_key,
        base_url=endpoint.url,
        default_headers=dict(endpoint.headers),
        max_retries=0,
        timeout=anthropic.Timeout(None, connect=CONNECT_S),
        http_client=anthropic.DefaultAsyncHttpxClient(
            event_hooks=EVENT_HOOKS, **http_options(endpoint)
        ),
    )


def _seal() -> None:
    """Give the modules that make clients an empty environment in place of the process's.

    Theirs alone: others of this process, and the programs that it starts, need the real one.
    """
    for name in _READERS:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "os"):
            module.os = SimpleNamespace(environ={})  # type: ignore[attr-defined] # known at run time
