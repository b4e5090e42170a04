"""What a daemon answered, without what may differ from daemon to daemon."""

import json
from dataclasses import dataclass
from typing import Any

import httpx

from memconform.contract.schemas import BYTES
from memconform.contract.wire import JsonValue

_FREE_KEYS = ("tookMs", "searchMs", "mtime", "when")
"""Moments and durations."""

_HEADERS = ("allow", "www-authenticate", "cache-control")
"""Those that a rule speaks of; sets of words, in no order."""

_UNSETTLED = ("head",)
"""Whether what answers GET answers HEAD too, no rule says."""

_PROBLEM = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int | None
    """None: none came."""
    media: str = ""
    headers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    body: JsonValue = None
    """JSON; a list of events as `[name, data]`; bytes as `{"bytes": hex}`."""
    failure: str = ""

    def value(self) -> dict[str, Any]:
        """As JSON, in which two answers can be compared key by key."""
        return {
            "status": self.status,
            "media": self.media,
            "headers": {name: list(words) for name, words in self.headers},
            "body": self.body,
            "failure": bool(self.failure),
        }


def normalized(response: httpx.Response, content: bytes, brain: str) -> Answer:
    """What is left without moments, durations, words for people and the brain's id."""
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    headers = tuple(
        (name, _words(response.headers[name])) for name in _HEADERS if name in response.headers
    )
    body = _body(media, content, brain)
    # A HEAD may tell the media type that GET would give, or not: no rule says.
    told = "" if response.request.method == "HEAD" else media
    return Answer(response.status_code, told, headers, body)


def _words(value: str) -> tuple[str, ...]:
    words = {word.strip().lower() for word in value.split(",")}
    return tuple(sorted(words.difference(_UNSETTLED)))


def _body(media: str, content: bytes, brain: str) -> JsonValue:
    if media == "text/event-stream":
        return [[name, _plain(data, brain)] for name, data in _events(content)]
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
        return {key: _plain(each, brain) for key, each in kept.items()}
    if isinstance(value, list):
        return [_plain(each, brain) for each in value]
    return "{brainId}" if value == brain else value


def _events(content: bytes) -> list[tuple[str, JsonValue]]:
    """The events of a stream; pings, which come when they will, are left out."""
    found: list[tuple[str, JsonValue]] = []
    for block in content.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n"):
        fields = [line.partition(":")[::2] for line in block.split("\n") if line]
        name = next((value.strip() for key, value in fields if key == "event"), "")
        data = "\n".join(value.removeprefix(" ") for key, value in fields if key == "data")
        if not fields or name == "ping":
            continue
        try:
            found.append((name, json.loads(data)))
        except ValueError:
            found.append((name, data))
    return found
