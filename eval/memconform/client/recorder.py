"""Records exchanges with a daemon, so that those of a failing question can be shown."""

import shlex
import string
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import httpx

from memconform.client.content_encoding import BodyDecoder

BODY_LIMIT = 256 * 1024
"""Bytes kept of a response body: an endless stream must not fill the memory."""

LONGEST_INLINE = 8 * 1024
"""Bytes that a command has in itself; longer parts are in files. A shell takes 128 KiB for one
argument, in which quoting makes up to five bytes of one."""

LONGEST_LONE = 64 * 1024
"""Bytes of a quoted body in a command for which nothing keeps files."""

TOKEN_VARIABLE = "MEMCONFORM_AUTH_TOKEN"  # noqa: S105 - a variable's name
_HIDDEN_HEADERS = ("authorization", "cookie", "proxy-authorization", "x-api-key")
_OWN_HEADERS = ("content-type", "x-confirm-delete")
_CURL_DEFAULTS = ("host", "accept", "accept-encoding", "connection", "user-agent", "content-length")
"""Headers that curl sends by itself, or that mean nothing to a daemon."""


@dataclass(slots=True)
class Exchange:
    """One request and as much of its response as arrived."""

    request: httpx.Request
    open: bool = False
    """Whether the request's headers hold no secrets, so that they are shown unmasked."""
    status_line: str = ""
    response_headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    """The response body without its content encoding, up to `BODY_LIMIT` bytes."""
    truncated: bool = False
    events: list[tuple[str, str]] = field(default_factory=list)
    """Names and data of a stream's events, if a reader decoded them."""
    _decoder: BodyDecoder = field(default_factory=BodyDecoder)

    def begin_response(self, response: httpx.Response) -> None:
        self.status_line = f"HTTP/1.1 {response.status_code} {response.reason_phrase}"
        self.response_headers = list(response.headers.multi_items())
        self._decoder = BodyDecoder(response.headers.get("content-encoding", ""))

    def add_body(self, piece: bytes) -> None:
        if self.truncated:
            return
        # Decoded, because a secret in compressed bytes could not be masked; inflates no more than
        # is kept, plus one byte that shows there is more.
        room = BODY_LIMIT - len(self.body)
        decoded = self._decoder.decode(piece, room + 1)
        self.body += decoded[:room]
        self.truncated = len(decoded) > room

    def add_event(self, name: str, data: str) -> None:
        if not self.truncated:
            self.events.append((name, data))

    def curl(self) -> str:
        """A shell command that repeats the request; a token appears as its variable only."""
        request = self.request
        method = ["-I"] if request.method == "HEAD" else ["-X", request.method]
        parts = ["curl", "-sS", "-N", "-i", *method]
        address, headers, variables = self._address(), [], []
        for name, value in request.headers.items():
            if name in _OWN_HEADERS or (self.open and name not in _CURL_DEFAULTS):
                headers.append(f"{name}: {value}")
            elif name == "authorization" and value.startswith("Bearer "):
                variables += ["-H", f'"Authorization: Bearer ${TOKEN_VARIABLE}"']
            elif name not in _CURL_DEFAULTS:
                headers.append(f"{name}: {_masked(name, value)}")
        if self._is_verbatim:
            parts += ["--path-as-is", "-g"]
        if len(address) + sum(map(len, headers)) > LONGEST_INLINE:
            options = [("url", address), *(("header", header) for header in headers)]
            text = "".join(map(_config_line, options))
            parts += ["-K", shlex.quote(kept_file(text.encode())), *variables]
        else:
            parts += [shlex.quote(address), *variables]
            parts += [part for header in headers for part in ("-H", shlex.quote(header))]
        if not request.content:
            return " ".join(parts)
        limit = LONGEST_LONE if _keep.get() is None else LONGEST_INLINE
        body = inline = None
        if len(request.content) <= limit:
            body = printable_text(request.content)
            inline = printf(request.content) if body is None else shlex.quote(body)
        if inline is None or len(inline.encode()) > LONGEST_LONE:
            file = f"@{shlex.quote(kept_file(request.content))}"
            return " ".join([*parts, "--data-binary", file])
        if body is not None:
            return " ".join([*parts, "--data-raw", inline])
        return " ".join([inline, "|", *parts, "--data-binary", "@-"])

    def _value(self, name: str, value: str) -> str:
        return value if self.open else _masked(name, value)

    @property
    def _is_verbatim(self) -> bool:
        """Whether curl must not normalize dots or expand brackets, because nobody did."""
        return "target" in self.request.extensions

    def _address(self) -> str:
        if not self._is_verbatim:
            return str(self.request.url)
        base = str(self.request.url.copy_with(raw_path=b"/")).rstrip("/")
        return base + str(self.request.extensions["target"].decode("latin-1"))

    def transcript(self) -> bytes:
        """The exchange as bytes: request lines prefixed with `>`, then the response."""
        request = self.request
        target = request.extensions.get("target", request.url.raw_path)
        lines = [f"{request.method} {target.decode('latin-1')} HTTP/1.1"]
        lines += [f"{name}: {self._value(name, value)}" for name, value in request.headers.items()]
        decoder = BodyDecoder(request.headers.get("content-encoding", ""))
        if len(request.content) > LONGEST_INLINE and _keep.get() is not None:
            lines += ["", f"({len(request.content):,} bytes, in {kept_file(request.content)})"]
        else:
            content = decoder.decode(request.content, max(BODY_LIMIT, len(request.content)))
            lines += ["", content.decode("utf-8", "replace")]
        lines += [f"({decoder.note})"] if decoder.note else []
        head = [f"# {self.curl()}", *(f"> {line}" for line in lines)]
        head += ["", self.status_line or "(no answer)"]
        head += [f"{name}: {_masked(name, value)}" for name, value in self.response_headers]
        end = b"\n(truncated here)\n" if self.truncated else b"\n"
        end += f"({self._decoder.note})\n".encode() if self._decoder.note else b""
        return "\n".join([*head, "", ""]).encode() + bytes(self.body) + end


def printable_text(data: bytes) -> str | None:
    """Decode `data` if a terminal can show it verbatim; None otherwise."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.replace("\n", "").isprintable() else None


_PLAIN = string.ascii_letters + string.digits + " !#$&()*+,-./:;<=>?@[]^_{|}~"
# Precomputed, because bodies may be several MiB.
_PRINTF = [chr(byte) if chr(byte) in _PLAIN else f"\\{byte:03o}" for byte in range(256)]


def printf(data: bytes) -> str:
    """A shell command that writes `data` exactly, whatever its bytes."""
    return f"printf '{''.join(map(_PRINTF.__getitem__, data))}'"


def _config_line(option: tuple[str, str]) -> str:
    """A line of a file for `curl -K`."""
    name, value = option
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name} = "{escaped}"\n'


_keep: ContextVar[Callable[[bytes], str] | None] = ContextVar("keep", default=None)


@contextmanager
def keep_bodies(keep: Callable[[bytes], str]) -> Iterator[None]:
    """In the block, commands read what is too long for them from files.

    `keep` writes such a file, and returns its path as commands name it.
    """
    token = _keep.set(keep)
    try:
        yield
    finally:
        _keep.reset(token)


def kept_file(data: bytes) -> str:
    """The file that holds `data`; outside of `keep_bodies` a name that says what it would hold."""
    keep = _keep.get()
    return keep(data) if keep is not None else f"FILE-OF-{len(data)}-BYTES"


def _masked(name: str, value: str) -> str:
    return "(hidden)" if name.lower() in _HIDDEN_HEADERS else value


_recording: ContextVar[list[Exchange] | None] = ContextVar("recording", default=None)


@contextmanager
def record_exchanges() -> Iterator[list[Exchange]]:
    """Collect every exchange begun in the block, in order; tasks started there are included."""
    exchanges: list[Exchange] = []
    token = _recording.set(exchanges)
    try:
        yield exchanges
    finally:
        _recording.reset(token)


def begin_exchange(request: httpx.Request) -> Exchange | None:
    """Begin an exchange inside `record_exchanges`; None outside of it."""
    exchanges = _recording.get()
    if exchanges is None:
        return None
    exchange = Exchange(request)
    exchanges.append(exchange)
    return exchange
