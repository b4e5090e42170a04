"""Tells an error message that stands where an answer should be.

Programs that store answers were seen to store the message of a call that failed. Such a text says
nothing about what the system knows: scored, it would be a wrong answer.
"""

import re
from http import HTTPStatus

from memconform.contract.reported_failure import failure_in
from memconform.datasets.model import Question

_SHOWN_CHARACTERS = 120
_STATUS = r"(?P<given>[45]\d\d)\b"
_PHRASES = "|".join(re.escape(status.phrase) for status in HTTPStatus if status >= 400)

_CERTAIN = (
    re.compile(r"Traceback \(most recent call last\):"),
    # `Error: 429 …`, `Error code: 429 - {…}`, `HTTP/1.1 503 …`, `HTTP error 500`, `status code 502`
    re.compile(
        rf"(?:(?:http|api|server|upstream) )?(?:error|http(?:/[\d.]+)?|status code)"
        rf"(?: error| status)?(?: code)?[:=\s(]+{_STATUS}",
        re.IGNORECASE,
    ),
    re.compile(rf"{_STATUS}[:\s-]+(?:{_PHRASES})", re.IGNORECASE),
    # An exception as Python, Java or JavaScript shows it: `openai.RateLimitError: …`, `OSError(…)`.
    re.compile(r"(?:\w+\.)*(?P<given>[A-Z]\w*[a-z](?:Error|Exception))(?::\s|\()"),
    # As requests, httpx and urllib3 say it.
    re.compile(r"(?P<given>[45]\d\d) (?:Client|Server) Error: ", re.IGNORECASE),
    re.compile(r"(?:Client|Server) error '(?P<given>[45]\d\d) ", re.IGNORECASE),
    re.compile(r"HTTPS?ConnectionPool\(|\[Errno \d+\] "),
    # The whole message of the vendors' clients, and of anyio.
    re.compile(
        r"(?:connection error|request timed out|all connection attempts failed)\.?\Z", re.IGNORECASE
    ),
    # A proxy's page: `<html><head><title>502 Bad Gateway</title>`.
    re.compile(rf"(?:<!doctype html|<html)(?s:.{{0,500}}?)<title>\s*{_STATUS}", re.IGNORECASE),
)
_LIKELY = re.compile(r"(?:an? )?(?:\w+ )?(?:error|exception)(?: occurred)?\s*:", re.IGNORECASE)


def error_message(question: Question, answer: str) -> str | None:
    """The beginning of a text that is certainly an error message; None for any other text.

    It is one if it is a JSON object that reports a failure (`contract.reported_failure`), or begins
    as a traceback, an HTTP error, an exception or a proxy's error page does. A status or an
    exception that the question or its reference answer names is an answer.
    """
    text = answer.strip()
    if text.startswith("{"):
        failed = failure_in(text.encode("utf-8", "replace"), None) is not None
    else:
        matches = (pattern.match(text) for pattern in _CERTAIN)
        match = next((match for match in matches if match), None)
        failed = match is not None and not _is_named(match.groupdict().get("given"), question)
    return " ".join(text.split())[:_SHOWN_CHARACTERS] if failed else None


def resembles_error(answer: str) -> bool:
    """Whether a text begins with a word such as `Error:`, which an answer may do as well."""
    return _LIKELY.match(answer.strip()) is not None


def _is_named(given: str | None, question: Question) -> bool:
    if given is None:
        return False
    known = " ".join((question.question, *question.answers, *question.expected_substrings))
    return re.search(rf"\b{re.escape(given)}\b", known, re.IGNORECASE) is not None
