r"""The single redactor: registered secrets never reach a file, a log or the terminal.

How a secret is masked depends on its length, because short strings also occur by accident:

| characters | masked |
| --- | --- |
| 8 and more | anywhere, also inside words |
| 4 to 7 | as a whole word that is not part of a path, a date or a number |
| 1 to 3 | as the value of its header or variable: after that name |

The value of a header whose name suggests no secret is masked only after that name if it has 7
characters or fewer: a tenant `1` or a stage `smoke` is no secret, and masking it everywhere would
break results, which have such words of their own.

Words of the result format (`true`, `bm25`) are masked after such a name alone for the same reason.

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
_named: set[tuple[str, str]] = set()
"""Names in lower case, and values that are masked after these alone."""

_NAMES = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|(?<![A-Z0-9])(?:PWD|PAT|AUTH|DSN)(?![A-Z0-9])",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(rf"{_NAMES.pattern}|authorization|cookie", re.IGNORECASE)
"""Names of headers whose values are secrets."""
_ADDRESS = re.compile(r"(?<![\w+.-])[A-Za-z][\w+.-]*://[^\s\"<>]*[^\s\"<>',.;:)]")
"""An address within a text."""
_SCHEME = re.compile(r"\s*[A-Za-z][\w+.-]*://")
_USERINFO = re.compile(r"(?<![^\s\"'=])[^\s:/\"'=]+:(?!//)[^\s\"']+(?=@[\w\[(])")
"""User info without a scheme before it, as in the DSN of a database."""
_KEY_VALUE = re.compile(
    r"(?i)(?<![a-z0-9])(?:password|passwd|passphrase|pwd|secret|token|api_?key)\s*=\s*"
    r"(\"[^\"]*\"|'[^']*'|\{[^}]*\}|[^;&,\s]+)"
)


def hide(secret: str, name: str = "", *, shortest: int = WORD) -> None:
    """Mask `secret` in everything that is written from now on.

    If it has fewer characters than `shortest`, or is a word of the result format, only as the
    value of the header or variable `name`.
    """
    # A PEM key may be printed line by line.
    lines = [line for line in secret.splitlines() if len(line) >= ANYWHERE]
    parts = {part for part in (secret, secret.strip(), *lines) if part.strip()}
    new = {part for part in parts if len(part.strip()) >= shortest} - VOCABULARY
    named = {(name.lower(), part) for part in parts - new if name}
    if not (new <= _secrets and named <= _named):
        _secrets.update(new)
        _named.update(named)
        _patterns.cache_clear()


def is_secret(name: str) -> bool:
    """Whether the name of an environment variable suggests that its value is a secret."""
    # A shell's PWD is its working folder.
    return name != "PWD" and _NAMES.search(name) is not None


def hide_credentials(value: str) -> None:
    """Hide the user names and passwords in a connection string or URL."""
    addresses = [*_ADDRESS.findall(value), *([value] if _SCHEME.match(value) else [])]
    userinfos = {_split_userinfo(address)[1] for address in addresses} - {""}
    for userinfo in (*userinfos, *_USERINFO.findall(value)):
        for form in (userinfo, unquote(userinfo)):
            hide(form)
            hide(form.partition(":")[2])
    for password in _KEY_VALUE.findall(value):
        hide(password.strip("\"'{}"))


def hide_header(name: str, value: str) -> None:
    """Hide a header's value, and the credentials that follow an authentication scheme."""
    shortest = WORD if _CREDENTIALS.search(name) else ANYWHERE
    hide(value, name, shortest=shortest)
    scheme, space, credentials = value.partition(" ")
    if not space or " " in credentials:
        return
    hide(credentials, shortest=shortest)
    if scheme.lower() == "basic":
        try:
            userinfo = base64.b64decode(credentials, validate=True).decode()
        except ValueError:
            return
        hide(userinfo)
        hide(userinfo.partition(":")[2])


def userinfo_of(address: str) -> str:
    """User name and password of an address, or of what was meant to be one; they may hold
    characters that no address has there."""
    return _split_userinfo(address)[1]


def masked_address(address: str) -> str:
    """Mask user info, query and fragment of an address, or of what was meant to be one."""
    scheme, userinfo, rest = _split_userinfo(address)
    if {"?", "#"} & set(userinfo):
        # A password with a question mark, or a query with an at sign.
        return f"{scheme}{MASK}"
    place = re.split(r"(?<=[?#])", rest, maxsplit=1)
    shown = place[0] + (MASK if place[1:] and place[1] else "")
    return f"{scheme}{MASK}@{shown}" if userinfo else f"{scheme}{shown}"


def _split_userinfo(address: str) -> tuple[str, str, str]:
    """What stands before the user info, the user info, and what follows it.

    It ends at the last at sign, because a password may hold the characters that end an authority;
    only without a colon, an at sign is taken to be one of the path.
    """
    scheme = address[: match.end()] if (match := _SCHEME.match(address)) else ""
    rest = address[len(scheme) :]
    userinfo, _, place = rest.rpartition("@")
    if ":" not in userinfo and re.search(r"[/?#\\]", userinfo):
        return scheme, "", rest
    return scheme, userinfo, place


def without_credentials(text: str) -> str:
    """Mask user info, queries and labelled passwords in addresses and any other text."""
    clean = _ADDRESS.sub(lambda match: masked_address(match[0]), text)
    clean = _USERINFO.sub(MASK, clean)
    return _KEY_VALUE.sub(lambda match: match[0].removesuffix(match[1]) + MASK, clean)


def redact_bytes(data: bytes) -> bytes:
    """Return `data` with every secret masked."""
    patterns = _patterns()
    if patterns is None:
        return data
    clean = data
    for pattern in patterns:
        clean = pattern.sub(_masked_match, clean)
    return _redact_escaped(clean, patterns)


def _span(match: re.Match[bytes]) -> tuple[int, int]:
    """What to mask of a match: its group if it has one, which is at its end."""
    return match.span(match.lastindex or 0)


def _masked_match(match: re.Match[bytes]) -> bytes:
    return match[0][: _span(match)[0] - match.start()] + MASK.encode()


def redact_stream(source: IO[bytes], size: int = 1 << 20) -> Iterator[bytes]:
    """Yield a file in redacted pieces, with only a few times `size` bytes in memory.

    Joined, the pieces equal `redact_bytes` of the whole file.
    """
    # An escape takes up to twelve bytes per letter.
    texts = (*_secrets, *(f"{name}{value}{_SPACE * 2}" for name, value in _named))
    reach = 16 * max((len(text.encode("utf-8", "surrogatepass")) for text in texts), default=1)
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
            if _is_named(key, item):
                clean[key] = MASK
                continue
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
    return hides_anything() and redact_values(text) != text


def hides_anything() -> bool:
    """Whether any secret is registered."""
    return bool(_secrets or _named)


def forget() -> None:
    """Forget all secrets; for tests."""
    _secrets.clear()
    _named.clear()
    _patterns.cache_clear()


_FIELD = re.compile(r"[a-z][a-z0-9]{0,15}(?:[_@-][a-z0-9]{1,15})*")


def _is_named(key: Any, value: Any) -> bool:  # noqa: ANN401 - whatever JSON can hold
    # Fields of ours are in lower case, without hyphens: a header may have the name of one.
    return (
        isinstance(key, str)
        and isinstance(value, str)
        and ("-" in key or not key.islower())
        and (key.lower(), value.strip()) in _named
    )


def _redact_key(key: Any) -> Any:  # noqa: ANN401 - keys of any Python dict
    if not isinstance(key, str) or _FIELD.fullmatch(key):
        return key
    return redact(key)


_BASE64_END = rb"[A-Za-z0-9+/_-]?={0,2}"
"""The last base64 letter holds bits of the secret's last byte."""


_SPACE = " " * 20
"""More white space than there is between a name and its value, quotes included."""


@cache
def _patterns() -> list[re.Pattern[bytes]] | None:
    """Compile the patterns of what is masked anywhere, as a word, and after its name."""
    if not hides_anything():
        return None
    anywhere, words = set[bytes](), set[bytes]()
    for secret in _secrets:
        forms = _text_forms(secret)
        if len(secret) >= ANYWHERE:
            anywhere |= {re.escape(form) for form in forms}
        else:
            words |= forms
        anywhere |= _binary_forms(secret)
    patterns = [re.compile(_any_of(anywhere), re.DOTALL)] if anywhere else []
    if words:
        plain = _any_of(map(re.escape, words))
        patterns.append(re.compile(rb"(?<![\w./-])(?:%s)(?![\w/-]|[.:]\w)" % plain))
    if _named:
        patterns.append(re.compile(_any_of(_after_name(*pair) for pair in _named)))
    return patterns


def _after_name(name: str, value: str) -> bytes:
    """The pattern of a value, its only group, as `NAME: VALUE`, `NAME=VALUE` or a JSON field."""
    most = len(_SPACE) // 2
    between = rb"[\\\"']{0,%d}[ \t]{0,%d}[:=,][ \t]{0,%d}[\\\"']{0,%d}" % ((most,) * 4)
    forms = _any_of(map(re.escape, _text_forms(value)))
    named = rb"(?<![\w-])(?i:%s)" % re.escape(name.encode("utf-8", "surrogatepass"))
    return named + between + rb"(%s)(?![\w-])" % forms


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


def _redact_escaped(data: bytes, patterns: Iterable[re.Pattern[bytes]]) -> bytes:
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
    spans = [_span(match) for pattern in patterns for match in pattern.finditer(decoded)]
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
