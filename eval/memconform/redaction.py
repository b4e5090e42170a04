r"""The single redactor: registered secrets never reach a file, a log or the terminal.

How a secret is masked depends on its length, because short strings also occur by accident:

| characters | masked |
| --- | --- |
| 8 and more | anywhere, also inside words |
| 4 to 7 | as a whole word that is not part of a path, a date or a number |
| 1 to 3 | as a whole value: an entire string, quoted, or after `:` or `=` |

Words of the result format (`true`, `bm25`) are never masked, because masking them would break
results.

Encoded forms are masked too: JSON, `\uXXXX`, `\xXX`, octal and percent escapes of any of the
characters, hexadecimal, base64 at every alignment, UTF-16. A secret that was encoded twice is not
recognized.
"""

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from typing import IO, Any
from urllib.parse import unquote

ANYWHERE = 8
"""Minimum length in characters to mask a secret inside words: ordinary text does not hold it."""

WORD = 4
"""Minimum length in characters to mask a secret as a word: shorter words are too common."""

MASK = "(hidden)"

VOCABULARY = frozenset(
    (
        *("true", "false", "null", "none", "yes", "no", "on", "off", "all", "default"),
        *("memconform", "request", "candidates", "order", "score", "prompt", "deltas", "done"),
        *("attempts", "verdict"),
        *("go", "ts", "py", "own", "scripted", "real", "core", "ask", "documents", "events"),
        *("auth", "robustness", "auto", "bm25", "semantic", "hybrid", "hybrid-rerank"),
        *("ask-basic", "ask-augmented", "search-retrieve-only", "exact", "shared", "isolated"),
        *("correct", "incorrect", "abstained", "daemon_error", "protocol_error", "judge_error"),
        *("timeout", "not_run", "not_applicable", "pass", "fail", "warn", "xfail", "xpass"),
        *("untestable", "error", "killed", "survived", "untested", "must", "should"),
        *("identical", "parity", "drift", "inconclusive", "retrieval", "answer", "judgement"),
        *("judge", "right", "specific-wrong", "vague-wrong", "injected", "fake"),
        *("header", "filled", "proved", "spoilt", "query"),
        *("abstain_correct", "abstain_incorrect", "session", "fact", "bulk", "replay", "measured"),
        *("oracle", "full-context", "real-retrieval", "retrieve-only", "full", "scores"),
    )
)
"""Words of the result format, without which results cannot be read again; they are public."""

_secrets: set[str] = set()

_NAMES = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|(?<![A-Z0-9])(?:PWD|PAT|AUTH|DSN)(?![A-Z0-9])",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)|(?<![^\s\"'=])[^\s:/@\"'=]+:[^\s@/\"']+(?=@[\w\[(])")
_KEY_VALUE = re.compile(
    r"(?i)(?<![a-z0-9])(?:password|passwd|passphrase|pwd|secret|token|api_?key)\s*=\s*"
    r"(\"[^\"]*\"|'[^']*'|\{[^}]*\}|[^;&,\s]+)"
)


def hide(secret: str) -> None:
    """Mask `secret` in everything that is written from now on."""
    # A PEM key may be printed line by line.
    lines = [line for line in secret.splitlines() if len(line) >= ANYWHERE]
    new = {part for part in (secret, secret.strip(), *lines) if part.strip()} - VOCABULARY
    if not new <= _secrets:
        _secrets.update(new)
        _patterns.cache_clear()


def is_secret(name: str) -> bool:
    """Whether the name of an environment variable suggests that its value is a secret."""
    # A shell's PWD is its working folder.
    return name != "PWD" and _NAMES.search(name) is not None


def hide_credentials(value: str) -> None:
    """Hide the user names and passwords in a connection string or URL."""
    for userinfo in _USERINFO.findall(value):
        for form in (userinfo, unquote(userinfo)):
            hide(form)
            hide(form.partition(":")[2])
    for password in _KEY_VALUE.findall(value):
        hide(password.strip("\"'{}"))


def hide_header(value: str) -> None:
    """Hide a header's value, and the credentials that follow an authentication scheme."""
    hide(value)
    scheme, space, credentials = value.partition(" ")
    if not space or " " in credentials:
        return
    hide(credentials)
    if scheme.lower() == "basic":
        try:
            userinfo = base64.b64decode(credentials, validate=True).decode()
        except ValueError:
            return
        hide(userinfo)
        hide(userinfo.partition(":")[2])


def without_credentials(address: str) -> str:
    """Mask user info and labelled passwords in an address or any other text."""
    clean = _USERINFO.sub(MASK, address)
    return _KEY_VALUE.sub(lambda match: match[0].removesuffix(match[1]) + MASK, clean)


def redact_bytes(data: bytes) -> bytes:
    """Return `data` with every secret masked."""
    patterns = _patterns()
    if patterns is None:
        return data
    anywhere, bounded = patterns
    clean = anywhere.sub(MASK.encode(), data)
    clean = bounded.sub(MASK.encode(), clean) if bounded else clean
    return _redact_escaped(clean, [anywhere, bounded] if bounded else [anywhere])


def redact_stream(source: IO[bytes], size: int = 1 << 20) -> Iterator[bytes]:
    """Yield a file in redacted pieces, with only a few times `size` bytes in memory.

    Joined, the pieces equal `redact_bytes` of the whole file.
    """
    # An escape takes up to twelve bytes per letter.
    reach = 16 * max(
        (len(secret.encode("utf-8", "surrogatepass")) for secret in _secrets), default=1
    )
    buffer = b""
    while chunk := source.read(size):
        buffer += chunk
        cut = _safe_cut(buffer, reach)
        yield redact_bytes(buffer[:cut])
        buffer = buffer[cut:]
    yield redact_bytes(buffer)


def _safe_cut(data: bytes, reach: int) -> int:
    """Return the last offset at which no secret is cut in two; 0 if there is none.

    At such an offset, masking both sides separately gives the same bytes as masking the whole.
    """
    cut = len(data) - reach
    while cut > 0:
        around = data[max(0, cut - reach) : cut + reach]
        middle = min(cut, reach)
        if redact_bytes(around) == redact_bytes(around[:middle]) + redact_bytes(around[middle:]):
            return cut
        cut -= 1
    return 0


def redact(text: str) -> str:
    """Return `text` with every secret masked."""
    if _patterns() is None:
        return text
    return redact_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def redact_values(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Return `value` with every secret masked in its strings; numbers and field names stay.

    Masking the finished JSON instead could break its syntax. A key is masked like a string unless
    it looks like a field name, because a daemon may send metadata with arbitrary keys.
    """
    if _patterns() is None:
        return value
    if isinstance(value, str):
        return MASK if value.strip() in _secrets else redact(value)
    if isinstance(value, dict):
        clean: dict[Any, Any] = {}
        for key, item in value.items():
            name = masked_key = _redact_key(key)
            while name in clean:
                name = f"{masked_key} {len(clean)}"  # two secrets stay two keys
            clean[name] = redact_values(item)
        return clean
    if isinstance(value, list | tuple):
        return [redact_values(item) for item in value]
    return value


def hides(text: str) -> bool:
    """Whether a text would be masked, and so be another text in a result."""
    return bool(_secrets) and redact_values(text) != text


def hides_anything() -> bool:
    """Whether any secret is registered."""
    return bool(_secrets)


def forget() -> None:
    """Forget all secrets; for tests."""
    _secrets.clear()
    _patterns.cache_clear()


_FIELD = re.compile(r"[a-z][a-z0-9]{0,15}(?:[_@-][a-z0-9]{1,15})*")


def _redact_key(key: Any) -> Any:  # noqa: ANN401 - keys of any Python dict
    if not isinstance(key, str) or _FIELD.fullmatch(key):
        return key
    return redact(key)


_BASE64_END = rb"[A-Za-z0-9+/_-]?={0,2}"
"""The last base64 letter holds bits of the secret's last byte."""


@cache
def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes] | None] | None:
    """Compile the pattern of forms masked anywhere, and that of forms that must stand alone."""
    if not _secrets:
        return None
    anywhere, words, values = set[bytes](), set[bytes](), set[bytes]()
    for secret in _secrets:
        forms = _text_forms(secret)
        if len(secret) >= ANYWHERE:
            anywhere |= {re.escape(form) for form in forms}
        else:
            (words if len(secret) >= WORD else values).update(forms)
        anywhere |= _binary_forms(secret)
    bounded = []
    if words:
        bounded.append(rb"(?<![\w./-])(?:%s)(?![\w/-]|[.:]\w)" % _any_of(map(re.escape, words)))
    if values:
        short = _any_of(map(re.escape, values))
        bounded.append(rb"(?<=[\"'])(?:%s)(?=\\*[\"'])" % short)
        bounded.append(rb"(?<=[:=])(?:%s)(?=[\s,;&\"')}\]]|$)" % short)
        bounded.append(rb"(?<=[:=] )(?:%s)(?=[\s,;&\"')}\]]|$)" % short)
    # `(?!)` never matches; it stands in when no form is masked anywhere.
    unbounded = re.compile(_any_of(anywhere) or rb"(?!)", re.DOTALL)
    return unbounded, re.compile(b"|".join(bounded)) if bounded else None


def _any_of(patterns: Iterable[bytes]) -> bytes:
    longest_first: list[bytes] = sorted(patterns, key=len, reverse=True)
    return b"|".join(longest_first)


def _text_forms(secret: str) -> set[bytes]:
    """The secret as it is, and as JSON writes it, with quotes and other letters escaped."""
    plain = secret.encode("utf-8", "surrogatepass")
    in_json = json.dumps(secret, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    return {plain, in_json, json.dumps(secret)[1:-1].encode()}


def _binary_forms(secret: str) -> set[bytes]:
    """Patterns of encodings that do not occur in ordinary text; none for a single byte."""
    data = secret.encode("utf-8", "surrogatepass")
    if len(data) < 2:
        return set()
    # The outer zero byte of UTF-16 may be missing at the start or end of a line.
    wide = {secret.encode(e, "surrogatepass").strip(b"\0") for e in ("utf-16-le", "utf-16-be")}
    forms = {re.escape(form) + rb"\x00?" for form in wide}
    if len(data) >= WORD:
        forms |= {data.hex().encode(), data.hex().upper().encode()}
    whole = base64.b64encode(data).rstrip(b"=")
    if len(data) < WORD:
        # Too few inner letters to be distinctive.
        edge = rb"(?<![A-Za-z0-9+/_-])%s={0,2}(?![A-Za-z0-9+/_-])"
        return forms | {edge % re.escape(f) for f in (whole, whole.translate(_URLSAFE))}
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + data).rstrip(b"=")
        # Letters that also hold bits of the neighbouring bytes differ from text to text.
        inner = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
        forms |= {re.escape(f) + _BASE64_END for f in (inner, inner.translate(_URLSAFE))}
    return forms


_URLSAFE = bytes.maketrans(b"+/", b"-_")

_ESCAPED = re.compile(
    rb"\\+(?:u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}"
    rb"|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[\"'/bfnrt])|%[0-9a-fA-F]{2}"
)
_CONTROLS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def _unescape(escape: bytes) -> bytes:
    """Decode an escape sequence of JSON, Python, printf or a URL."""
    code = escape.lstrip(b"\\%")
    if code[:1] == b"u":
        units = b"".join(re.findall(rb"u([0-9a-fA-F]{4})", escape))
        text = bytes.fromhex(units.decode()).decode("utf-16-be", "surrogatepass")
        return text.encode("utf-8", "surrogatepass")
    if code[:1] == b"x" or escape[:1] == b"%":
        return bytes.fromhex(code.removeprefix(b"x").decode())
    if len(code) == 3:
        return bytes([int(code, 8)])
    return _CONTROLS.get(code, code)


def _redact_escaped(data: bytes, patterns: list[re.Pattern[bytes]]) -> bytes:
    """Mask secrets of which any number of characters are escaped."""
    decoded = bytearray()
    # Offsets of each unescaped run and of each escape: `starts` in the decoded bytes, `places` and
    # `ends` in the original.
    starts, places, ends = [], [], []
    end = 0
    for match in _ESCAPED.finditer(data):
        for begin, stop, piece in (
            (end, match.start(), data[end : match.start()]),
            (match.start(), match.end(), _unescape(match[0])),
        ):
            starts.append(len(decoded))
            places.append(begin)
            ends.append(stop)
            decoded += piece
        end = match.end()
    if not starts:
        return data
    starts.append(len(decoded))
    places.append(end)
    ends.append(len(data))
    decoded += data[end:]

    def place(index: int, *, end: bool) -> int:
        run = bisect_right(starts, index) - 1
        if run % 2 == 0:
            return places[run] + index - starts[run]
        return ends[run] if end else places[run]

    clean = data
    spans = [match.span() for pattern in patterns for match in pattern.finditer(decoded)]
    for first, last in reversed(_merged(spans)):
        clean = (
            clean[: place(first, end=False)]
            + MASK.encode()
            + clean[place(last - 1, end=True) + (_is_run(starts, last - 1)) :]
        )
    return clean


def _is_run(starts: list[int], index: int) -> int:
    """Return 1 if `index` is in an unescaped run: there `place` is the last byte, not the end."""
    return int((bisect_right(starts, index) - 1) % 2 == 0)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first < merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        elif last > first:
            merged.append((first, last))
    return merged
