"""The evidence of a reader's prompt: where it begins, and how it is split into notes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Note = tuple[str, str]
"""Number, empty unless the prompt marks its notes as [1], [2], …; and text."""

Style = Literal["tag", "heading", "label", "numbers"]

_ADJECTIVE = (
    r"(?:the|all|your|user|user's|retrieved|relevant|recalled|supporting|stored|related|source"
    r"|search|history|chat|conversation|reference|knowledge|long-term)"
)
_NOUN = (
    r"(?:evidence|notes?|contexts?|documents?|sources?|passages?|excerpts?|snippets?|chunks?|facts?"
    r"|memory|memories|history|chats?|results?|references)"
)
_NAME = rf"(?:{_ADJECTIVE}[ _-]+){{0,3}}{_NOUN}(?:[ \t]*\(\d+\))?"
_BOLD = r"(?:\*\*|__)?"
_FLAGS = re.MULTILINE | re.IGNORECASE

_HEADING = re.compile(rf"^(#{{1,6}})[ \t]+{_BOLD}{_NAME}{_BOLD}[ \t]*:?[ \t]*$", _FLAGS)
_LABEL = re.compile(rf"^[ \t]*{_BOLD}{_NAME}{_BOLD}[ \t]*:{_BOLD}[ \t]*(?:\(?none\)?\.?)?$", _FLAGS)
_NESTED = re.compile(rf"(?:[ \t]*\n)*(?:{_HEADING.pattern}|{_LABEL.pattern})", _FLAGS)
"""A mark that follows a mark, as in `History Chats:` and `Retrieved facts (3):`."""
_NUMBERS = re.compile(r"^(?=\[1\][ \t]*\S)", re.MULTILINE)
_INLINE = re.compile(rf"^[ \t]*{_BOLD}{_NAME}{_BOLD}[ \t]*:{_BOLD}[ \t]*(?=\S)", _FLAGS)

_EMPTY = re.compile(
    r"\(?(?:none|empty|nothing|no (?:[\w-]+ ){0,3}(?:found|available|retrieved|provided|matched))"
    r"\.?\)?",
    re.IGNORECASE,
)
_ITEM = "document|doc|note|passage|source|memory|fact|chunk|snippet|excerpt|result|item"
_ELEMENT = re.compile(rf"<({_ITEM})(?:\s[^<>]*)?>", re.IGNORECASE)
_TAG = re.compile(rf"^[ \t]*<((?:{_ADJECTIVE}[_-]){{0,3}}{_NOUN}|{_ITEM})(?:[ \t][^<>]*)?>", _FLAGS)
_CONTENT = re.compile(r"<(document_content|content|text|body)(?:\s[^<>]*)?>", re.IGNORECASE)

_TITLED = re.compile(r"^#{2,6}[ \t]+.*\([^()\n]+\)[ \t]*$", re.MULTILINE)
_BRACKETED = re.compile(r"^\[(\d{1,6})\][ \t]*(.*)$", re.MULTILINE)
_LABELLED = re.compile(r"^[ \t]*(\d{1,6})[.)][ \t]+(?:\[[^\[\]\n]*\][ \t]*)+(.*)$", re.MULTILINE)
_NUMBERED = re.compile(r"^[ \t]*(\d{1,6})[.)][ \t]+(.*)$", re.MULTILINE)
_LABELS = re.compile(r"(?:\[[^\[\]\n]*\][ \t]*)+")
_PATH = re.compile(r"(?:\S*/\S+|\S+\.\w{1,5})(?:[ \t]+\(.*\))?|.*\([^()]*[/.][^()]*\)")
"""The head of a note that names its document; any other is the beginning of its text."""
_LONGEST_PATH = 300
"""Characters. The pattern of a path would take long on longer text."""


@dataclass(frozen=True, slots=True)
class Section:
    """A place in a prompt at which evidence begins."""

    start: int
    end: int
    """Where the marker ends and the evidence begins."""
    style: Style
    level: int = 0
    """The level of a heading, from 1."""
    closed_at: int | None = None
    """Where the evidence ends; None if no mark says so."""


def sections(text: str) -> list[Section]:
    """Find the places at which evidence may begin, in order; the first is the one to read."""
    marks = [
        Section(m.start(), m.end(), "heading", level=len(m[1])) for m in _HEADING.finditer(text)
    ]
    marks += [Section(m.start(), m.end(), "label") for m in _LABEL.finditer(text)]
    closings: dict[str, int] = {}
    for match in _TAG.finditer(text):
        if match[1] not in closings:
            closings[match[1]] = text.rfind(f"</{match[1]}>")
        if closings[match[1]] >= match.end():
            marks.append(_tagged(match, closings[match[1]]))
    # Marks that other text may have by chance count only where there is no other.
    if not marks:
        marks = [Section(m.start(), m.end(), "numbers") for m in _NUMBERS.finditer(text)]
    if not marks:
        marks = [Section(m.start(), m.end(), "label") for m in _INLINE.finditer(text)]
    return sorted(marks, key=lambda section: section.start)


def _tagged(match: re.Match[str], closing: int) -> Section:
    """The section between two tags; of several items without a common element, all of them."""
    if re.fullmatch(_ITEM, match[1], re.IGNORECASE):
        return Section(match.start(), match.start(), "tag", closed_at=closing + len(match[1]) + 3)
    return Section(match.start(), match.end(), "tag", closed_at=closing)


def split_notes(text: str, section: Section) -> list[Note]:
    """Split the evidence of a section into notes; empty if it says that there are none."""
    begin = 0
    while nested := _NESTED.match(text, begin):
        begin = nested.end()
    text = text[begin:]
    if not text.strip() or _EMPTY.fullmatch(text.strip()):
        return []
    if section.style == "tag" and (items := [item for _, _, item in elements(_ELEMENT, text)]):
        return [("", _content(item)) for item in items]
    heads = min(
        (
            list(_TITLED.finditer(text)),
            _in_sequence(_BRACKETED, text),
            _in_sequence(_LABELLED, text),
        ),
        key=lambda matches: matches[0].start() if matches else len(text),
    )
    if heads:
        # Text before the first note is no note.
        return list(_notes_below(heads, text))
    if section.style == "heading":
        below = rf"^{'#' * (section.level + 1)}[ \t]+\S.*$"
        heads = list(re.finditer(below, text, re.MULTILINE))
        before = text[: heads[0].start()] if heads else text
        return [("", before)] * bool(before.strip()) + list(_notes_below(heads, text))
    heads = _in_sequence(_NUMBERED, text)
    if heads and not text[: heads[0].start()].strip():
        return list(_notes_below(heads, text))
    return [("", text)]


def elements(opening: re.Pattern[str], text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and content of the elements that a pattern opens, outermost ones only.

    The pattern's first group is the element's name. In linear time, however many are not closed.
    """
    position, unclosed = 0, set()
    for match in opening.finditer(text):
        if match.start() < position or match[1] in unclosed:
            continue
        closing = text.find(f"</{match[1]}>", match.end())
        if closing < 0:
            unclosed.add(match[1])
            continue
        position = closing + len(match[1]) + len("</>")
        yield match.start(), position, text[match.end() : closing]


def _content(element: str) -> str:
    return next((content for _, _, content in elements(_CONTENT, element)), element)


def _in_sequence(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The matches that are numbered 1, 2, 3, …; others belong to the text of a note."""
    heads: list[re.Match[str]] = []
    for match in pattern.finditer(text):
        if int(match[1]) == len(heads) + 1:
            heads.append(match)
    return heads


def _notes_below(heads: list[re.Match[str]], text: str) -> Iterator[Note]:
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        body = text[head.end() : end]
        if head.re is _BRACKETED or head.re is _LABELLED or head.re is _NUMBERED:
            rest = _LABELS.sub("", head[2], count=1) if head[2].startswith("[") else head[2]
            rest = rest.strip()
            names_path = len(rest) <= _LONGEST_PATH and _PATH.fullmatch(rest)
            if not (body.strip() and names_path):
                body = f"{rest}{body}"
        yield (head[1] if head.re is _BRACKETED else "", body)
