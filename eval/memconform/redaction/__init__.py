r"""The single redactor: registered secrets never reach a file, a log or the terminal.

How a secret is masked depends on its length, because short strings also occur by accident:

| characters | masked |
| --- | --- |
| 8 and more | anywhere, also inside words |
| 4 to 7 | as a whole word that is not part of a path, a date or a number |
| 1 to 3 | after the name of its header or variable, if it has one |

The value of a header whose name suggests no secret is masked only after that name if it has 7
characters or fewer: a tenant `1` or a stage `smoke` is no secret, and masking it everywhere would
break results, which have such words of their own.

Words of the result format (`true`, `bm25`) are masked after such a name alone for the same reason.

Encoded forms are masked too: JSON, `\uXXXX`, `\xXX`, octal and percent escapes of any of the
characters, hexadecimal, base64 at every alignment, UTF-16. A secret that was encoded twice is not
recognized.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import IO, Any
from urllib.parse import unquote

from memconform.redaction.encodings import Unescaped, binary_patterns, text_forms

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
        *("auth", "shared-state", "robustness"),
        *("auto", "bm25", "semantic", "hybrid", "hybrid-rerank", "conversation"),
        *("ask-basic", "ask-augmented", "search-retrieve-only", "exact", "shared", "isolated"),
        *("correct", "incorrect", "abstained", "daemon_error", "protocol_error", "judge_error"),
        *("timeout", "not_run", "not_applicable", "pass", "fail", "warn", "xfail", "xpass"),
        *("untestable", "error", "killed", "survived", "untested", "must", "should"),
        *("identical", "parity", "drift", "inconclusive", "retrieval", "answer", "judgement"),
        *("judge", "right", "specific-wrong", "vague-wrong", "injected", "fake"),
        *("header", "filled", "proved", "spoilt", "query"),
        *("abstain_correct", "abstain_incorrect", "session", "fact", "bulk", "replay", "measured"),
        *("oracle", "full-context", "real-retrieval", "retrieve-only", "full", "scores"),
        *("retraction", "outcome", "text", "category", "item", "memory", "position", "both"),
        *("locomo", "longmemeval", "daemon", "control", "reader", "notes", "direct"),
        *("con-separate", "json", "round", "turn", "user", "official", "readme", "script"),
        *("passed", "failed", "skipped", "pending", "other", "CTRF"),
        *("brightgreen", "blue", "lightgrey"),
        *("question", "haystack", "case"),
        *("search", "ingest", "not_measured"),
        *("client", "conform", "http", "protocol", "connection", "unknown", "token", "idle"),
        *("deadline", "cancel", "retry", "openai", "anthropic"),
    )
)
"""Words of the result format, without which results cannot be read again; they are public.

They are one list, though rooms above define them: secrets are registered before a verb imports its
rooms, and the same secret must be masked in the same places whatever has been imported.
"""

_secrets: set[str] = set()
_named: set[tuple[str, str]] = set()
"""Names in lower case, and values that are masked after these alone."""

_NAMES = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|(?<![A-Z0-9])(?:PWD|PAT|AUTH|DSN)(?![A-Z0-9])",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(
    rf"{_NAMES.pattern}|authorization|cookie|signature"
    r"|(?<![A-Z0-9])(?:PASS|PIN|OTP|SESSION|SID|JWT|BEARER)(?![A-Z0-9])",
    re.IGNORECASE,
)
"""Names of headers whose values are secrets."""
_SCHEME = re.compile(r"(?i)\A(?:bearer|basic|token) ")
_ADDRESS = re.compile(r"(?<![\w+.-])[A-Za-z][\w+.-]*://[^\s\"<>]*[^\s\"<>',.;:)]")
"""An address within a text."""
_URL_SCHEME = re.compile(r"\s*[A-Za-z][\w+.-]*://")
_USERINFO = re.compile(r"(?<![^\s\"'=])[^\s:/\"'=]+:(?!//)[^\s\"']+(?=@[\w\[(])")
"""User info without a scheme before it, as in the DSN of a database."""
_KEY_VALUE = re.compile(
    r"(?i)(?<![a-z0-9])(password|passwd|passphrase|pwd|secret|token|api_?key)\s*=\s*"
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


def hide_credentials(value: str, *, is_address: bool = False) -> None:
    """Hide the user names and passwords in a connection string or URL.

    A value that is meant to be one address may have no scheme, or a broken one.
    """
    whole = [value] if is_address or _URL_SCHEME.match(value) else []
    addresses = [*_ADDRESS.findall(value), *whole]
    userinfos = {_split_userinfo(address)[1] for address in addresses} - {""}
    for userinfo in (*userinfos, *_USERINFO.findall(value)):
        for form in (userinfo, unquote(userinfo)):
            hide(form)
            hide(form.partition(":")[2])
    for name, password in _KEY_VALUE.findall(value):
        hide(password.strip("\"'{}"), name)


def hide_header(name: str, value: str) -> None:
    """Hide a header's value, and the credentials that follow an authentication scheme."""
    shortest = WORD if _CREDENTIALS.search(name) else ANYWHERE
    hide(value, name, shortest=shortest)
    scheme, space, credentials = value.partition(" ")
    if not space or " " in credentials:
        return
    hide(credentials, name, shortest=shortest)
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
    scheme = address[: match.end()] if (match := _URL_SCHEME.match(address)) else ""
    rest = address[len(scheme) :]
    userinfo, _, place = rest.rpartition("@")
    if ":" not in userinfo and re.search(r"[/?#\\]", userinfo):
        return scheme, "", rest
    return scheme, userinfo, place


def without_credentials(text: str) -> str:
    """Mask user info, queries and labelled passwords in addresses and any other text."""
    clean = _ADDRESS.sub(lambda match: masked_address(match[0]), text)
    clean = _USERINFO.sub(MASK, clean)
    return _KEY_VALUE.sub(lambda match: match[0].removesuffix(match[2]) + MASK, clean)


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
    texts = (*_secrets, *(f"{name}{value}{' ' * 5 * _MOST_BETWEEN}" for name, value in _named))
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
            if _has_name(key):
                clean[key] = _redact_named(key, item)
                continue
            name = masked_key = _redact_key(key)
            while name in clean:
                name = f"{masked_key} {len(clean)}"  # two secrets stay two keys
            clean[name] = redact_values(item)
        return clean
    if isinstance(value, list | tuple):
        if len(value) == 2 and _has_name(value[0]):
            return [value[0], _redact_named(*value)]
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


def _has_name(key: Any) -> bool:  # noqa: ANN401 - keys of any Python value
    """Whether a value with this key is to be masked, if it is one that was registered with it."""
    return (
        isinstance(key, str)
        # Fields of ours are in lower case, without hyphens: a header may have the name of one.
        and ("-" in key or not key.islower() or _CREDENTIALS.search(key) is not None)
        and any(key.lower() == name for name, _ in _named)
    )


def _redact_named(key: str, value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, list | tuple):
        return [_redact_named(key, item) for item in value]
    if isinstance(value, str) and (key.lower(), _SCHEME.sub("", value.strip())) in _named:
        return MASK
    return redact_values(value)


def _redact_key(key: Any) -> Any:  # noqa: ANN401 - keys of any Python dict
    if not isinstance(key, str) or _FIELD.fullmatch(key):
        return key
    return redact(key)


_MOST_BETWEEN = 10
"""The most white space, or quotes, of one kind that there is between a name and its value."""


@cache
def _patterns() -> list[re.Pattern[bytes]] | None:
    """Compile the patterns of what is masked anywhere, as a word, and after its name."""
    if not hides_anything():
        return None
    anywhere, words = set[bytes](), set[bytes]()
    for secret in _secrets:
        forms = text_forms(secret)
        if len(secret) >= ANYWHERE:
            anywhere |= {re.escape(form) for form in forms}
        else:
            words |= forms
        anywhere |= binary_patterns(secret)
    patterns = [re.compile(_any_of(anywhere), re.DOTALL)] if anywhere else []
    if words:
        plain = _any_of(map(re.escape, words))
        patterns.append(re.compile(rb"(?<![\w./-])(?:%s)(?![\w/-]|[.:]\w)" % plain))
    if _named:
        patterns.append(re.compile(_any_of(_after_name(*pair) for pair in _named)))
    return patterns


def _after_name(name: str, value: str) -> bytes:
    """The pattern of a value, its only group, as headers, variables and logs write it.

    Such are `NAME: VALUE`, `NAME=VALUE`, `{"NAME": ["VALUE"]}`, `[(b'NAME', b'VALUE')]` and
    `map[NAME:[VALUE]]`.
    """
    most = _MOST_BETWEEN
    quotes, space = rb"[\\\"']{0,%d}" % most, rb"[ \t]{0,%d}" % most
    opening = rb"(?:[\[({]\s{0,%d})?(?:b(?=[\\\"']))?" % most
    scheme = rb"(?i:(?:bearer|basic|token)[ \t])?"
    between = quotes + space + rb"(?:[:=,]|[=-]>)" + space + opening + quotes + scheme
    forms = _any_of(map(re.escape, text_forms(value)))
    # CGI and its successors write X-Pin as HTTP_X_PIN.
    written = re.escape(name.encode("utf-8", "surrogatepass")).replace(rb"\-", b"[-_]")
    return rb"(?<![\w-])(?i:(?:http_)?%s)" % written + between + rb"(%s)(?![\w-])" % forms


def _any_of(patterns: Iterable[bytes]) -> bytes:
    longest_first: list[bytes] = sorted(patterns, key=len, reverse=True)
    return b"|".join(longest_first)


def _redact_escaped(data: bytes, patterns: Iterable[re.Pattern[bytes]]) -> bytes:
    """Mask secrets of which any number of characters are escaped."""
    unescaped = Unescaped(data)
    if not unescaped.has_escapes:
        return data
    spans = [_span(match) for pattern in patterns for match in pattern.finditer(unescaped.data)]
    for first, last in reversed(_merged(spans)):
        start, end = unescaped.original_span(first, last)
        data = data[:start] + MASK.encode() + data[end:]
    return data


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first < merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        elif last > first:
            merged.append((first, last))
    return merged
