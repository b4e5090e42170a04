"""Front matter: `key: scalar` and `key: [a, b]` lines between two `---` lines, strings only."""

import re
from dataclasses import dataclass, field

_LINE = re.compile(r"([A-Za-z0-9_.-]+):[ \t]*(.*)")

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
        return [_scalar(item.strip(" \t")) for item in inner.split(",")] if inner else []
    return _scalar(raw)


def _scalar(raw: str) -> str:
    quoted = len(raw) >= 2 and raw[0] == raw[-1] and raw[0] in "\"'"
    return raw[1:-1] if quoted else raw
