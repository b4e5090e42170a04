"""Failures on the way to a model service: of a proxy, or of certificates."""

import ssl

from memconform.llm.chat import LlmError, ModelUnusableError, TransientError
from memconform.llm.http_hooks import Transmission
from memconform.llm.settings import Endpoint

_REFUSALS = (401, 403, 407)
"""Statuses by which a proxy refuses to pass anything on."""
_LOST = ("RemoteProtocol", "Read", "Write")
"""How the names of exceptions begin that are about what the other side does."""


def path_failure(
    endpoint: Endpoint, error: BaseException, transmission: Transmission
) -> LlmError | None:
    """The failure of the way to a service; None if the service itself may have failed.

    Args:
        endpoint: the settings of the service.
        error: what the HTTP client raised.
        transmission: how far the request came.
    """
    untrusted = _caused_by(error, ssl.SSLCertVerificationError)
    if untrusted is not None:
        trusted = endpoint.certificates or "those of the system"
        return ModelUnusableError(
            f"the certificate of {endpoint} is not trusted"
            f" ({getattr(untrusted, 'verify_message', '') or untrusted}); trusted are {trusted}",
            code="llm_certificate",
            hint="if the network inspects TLS, export SSL_CERT_FILE=PATH of a PEM file with its"
            " authority's certificate",
        )
    proxy = endpoint.proxy
    if proxy is None or transmission.sent:
        return None
    kind, text = type(error).__name__, str(error)
    if kind == "ProxyError":
        status = int(text[:3]) if text[:3].isdecimal() else 0
        if status in _REFUSALS or status == 0:
            return proxy_refusal(endpoint, text)
        return _transient(f"the proxy {proxy} answered {text!r} for {endpoint}")
    fault = _proxy_fault(endpoint, kind, transmission)
    return _transient(f"the proxy {proxy} {fault}: {kind}: {text}".rstrip(": ")) if fault else None


def _proxy_fault(endpoint: Endpoint, kind: str, transmission: Transmission) -> str:
    """What a proxy did, given the name of an exception; empty if it had no part in it."""
    if transmission.tunnelled:
        return f"answered, but its tunnel to {endpoint} failed before TLS was established"
    if "Connect" in kind:
        return "cannot be reached"
    if transmission.connected and kind.startswith(_LOST):
        return "was reached, but did not answer as one"
    return ""


def proxy_refusal(endpoint: Endpoint, answer: str) -> ModelUnusableError:
    """The error of a proxy that passes nothing on."""
    name = endpoint.proxy.variable if endpoint.proxy is not None else "HTTPS_PROXY"
    return ModelUnusableError(
        f"the proxy {endpoint.proxy} refuses to pass calls to {endpoint} on: {answer}",
        code="llm_proxy",
        hint=f"export {name}=http://USER:PASSWORD@HOST:PORT if it wants credentials, or add the"
        " service's host to NO_PROXY if it is reached directly",
    )


def located(error: LlmError, endpoint: Endpoint, status: int) -> LlmError:
    """Add to the hint of a refusal what the settings of the service say about it.

    A proxy before a service without TLS answers in the service's place, and looks like it.
    """
    hint = error.hint
    address = endpoint.base_url
    if status == 404 and endpoint.provider == "openai" and address and not address.endswith("/v1"):
        hint += f"; {endpoint} does not end in /v1, as most addresses do"
    if endpoint.proxy is not None and endpoint.url.startswith("http:") and status >= 400:
        hint += f"{'; ' if hint else ''}the proxy {endpoint.proxy} may have answered so"
    error.hint = hint
    return error


def name_proxy(error: LlmError, endpoint: Endpoint) -> LlmError:
    """Name a proxy before a service without TLS in an error of what was read in reply.

    Its page, or its bytes, look like those of the service.
    """
    proxy = str(endpoint.proxy)
    is_reply = error.code in ("llm_bad_reply", "llm_unusable", "llm_connection")
    if endpoint.proxy is None or not endpoint.url.startswith("http:") or not is_reply:
        return error
    if proxy not in error.message + error.hint:
        error.message += f"; the proxy {proxy} may have answered so"
        error.hint = (
            f"check {endpoint.proxy.variable}, or add the service's host to NO_PROXY"
            f"{'; ' if error.hint else ''}{error.hint}"
        )
    return error


def name_variables(error: LlmError, endpoint: Endpoint) -> LlmError:
    """Name, in the hint of an error, the variables that hold the address and the key."""
    for what, variable in (("address", endpoint.variable), ("key", endpoint.key_variable)):
        if variable:
            generic = f"{what} that the provider's variable holds"
            error.hint = error.hint.replace(generic, f"{what} that {variable} holds")
    return error


def _transient(message: str) -> TransientError:
    failure = TransientError(message, code="llm_connection", billable=False)
    failure.hint = "check the proxy, unset its variable, or add the service's host to NO_PROXY"
    return failure


def _caused_by(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """The error or one of its causes that is of a kind."""
    for _ in range(10):
        if error is None or isinstance(error, kind):
            return error
        error = error.__cause__ or error.__context__
    return None
