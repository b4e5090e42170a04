"""What a daemon answered, without what may differ from daemon to daemon."""

import json
from dataclasses import dataclass
from typing import Any

import httpx
from httpx_sse import EventSource

from memconform.contract.schemas import BYTES
from memconform.contract.wire import JsonValue
from memconform.fuzzing.programs import BRAIN

_FREE_KEYS = ("tookMs", "searchMs", "mtime", "when")
"""Moments and durations."""

_HEADERS = ("allow", "www-authenticate", "cache-control")
"""Those that a rule speaks of; sets of words, in no order."""

_UNSETTLED = ("head",)
"""Whether what answers GET answers HEAD too, no rule says."""

_PROBLEM = "application/problem+json"


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    status: int | None
    """None: none came."""
    media: str = ""
    headers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    body: JsonValue = None
    """JSON; a list of events as `[name, data, id]`; bytes as `{"bytes": hex}`."""
    failure: str = ""
    """`broken`, `silent` or `endless`, where it did not come to a proper end."""

    def value(self) -> dict[str, Any]:
        """As JSON, in which two answers can be compared key by key."""
        return {
            "status": self.status,
            "media": self.media,
            "headers": {name: list(words) for name, words in self.headers},
            "body": self.body,
            "failure": self.failure,
        }


def normalized(response: httpx.Response, content: bytes, brain: str) -> ProgramAnswer:
    """What is left without moments, durations, words for people and the brain's id."""
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    headers = tuple(
        (name, _words(response.headers[name])) for name in _HEADERS if name in response.headers
    )
    body = _body(media, content, brain)
    # A HEAD may tell the media type that GET would give, or not: no rule says.
    told = "" if response.request.method == "HEAD" else media
    return ProgramAnswer(response.status_code, told, headers, body)


def _words(value: str) -> tuple[str, ...]:
    words = {word.strip().lower() for word in value.split(",")}
    return tuple(sorted(words.difference(_UNSETTLED)))


def _body(media: str, content: bytes, brain: str) -> JsonValue:
    if media == "text/event-stream":
        return [[name, _plain(data, brain), id_] for name, data, id_ in _events(content)]
    if media == BYTES or not content:
        return {"bytes": content.hex()}
    try:
        loaded = json.loads(content)
    except ValueError:
        return {"unreadable": content.decode("utf-8", "replace")}
    if media == _PROBLEM and isinstance(loaded, dict):
        return {key: loaded.get(key) for key in ("status", "code")} | {"keys": sorted(loaded)}
    return _plain(loaded, brain)


def _plain(value: JsonValue, brain: str) -> JsonValue:
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in _FREE_KEYS and v is not None}
        # What somebody has stored is not the daemon's to change, a null in it neither.
        return {k: v if k == "metadata" else _plain(v, brain) for k, v in kept.items()}
    if isinstance(value, list):
        return [_plain(each, brain) for each in value]
    return BRAIN if value == brain else value


def _events(content: bytes) -> list[tuple[str, JsonValue, str]]:
    """The events of a stream; pings, which come when they will, are left out.

    Of an id is told whether it is a number above the one before it, as `rising`.
    """
    found: list[tuple[str, JsonValue, str]] = []
    last, inherited = -1, ""
    headers = {"content-type": "text/event-stream"}
    for event in EventSource(httpx.Response(200, headers=headers, content=content)).iter_sse():
        # httpx-sse hands out comments, as events without data, once an id was seen.
        if event.event == "ping" or not event.data:
            continue
        # An event without an id has that of the one before it.
        id_ = event.id if event.id != inherited else ""
        inherited = event.id
        if id_.isascii() and id_.isdigit() and int(id_) > last:
            last, id_ = int(id_), "rising"
        try:
            found.append((event.event, json.loads(event.data), id_))
        except ValueError:
            found.append((event.event, event.data, id_))
    return found
