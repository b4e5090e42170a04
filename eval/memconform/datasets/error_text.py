"""Tells an error message that stands where an answer should be.

Programs that store answers were seen to store the message of a call that failed. Such a text says
nothing about what the system knows: scored, it would be a wrong answer.
"""

import json
import re
from functools import cache
from http import HTTPStatus

from memconform.contract.reported_failure import failure_in
from memconform.datasets.invisible import is_blank
from memconform.datasets.question import Question

_SHOWN_CHARACTERS = 120
_STATUS = r"(?P<given>[45]\d\d)\b"
_PHRASES = "|".join(re.escape(status.phrase) for status in HTTPStatus if status >= 400)

_FAULTS = (
    r"internal server error|bad gateway|gateway time-?out|service unavailable|too many requests"
    r"|request time-?out|proxy authentication required|connection error"
    r"|connection (?:refused|aborted|reset)(?: by (?:the )?peer)?"
    r"|(?:the )?(?:read|write|request|response|connect|operation) (?:has )?timed out"
    r"|deadline exceeded|fetch failed|failed to fetch|socket hang up"
    r"|rate limit (?:exceeded|reached)|quota exceeded|(?:maximum )?context length exceeded"
    r"|no route to host|network is unreachable|name or service not known"
    r"|failed to (?:generate|get|fetch|obtain|complete) (?:an? |the )?(?:response|completion)"
    r"|(?:(?:i'm |i am |we're |we are )?sorry,? (?:but )?)?an? (?:internal |unexpected |unknown )?"
    r"error (?:has )?occurred(?: while (?:processing|handling|generating) (?:your|the|this)"
    r" (?:request|query|response))?"
)
"""What clients and servers say of a failure, in no more words; people would not say it so."""
_SHORT_FAULTS = (
    r"(?:connection|socket|stream) (?:lost|closed|terminated|reset)"
    r"|(?:network|internal|proxy) error|timed[ -]?out|timeout|broken pipe"
    r"|(?:server )?overloaded|unauthorized|forbidden|insufficient storage|payload too large"
)
"""What people say, too: a failure only after a word such as `Error:`."""
_COMMON = frozenset(("error", "exception", "been", "were", "with", "this", "your"))
"""Words that questions have, whatever they are about."""
_PREFIX = r"(?:\w+ )?(?:error|exception)\s*[:-]\s*"
_NOTHING = r"null|undefined|NaN|\[object Object\]"
"""How programs print a value that is missing."""

_LIKELY = re.compile(r"(?:an? )?(?:\w+ )?(?:error|exception)(?: occurred)?\s*:", re.IGNORECASE)


@cache
def _certain() -> tuple[re.Pattern[str], ...]:
    """What a text that is certainly an error begins with; compiling it takes 4 ms."""
    return (
        # The whole text, perhaps after `Error:`: what a sentence may begin with is but likely.
        re.compile(rf"(?:{_PREFIX})?(?P<given>{_FAULTS})\s*[.!]?\Z", re.IGNORECASE),
        re.compile(rf"{_PREFIX}(?P<given>{_SHORT_FAULTS})\s*[.!]?\Z", re.IGNORECASE),
        re.compile(rf"(?P<given>ERROR|{_NOTHING})\Z"),
        # Exceptions of clients; one of a program, such as TypeError, may be what is asked for.
        re.compile(
            r"(?P<given>(?:[A-Z]\w*)?(?:Timeout|Connect|RateLimit|HTTP|API|SSL|Socket|Network)\w*"
            r"(?:Error|Exception)|(?:Read|Connect|Write|Pool)Timeout)\Z"
        ),
        # Node's codes: `Error: connect ECONNREFUSED 127.0.0.1:8000`.
        re.compile(
            r"(?:[Ee]rror: )?(?:\w+ )?"
            r"(?P<given>E(?:CONN[A-Z]+|TIMEDOUT|HOSTUNREACH|AI_AGAIN|PIPE))\b"
        ),
        # Envoy, OpenAI, Anthropic, Ollama.
        re.compile(
            r"upstream connect error or disconnect|rate limit (?:reached|exceeded) for\b"
            r"|this model's maximum context length is|you exceeded your current quota"
            r"|incorrect api key provided|prompt is too long: \d"
            r"|(?:\w+: )?model ['\"\w.:/-]*\s?(?:was )?not found(?:,|\.|\Z)",
            re.IGNORECASE,
        ),
        re.compile(r"Traceback \(most recent call last\):"),
        # `Error: 429 …`, `Error code: 429 - {…}`, `HTTP/1.1 503 …`, `HTTP error 500`,
        # `status code 502`
        re.compile(
            rf"(?:(?:http|api|server|upstream) )?(?:error|http(?:/[\d.]+)?|status code)"
            rf"(?: error| status)?(?: code)?[:=\s(]+{_STATUS}",
            re.IGNORECASE,
        ),
        re.compile(rf"{_STATUS}[:\s-]+(?:{_PHRASES})", re.IGNORECASE),
        # `Error: upstream request failed with status 503`.
        re.compile(
            rf"(?:{_PREFIX})?(?:\w+ )?request failed with (?:http )?status(?: code)?:? {_STATUS}",
            re.IGNORECASE,
        ),
        # An exception as Python, Java or JavaScript shows it: `openai.RateLimitError: …`,
        # `OSError(…)`.
        re.compile(r"(?:\w+\.)*(?P<given>[A-Z]\w*[a-z](?:Error|Exception))(?::\s|\()"),
        # As requests, httpx and urllib3 say it.
        re.compile(r"(?P<given>[45]\d\d) (?:Client|Server) Error: ", re.IGNORECASE),
        re.compile(r"(?:Client|Server) error '(?P<given>[45]\d\d) ", re.IGNORECASE),
        re.compile(r"HTTPS?ConnectionPool\(|\[Errno \d+\] "),
        # The whole message of anyio.
        re.compile(r"all connection attempts failed\.?\Z", re.IGNORECASE),
        # A proxy's page: `<html><head><title>502 Bad Gateway</title>`.
        re.compile(rf"(?:<!doctype html|<html)(?s:.{{0,500}}?)<title>\s*{_STATUS}", re.IGNORECASE),
    )


def error_message(question: Question, answer: str) -> str | None:
    """The beginning of a text that is certainly an error message; None for any other text.

    It is one if it is a JSON object that reports a failure (`contract.reported_failure`) or holds
    nothing, if it begins as a traceback, an HTTP error, an exception or a proxy's error page does,
    if it says no more than that a connection or a call failed, or if it is how a program prints a
    missing value. What the question or its reference answer names is an answer.
    """
    text = answer.strip()
    failed = _reports_failure(text, question) if text.startswith("{") else _fails(text, question)
    return " ".join(text.split())[:_SHOWN_CHARACTERS] if failed else None


def _reports_failure(text: str, question: Question) -> bool:
    if failure_in(text.encode("utf-8", "replace"), None) is not None:
        return True
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not any(_is_something(value) for value in values.values()):
        return True
    # FastAPI's `{"detail": "Internal Server Error"}`, or its list of what is invalid.
    match list(values.items()):
        case [("detail" | "message" | "msg", str() as message)]:
            return _fails(message.strip(), question)
        case [("detail", list())]:
            return True
    return False


def _is_something(value: object) -> bool:
    return not is_blank(value) if isinstance(value, str) else value not in (None, [], {})


def _fails(text: str, question: Question) -> bool:
    matches = (pattern.match(text) for pattern in _certain())
    match = next((match for match in matches if match), None)
    return match is not None and not _is_named(match.groupdict().get("given"), question)


def resembles_error(answer: str) -> bool:
    """Whether a text begins with a word such as `Error:`, which an answer may do as well."""
    return _LIKELY.match(answer.strip()) is not None


def _is_named(given: str | None, question: Question) -> bool:
    """Whether question or reference answer name what was given, or the latter has a word of it."""
    if given is None:
        return False
    reference = " ".join((*question.answers, *question.expected_substrings))
    words = set(re.findall(r"[^\W_]{4,}", given.lower())) - _COMMON
    return _has(given, f"{question.question} {reference}") or any(
        _has(word, reference) for word in words
    )


def _has(words: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(words)}\b", text, re.IGNORECASE) is not None
