"""Normalizes responses: removes what may legitimately differ between daemons."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
from httpx_sse import EventSource

from memconform.contract.schemas import BYTES
from memconform.contract.wire import JsonValue
from memconform.fuzzing.programs import BRAIN

_FREE_KEYS = ("tookMs", "searchMs", "mtime", "when")
"""Keys with timestamps and durations."""

_HEADERS = ("allow", "www-authenticate", "cache-control")
"""Headers that a rule covers; each is an unordered set of words."""

_IGNORED_WORDS = ("head",)
"""No rule says whether a route that answers GET also answers HEAD."""

_PROBLEM = "application/problem+json"


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """A normalized response to one call of a program."""

    status: int | None
    """None if there was no response."""
    media: str = ""
    """The media type, without parameters."""
    headers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    body: JsonValue = None
    """JSON; for a stream, a list of `[name, data, id]`; for bytes, `{"bytes": hex}`."""
    failure: str = ""
    """A `FailureKind` if there was no response or it did not end properly; of a process that ended,
    with its exit status."""
    fault: str = ""
    """How the response violates a rule on what is not compared, such as times."""
    content: bytes = field(default=b"", compare=False, repr=False)
    """The body as it was received."""

    def value(self) -> dict[str, Any]:
        """Return the answer as JSON, so that two answers can be compared key by key."""
        return {
            # First: it explains a missing status, which it comes with.
            "failure": self.failure,
            "status": self.status,
            "media": self.media,
            "headers": {name: list(words) for name, words in self.headers},
            "body": self.body,
            "fault": self.fault,
        }


def normalize(response: httpx.Response, content: bytes, brain: str) -> ProgramAnswer:
    """Normalize a response: remove times, human-readable text and the brain's id."""
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    headers = tuple(
        (name, _words(response.headers[name])) for name in _HEADERS if name in response.headers
    )
    body = _body(media, content, brain)
    # No rule says whether a HEAD response has the media type of the GET response.
    compared_media = "" if response.request.method == "HEAD" else media
    return ProgramAnswer(response.status_code, compared_media, headers, body, content=content)


def _words(value: str) -> tuple[str, ...]:
    words = {word.strip().lower() for word in value.split(",")}
    return tuple(sorted(words.difference(_IGNORED_WORDS)))


def _body(media: str, content: bytes, brain: str) -> JsonValue:
    if media == "text/event-stream":
        return [[name, normalize_value(data, brain), id_] for name, data, id_ in events(content)]
    if media == BYTES or not content:
        return {"bytes": content.hex()}
    try:
        loaded = json.loads(content)
    except ValueError:
        return {"unreadable": content.decode("utf-8", "replace")}
    if media == _PROBLEM and isinstance(loaded, dict):
        return {key: loaded.get(key) for key in ("status", "code")} | {"keys": sorted(loaded)}
    return normalize_value(loaded, brain)


def normalize_value(value: JsonValue, brain: str) -> JsonValue:
    """Remove times and nulls, and replace the brain's id; metadata stays as it is."""
    if isinstance(value, dict):
        fields = {k: v for k, v in value.items() if k not in _FREE_KEYS and v is not None}
        # Stored metadata must come back unchanged, including nulls.
        return {k: v if k == "metadata" else normalize_value(v, brain) for k, v in fields.items()}
    if isinstance(value, list):
        return [normalize_value(item, brain) for item in value]
    return BRAIN if value == brain else value


def events(content: bytes, *, decoded: bool = True) -> list[tuple[str, JsonValue, str]]:
    """Return the events of a stream as (name, data, id), without pings, whose timing is arbitrary.

    An id that is a number greater than the previous one is replaced by `rising`. Data is JSON, or
    text if it is not or `decoded` is false.
    """
    result: list[tuple[str, JsonValue, str]] = []
    last, inherited = -1, ""
    headers = {"content-type": "text/event-stream"}
    for event in EventSource(httpx.Response(200, headers=headers, content=content)).iter_sse():
        # Once an id was seen, httpx-sse yields comments as events without data.
        if event.event == "ping" or not event.data:
            continue
        # httpx-sse gives an event without an id that of the previous one.
        id_ = event.id if event.id != inherited else ""
        inherited = event.id
        if id_.isascii() and id_.isdigit() and int(id_) > last:
            last, id_ = int(id_), "rising"
        result.append((event.event, _loaded(event.data) if decoded else event.data, id_))
    return result


def _loaded(data: str) -> JsonValue:
    try:
        return json.loads(data)
    except ValueError:
        return data
