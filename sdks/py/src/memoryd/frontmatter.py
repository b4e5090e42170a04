"""Front matter: `key: string` and `key: [a, b]` lines between two `---` lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_LINE = re.compile(r"([A-Za-z0-9_.-]+):(.*)")

_QUOTED = re.compile(r"""\"[^"]*"|'[^']*'""")

_QUOTED_ITEM = re.compile(rf"[ \t]*(?:{_QUOTED.pattern})[ \t]*(?=,|\Z)")

Value = str | list[str]


@dataclass(frozen=True, slots=True)
class Document:
    text: str
    metadata: dict[str, Value] = field(default_factory=dict)


def parse(content: str) -> Document:
    """Split off the front matter; if it is malformed, all of `content` is ordinary text."""
    plain = Document(content)
    if not content.startswith(("---\n", "---\r\n")):
        return plain
    metadata: dict[str, Value] = {}
    start = content.index("\n") + 1
    while start < len(content):
        end = content.find("\n", start)
        end = len(content) if end < 0 else end
        line = content[start:end].removesuffix("\r")
        start = end + 1
        if line == "---":
            return Document(content[start:], metadata)
        match = _LINE.fullmatch(line)
        if match is None:
            return plain
        metadata[match[1]] = _value(match[2].strip(" \t"))
    return plain


def _value(raw: str) -> Value:
    if raw.startswith("[") and raw.endswith("]"):
        inner = raw[1:-1].strip(" \t")
        return [_string(item.strip(" \t")) for item in _items(inner)] if inner else []
    return _string(raw)


def _items(inner: str) -> Iterator[str]:
    """Split at commas, except at those inside a quoted item."""
    start = 0
    while start <= len(inner):
        quoted = _QUOTED_ITEM.match(inner, start)
        end = quoted.end() if quoted else inner.find(",", start)
        end = len(inner) if end < 0 else end
        yield inner[start:end]
        start = end + 1


def _string(raw: str) -> str:
    return raw[1:-1] if _QUOTED.fullmatch(raw) else raw
