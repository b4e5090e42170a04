"""The clients of the vendors' libraries, made from settings alone.

The libraries would read proxies, certificates, keys, addresses and headers from the environment
again, after `settings.py` has checked them. A proxy of the shell then saw every prompt, although
the service was on this machine.
"""

import inspect
import logging
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from memconform.llm.http_hooks import EVENT_HOOKS
from memconform.llm.settings import CONNECT_S, Endpoint
from memconform.network_transport import way_options

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_READERS = ("openai._client", "openai.lib.azure", "anthropic._client", "anthropic._tracing")
"""Modules of the libraries that read variables whenever a client is made. Most of these are also
parameters, but not the headers of OPENAI_CUSTOM_HEADERS and ANTHROPIC_CUSTOM_HEADERS."""
_LOGGERS = ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2")
_IDLE = 64
"""Idle connections that are kept: as many as --llm-concurrency allows calls."""


def http_client(default: type[Any], endpoint: Endpoint, **options: Any) -> Any:  # noqa: ANN401 - of httpx or httpx2
    """An HTTP client that goes the way of the settings.

    Args:
        default: the class that a vendor derives from the client of httpx or httpx2. Its own
            `__init__` may read the proxies of the environment, whatever it is told: Anthropic's.
        endpoint: the settings.
        options: more parameters of the client.
    """
    client = next(base for base in default.__mro__ if base.__name__ == "AsyncClient")
    library = sys.modules[client.__module__.partition(".")[0]]
    return client(
        **way_options(library, endpoint.url, endpoint.proxy, endpoint.certificates),
        trust_env=False,
        follow_redirects=False,
        limits=library.Limits(max_connections=None, max_keepalive_connections=_IDLE),
        **options,
    )


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
        "http_client": http_client(
            openai.DefaultAsyncHttpxClient, endpoint, event_hooks=EVENT_HOOKS
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
    more: dict[str, Any] = {}
    if "open_telemetry" in inspect.signature(anthropic.AsyncAnthropic).parameters:
        # Newer versions trace each call to wherever the variables of OpenTelemetry say.
        more["open_telemetry"] = False
    return anthropic.AsyncAnthropic(
        **more,
        api_key=endpoint.api_key,
        base_url=endpoint.url,
        default_headers=dict(endpoint.headers),
        max_retries=0,
        timeout=anthropic.Timeout(None, connect=CONNECT_S),
        http_client=http_client(
            anthropic.DefaultAsyncHttpxClient, endpoint, event_hooks=EVENT_HOOKS
        ),
    )


def _seal() -> None:
    """Take back what the libraries read when they were imported, and let them read no more.

    The modules that make clients get an empty environment. Theirs alone: others of this process,
    and the programs that it starts, need the real one. OPENAI_LOG and ANTHROPIC_LOG would print
    headers and prompts past the mask over secrets.
    """
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in _READERS:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "os"):
            module.os = SimpleNamespace(environ={})  # type: ignore[attr-defined] # known at run time
