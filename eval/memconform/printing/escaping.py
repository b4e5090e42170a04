r"""Escapes text that comes from a daemon or a file, for terminals, CI logs, Markdown and XML.

Every character that controls a terminal, reorders text or is invisible becomes its Python escape
(`\x1b`, `\u202e`), so that readers see that it was there. Markers of CI commands are escaped too.
Backslashes are unchanged, which makes every function here idempotent.
"""

import re
import unicodedata

from memconform.redaction import redact

_INVISIBLE = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | {*range(0x180B, 0x1810), *range(0xE0100, 0xE01F0)}
)
"""Code points that Unicode calls printable, but that are drawn as nothing or as a blank."""

_INVISIBLE_CLASS = re.compile(f"[{''.join(map(chr, sorted(_INVISIBLE)))}]")

_COMMAND = re.compile(r"(##(?:vso|teamcity)?)\[|^([^\S\n]*:):", re.IGNORECASE | re.MULTILINE)
"""GitHub recognizes `::command` at the start of a line, after white space. `##[command]` (GitHub,
Azure), `##vso[` (Azure) and `##teamcity[` are recognized anywhere in a line."""

COMMAND_MARK = 12
"""Length in characters of the longest marker: a stream must remember that much of its line."""

_PLAIN = re.compile(r"[\x20-\x7e\n\t]*")


class Lines(str):
    """Text of several lines. Any other string is printed as one line."""

    __slots__ = ()


def escape_lines(text: str) -> str:
    """Escape text of several lines; line ends and tabs stay, CR LF becomes LF."""
    if not _PLAIN.fullmatch(text):
        text = text.replace("\r\n", "\n")
        text = "".join(c if c in "\n\t" or _is_safe(c) else _escape(c) for c in text)
    return disarm_commands(text)


def escape_line(text: str) -> str:
    r"""Escape text that must stay on one line: line ends and tabs become `\n`, `\r`, `\t`."""
    if not text.isprintable() or _INVISIBLE_CLASS.search(text):
        text = "".join(c if _is_safe(c) else _escape(c) for c in text)
    return disarm_commands(text)


def disarm_commands(text: str) -> str:
    """Escape the last character of each marker that a CI server takes for a command."""
    return _COMMAND.sub(_disarm, text)


def printable(text: str) -> str:
    """Redact and escape text, so that it is safe to show; one line unless it is `Lines`."""
    clean = redact(text)
    return escape_lines(clean) if isinstance(text, Lines) else escape_line(clean)


def indent(text: str, prefix: str) -> Lines:
    """Redact and escape lines, and put `prefix` before each, which marks them as foreign."""
    lines = escape_lines(redact(text)).split("\n")
    return Lines("\n".join(f"{prefix}{line}" for line in lines))


_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#&~])|(:)(?=//)|(?<!\w)(@)(?=\w)")


def escape_markdown(text: str) -> str:
    """Return one line that Markdown shows literally: no markup, HTML, entity, link or mention."""
    line = printable(re.sub(r"[ \t\r\n]+", " ", redact(text)))
    return _MARKDOWN.sub(lambda match: "&#64;" if match[3] else f"\\{match[0]}", line)


_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _is_safe(character: str) -> bool:
    if ord(character) in _INVISIBLE:
        return False
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escape(character: str) -> str:
    if character.isascii():
        return _NAMED.get(character) or f"\\x{ord(character):02x}"
    return character.encode("ascii", "backslashreplace").decode()


def _disarm(match: re.Match[str]) -> str:
    return f"{match[2]}\\x3a" if match[1] is None else f"{match[1]}\\x5b"
