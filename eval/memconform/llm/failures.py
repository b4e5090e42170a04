"""What a failed call means: a vendor's exception, a status, or an error object in a 200."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from memconform.llm.chat import LlmError, ModelUnusableError, RequestRejectedError, TransientError
from memconform.llm.http_hooks import current_transmission
from memconform.llm.names import ModelName
from memconform.llm.refusals import body_text
from memconform.llm.settings import Endpoint
from memconform.llm.unreachable import (
    located,
    name_proxy,
    name_variables,
    path_failure,
    proxy_refusal,
)

_THROTTLED = (429, 529)
_RETRIED = (408, 409, 425, *_THROTTLED)
_UNUSABLE = {
    401: "check the key that the provider's variable holds",
    402: "check the account that the key belongs to",
    403: "check that the key may use this model",
    404: "check the model's name and the address of the provider",
    405: "check the address of the provider: there is something else than a model service",
    410: "the model or the address was withdrawn: choose another one",
}
_MODERATED = re.compile(
    r"\bmoderation\b|\bflagged_input\b|\b(?:input|prompt|content) (?:was|is|has been) flagged\b",
    re.IGNORECASE,
)
"""What gateways say in a 403 that is about the request, not about the key."""
_LOST_REPLY = (408, 502, 504, 524)
"""Statuses of gateways behind which a reply may have been made, and charged for."""
_ERROR_STATUSES = range(400, 600)
_UNKNOWN_ERROR = 500

_STATUS_BY_WORDS: Final = tuple(
    (re.compile(words, re.IGNORECASE), status)
    for words, status in (
        (r"insufficient.{0,2}(?:quota|credit|fund|balance)|payment.?required", 402),
        (r"rate.{0,2}limit|too.?many.?requests|resource.?exhausted|throttl", 429),
        (r"overload", 529),
        (
            r"(?:invalid|incorrect).{0,3}api.?key|unauthenticated|unauthori[sz]ed|authentication",
            401,
        ),
        (r"model.{0,80}not.?found", 404),
        (r"permission|forbidden", 403),
        (r"\Anot.?found", 404),
        (r"context.?length|invalid.?(?:request|argument|prompt)|bad.?request|content.?filter", 400),
        (r"time.?out|timed.?out|deadline", 504),
        (r"unavailable", 503),
    )
)
"""Codes and types of error objects, where they are no number."""
_IN_MESSAGES = (402, 429, 529, 401, 404)
"""Statuses that the message decides where neither code nor type does."""

_MALFORMED = "LocalProtocolError"
"""What httpx raises for a header that HTTP does not have, once it has connected."""
_SHOWN = 300
"""Characters of a service's message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceError:
    """What a service says of a failure."""

    status: int
    """What it amounts to, which is not always the response's own status."""
    answered: str
    """The status that the service sent, and that of an error object in a 200."""
    text: str
    details: str = ""
    """The body as JSON."""
    retry_after_s: float | None = None

    @classmethod
    def of_object(cls, error: object, body: object, headers: Mapping[str, str]) -> "ServiceError":
        """The failure that an error object in a 200 reports, by its own code, type or text."""
        status = _coded_status(error) or _by_words(_text_of(error), _IN_MESSAGES) or _UNKNOWN_ERROR
        return cls(
            status=status,
            answered=f"200 with the error {status}",
            text=_text_of(error),
            details=body_text(body),
            retry_after_s=_retry_after(headers, error),
        )

    @classmethod
    def of_status(cls, error: Any) -> "ServiceError":  # noqa: ANN401 - of either vendor's library
        """The failure that a status reports; its body may say more."""
        body = error.body
        if isinstance(body, list) and body:
            body = body[0]
        inner = body.get("error", body) if isinstance(body, Mapping) else body
        status = error.status_code
        text = _text_of(inner) if isinstance(body, Mapping) else str(error)[:_SHOWN]
        if status == 429 and _coded_status(inner) == 402:
            # OpenAI answers so where no waiting helps: the account has no credit.
            status = 402
        elif status == 400 and "api key" in text.lower():
            # Gemini's compatible address answers so to a wrong key.
            status = 401
        return cls(
            status=status,
            answered=str(error.status_code),
            text=text,
            details=body_text(str(error) if body is None else body),
            retry_after_s=_retry_after(error.response.headers, inner),
        )


def error_object(body: object) -> object | None:
    """What a successful response says of its failure; None if it reports none."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, Mapping):
        return None
    if body.get("error"):
        return body["error"]  # type: ignore[no-any-return] # whatever it is
    if "error" in (body.get("object"), body.get("type")):
        return body
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, Mapping) and first.get("error"):
        return first["error"]  # type: ignore[no-any-return] # same
    errors = body.get("errors")
    return errors[0] if isinstance(errors, list) and errors and not choices else None


def failure_of(name: ModelName, error: ServiceError) -> LlmError:
    """What a service's error means for the caller."""
    status = error.status
    if status == 403 and _MODERATED.search(error.details):
        status = 400
    message = f"{name} answered {error.answered}: {error.text}"
    hint = _UNUSABLE.get(status, "")
    if 300 <= status < 400:
        # Followed, another host would get the answers, and its verdicts would count.
        hint = "redirects are not followed: give the address that it leads to"
    if hint:
        return ModelUnusableError(message, code="llm_unusable", hint=hint)
    if status in _RETRIED or status >= 500:
        return TransientError(
            message,
            code="llm_throttled" if status in _THROTTLED else "llm_failed",
            retry_after_s=error.retry_after_s,
            throttled=status in _THROTTLED,
            billable=status in _LOST_REPLY,
        )
    rejected = RequestRejectedError(message, code="llm_rejected")
    rejected.details = error.details
    return rejected


class _Library(Protocol):
    """What both vendors' packages name alike."""

    APIStatusError: Any
    APITimeoutError: Any
    APIConnectionError: Any


@contextmanager
def translated(name: ModelName, library: _Library, endpoint: Endpoint) -> Iterator[None]:
    """Raise an LlmError in place of what a vendor's client raises, or reading its reply."""
    try:
        yield
    except LlmError as error:
        name_proxy(name_variables(error, endpoint), endpoint)
        raise
    except Exception as error:
        # A client may raise anything for the bytes that a service sends.
        failure = _translation(name, error, library, endpoint)
        raise name_proxy(name_variables(failure, endpoint), endpoint) from error


def _translation(
    name: ModelName, error: Exception, library: _Library, endpoint: Endpoint
) -> LlmError:
    if isinstance(error, library.APIStatusError):
        failed = ServiceError.of_status(error)
        if failed.status == 407:
            return proxy_refusal(endpoint, f"{failed.answered} {failed.text}")
        return located(failure_of(name, failed), endpoint, failed.status)
    cause = error.__cause__ or error
    failure = path_failure(endpoint, cause, current_transmission())
    return failure or _client_failure(name, error, library, endpoint)


def _client_failure(
    name: ModelName, error: Exception, library: _Library, endpoint: Endpoint
) -> LlmError:
    transmission = current_transmission()
    cause = error.__cause__ or error
    detail = f"{type(cause).__name__}: {cause}"[:_SHOWN].rstrip(": ")
    timed_out = isinstance(error, library.APITimeoutError)
    malformed = type(cause).__name__ == _MALFORMED and not transmission.sent
    if malformed or not (transmission.tried or timed_out):
        return ModelUnusableError(
            f"no request to {name} can be made: {detail}",
            code="llm_unusable",
            hint="check the address, the key and the proxy that the environment's variables hold",
        )
    if transmission.sent and timed_out:
        return TransientError(transmission.timeout_message(name), code="llm_timeout")
    if transmission.sent and not isinstance(error, library.APIConnectionError):
        message = f"{name} sent an unreadable reply: {_unreadable(cause)}"
        return TransientError(message, code="llm_bad_reply")
    failure = TransientError(
        f"the connection to {endpoint} failed: {detail}",
        code="llm_connection",
        billable=transmission.sent,
    )
    failure.hint = "check the address that the provider's variable holds, and the network"
    return failure


def _unreadable(cause: BaseException) -> str:
    """Why a reply cannot be read, without the words of Python."""
    match cause:
        case KeyError():
            return f"it has no {str(cause)[:_SHOWN]}"
        case IndexError():
            return "a list in it is empty"
        case TypeError() | AttributeError():
            return "a field in it is missing, or of another type"
        case _:
            return str(cause)[:_SHOWN] or "it is not what the protocol defines"


def _coded_status(error: object) -> int | None:
    """The HTTP status that an error object amounts to by its code or type."""
    if not isinstance(error, Mapping):
        return None
    codes = [error.get(key) for key in ("code", "status", "status_code", "type")]
    for code in codes:
        number = int(code) if isinstance(code, str) and code.isdecimal() else code
        if type(number) is int and number in _ERROR_STATUSES:
            return number
    statuses = (_by_words(code) for code in codes if isinstance(code, str))
    return next((status for status in statuses if status is not None), None)


def _by_words(text: str, only: tuple[int, ...] = ()) -> int | None:
    for pattern, status in _STATUS_BY_WORDS:
        if (not only or status in only) and pattern.search(text):
            return status
    return None


def _text_of(error: object) -> str:
    """What an error object says, with what it passes on from another service."""
    if not isinstance(error, Mapping):
        return error[:_SHOWN] if isinstance(error, str) else body_text(error)[:_SHOWN]
    message = error.get("message")
    if not isinstance(message, str):
        return body_text(error)[:_SHOWN]
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return (f"{message}: {raw}" if raw else message)[:_SHOWN]


def _retry_after(headers: Mapping[str, str], error: object) -> float | None:
    """Seconds to wait, by the response's headers, or by those that an error object passes on.

    RFC 9110 section 10.2.3 also has dates, which are not used by these services.
    """
    given: dict[str, object] = {}
    if isinstance(error, Mapping):
        metadata = error.get("metadata")
        passed_on = metadata.get("headers") if isinstance(metadata, Mapping) else None
        details = error.get("details")
        # Google's RetryInfo is an entry of a list.
        for part in (error, metadata, passed_on, *(details if isinstance(details, list) else ())):
            if isinstance(part, Mapping):
                given |= {str(key).lower().replace("_", "-"): part[key] for key in part}
    given |= {key: headers[key] for key in ("retry-after-ms", "retry-after") if key in headers}
    for key, unit in (("retry-after-ms", 1e-3), ("retry-after", 1), ("retrydelay", 1)):
        try:
            seconds = float(str(given.get(key, "")).removesuffix("s")) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None
