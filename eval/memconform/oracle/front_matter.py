"""Front matter and the attributes of a document (core.chunk.front-matter). Pure."""

import re
from dataclasses import dataclass, field
from typing import Any

from memconform.contract.chunking import cut

_LINE = re.compile(r"([A-Za-z0-9_.-]+):[ \t]*(.*?)[ \t]*")
_QUOTES = "\"'"


def split(text: str) -> tuple[dict[str, Any], str]:
    """Return the metadata of the front matter, and the text after it."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    if not lines or _bare(lines[0]) != "---" or not lines[0].endswith("\n"):
        return {}, text
    metadata: dict[str, Any] = {}
    for number, line in enumerate(lines[1:], 1):
        bare = _bare(line)
        if bare == "---":
            return metadata, "".join(lines[number + 1 :])
        match = _LINE.fullmatch(bare)
        if match is None:
            return {}, text
        metadata[match[1]] = _value(match[2])
    return {}, text


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _value(raw: str) -> str | list[str]:
    if raw[:1] == "[" and raw[-1:] == "]" and len(raw) > 1:
        inside = raw[1:-1].strip(" \t")
        return [_unquoted(item.strip(" \t")) for item in inside.split(",")] if inside else []
    return _unquoted(raw)


def _unquoted(raw: str) -> str:
    is_quoted = len(raw) > 1 and raw[0] in _QUOTES and raw[-1] == raw[0]
    return raw[1:-1] if is_quoted else raw


@dataclass(frozen=True, slots=True)
class Attributes:
    """What an ingest gives a document besides its bytes."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Indexed:
    """What a document contributes to search."""

    chunks: tuple[str, ...]
    title: str | None
    tags: tuple[str, ...]
    metadata: dict[str, Any]


def index(content: bytes, attributes: Attributes) -> Indexed:
    """Read a document; bytes that are not UTF-8 have no chunks (core.ingest.hidden)."""
    try:
        given, text = split(content.decode())
    except UnicodeDecodeError:
        given, text = {}, ""
    title, tags = given.get("title"), given.get("tags")
    if attributes.title is not None:
        title = attributes.title
    if attributes.tags is not None:
        tags = list(attributes.tags)
    return Indexed(
        tuple(piece.decode() for piece in cut(text.encode())),
        title if isinstance(title, str) else None,
        tuple(tags) if isinstance(tags, list) else (),
        given | attributes.metadata,
    )
