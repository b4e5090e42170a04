"""What went over the wire, kept for the question that fails."""

import shlex
import string
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import httpx

from memconform.client.decoding import BodyDecoder

BODY_LIMIT = 256 * 1024
"""Bytes of an answer that are kept: an endless stream must not fill the memory."""

TOKEN_VARIABLE = "MEMCONFORM_AUTH_TOKEN"  # noqa: S105 - a variable's name
_HIDDEN_HEADERS = ("authorization", "cookie", "proxy-authorization", "x-api-key")
_OWN_HEADERS = ("content-type", "x-confirm-delete")
_CURLS_OWN = ("host", "accept", "accept-encoding", "connection", "user-agent", "content-length")
"""What curl sends by itself, or what means nothing to a daemon."""


@dataclass(slots=True)
class Exchange:
    """One request and what came back, as far as it came."""

    request: httpx.Request
    open: bool = False
    """Whether its headers are nobody's secret, and shown as they are."""
    status_line: str = ""
    response_headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    """What came, as far as it is kept, without its content encoding."""
    truncated: bool = False
    events: list[tuple[str, str]] = field(default_factory=list)
    """Names and data of a stream's events, where its reader has decoded them."""
    _decoder: BodyDecoder = field(default_factory=BodyDecoder)

    def begin_response(self, response: httpx.Response) -> None:
        self.status_line = f"HTTP/1.1 {response.status_code} {response.reason_phrase}"
        self.response_headers = list(response.headers.multi_items())
        self._decoder = BodyDecoder(response.headers.get("content-encoding", ""))

    def add_body(self, piece: bytes) -> None:
        if self.truncated:
            return
        # A secret in what is compressed could not be masked; no more is inflated than is kept.
        room = BODY_LIMIT - len(self.body)
        decoded = self._decoder.decode(piece, room + 1)
        self.body += decoded[:room]
        self.truncated = len(decoded) > room

    def add_event(self, name: str, data: str) -> None:
        if not self.truncated:
            self.events.append((name, data))

    def curl(self) -> str:
        """A command that repeats the request; a token is named by its variable, never shown."""
        request = self.request
        method = ["-I"] if request.method == "HEAD" else ["-X", request.method]
        parts = ["curl", "-sS", "-N", "-i", *method, *self._address()]
        for name, value in request.headers.items():
            if name in _OWN_HEADERS or (self.open and name not in _CURLS_OWN):
                parts += ["-H", shlex.quote(f"{name}: {value}")]
            elif name == "authorization" and value.startswith("Bearer "):
                parts += ["-H", f'"Authorization: Bearer ${TOKEN_VARIABLE}"']
            elif name not in _CURLS_OWN:
                parts += ["-H", shlex.quote(f"{name}: {_shown(name, value)}")]
        if not request.content:
            return " ".join(parts)
        body = printable_text(request.content)
        if body is not None:
            return " ".join([*parts, "--data-raw", shlex.quote(body)])
        return " ".join([printf(request.content), "|", *parts, "--data-binary", "@-"])

    def _value(self, name: str, value: str) -> str:
        return value if self.open else _shown(name, value)

    def _address(self) -> list[str]:
        target = self.request.extensions.get("target")
        if target is None:
            return [shlex.quote(str(self.request.url))]
        # Sent byte by byte: curl too must not tidy dots, nor read brackets as a pattern.
        base = str(self.request.url.copy_with(raw_path=b"/")).rstrip("/")
        return ["--path-as-is", "-g", shlex.quote(base + target.decode("latin-1"))]

    def transcript(self) -> bytes:
        """The exchange as bytes: what was sent behind `>`, what came as it came."""
        request = self.request
        target = request.extensions.get("target", request.url.raw_path)
        sent = [f"{request.method} {target.decode('latin-1')} HTTP/1.1"]
        sent += [f"{name}: {self._value(name, value)}" for name, value in request.headers.items()]
        decoder = BodyDecoder(request.headers.get("content-encoding", ""))
        content = decoder.decode(request.content, max(BODY_LIMIT, len(request.content)))
        sent += ["", content.decode("utf-8", "replace")]
        sent += [f"({decoder.note})"] if decoder.note else []
        head = [f"# {self.curl()}", *(f"> {line}" for line in sent)]
        head += ["", self.status_line or "(no answer)"]
        head += [f"{name}: {_shown(name, value)}" for name, value in self.response_headers]
        end = b"\n(cut here)\n" if self.truncated else b"\n"
        end += f"({self._decoder.note})\n".encode() if self._decoder.note else b""
        return "\n".join([*head, "", ""]).encode() + bytes(self.body) + end


def printable_text(data: bytes) -> str | None:
    """`data` as a text that a terminal shows as it is; None where it is none."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.replace("\n", "").isprintable() else None


_PLAIN = string.ascii_letters + string.digits + " !#$&()*+,-./:;<=>?@[]^_{|}~"
# Made once: bodies of some MiB are told too.
_PRINTF = [chr(byte) if chr(byte) in _PLAIN else f"\\{byte:03o}" for byte in range(256)]


def printf(data: bytes) -> str:
    """A shell command that writes `data`, byte by byte whatever they are."""
    return f"printf '{''.join(map(_PRINTF.__getitem__, data))}'"


def _shown(name: str, value: str) -> str:
    return "(hidden)" if name.lower() in _HIDDEN_HEADERS else value


_recording: ContextVar[list[Exchange] | None] = ContextVar("recording", default=None)


@contextmanager
def recorded() -> Iterator[list[Exchange]]:
    """Every exchange that is begun inside, in order, tasks started there included."""
    exchanges: list[Exchange] = []
    token = _recording.set(exchanges)
    try:
        yield exchanges
    finally:
        _recording.reset(token)


def begin_exchange(request: httpx.Request) -> Exchange | None:
    """An exchange to fill in, where anybody wants it."""
    exchanges = _recording.get()
    if exchanges is None:
        return None
    exchange = Exchange(request)
    exchanges.append(exchange)
    return exchange
