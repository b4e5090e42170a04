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
    """Split off the front matter; where it is malformed, all of `content` is ordinary text."""
    plain = Document(content)
    first, newline, rest = content.partition("\n")
    if first.rstrip("\r") != "---" or not newline:
        return plain
    metadata: dict[str, Value] = {}
    while rest:
        line, _, rest = rest.partition("\n")
        line = line.rstrip("\r")
        if line == "---":
            return Document(rest, metadata)
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
