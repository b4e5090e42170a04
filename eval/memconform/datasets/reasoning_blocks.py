"""Blocks of reasoning that models put before their answer, such as `<think>…</think>`."""

import re
from typing import Final

_TAG: Final = re.compile(
    r"(?P<opening><(?:think|thinking|thought|reasoning)>|\[THINK\])"
    r"|(?:</(?:think|thinking|thought|reasoning)>|\[/THINK\])",
    re.IGNORECASE,
)
"""DeepSeek, Qwen and many others write `<think>`, Mistral `[THINK]`."""

_SPACES: Final = " \t\r"
_LINE_END: Final = re.compile(r"[ \t\r]*(?:\n|\Z)")

ONLY_REASONING: Final = "reasoning without an answer behind it"
"""Why an answer is not measured: a model that was cut while it reasoned has not answered."""


def strip_reasoning(text: str) -> str:
    """The text without its blocks of reasoning; the same text if it has none.

    A block ends at the first closing tag. Chat templates often end in the opening tag, so that a
    reply has the closing one alone, at the end of a line or on its own: what precedes it is
    reasoning. A reply that begins a block and never ends it was cut before its answer: nothing is
    left of it.
    """
    parts: list[str] = []
    end = 0
    opened: int | None = None
    found = False
    for tag in _TAG.finditer(text):
        if tag["opening"]:
            opened = tag.start() if opened is None else opened
            continue
        if opened is not None:
            parts.append(text[end:opened])
        elif _is_at_line_edge(text, tag):
            parts.clear()
        else:
            continue
        end, opened, found = tag.end(), None, True
    rest = text[end:]
    if opened is not None and not "".join((*parts, text[end:opened])).strip():
        rest, found = "", True
    return "".join((*parts, rest)).strip() if found else text


def _is_at_line_edge(text: str, tag: re.Match[str]) -> bool:
    """Whether nothing but spaces is between a tag and the beginning or the end of its line."""
    start = tag.start()
    while start and text[start - 1] in _SPACES:
        start -= 1
    if start == 0 or text[start - 1] == "\n":
        return True
    return _LINE_END.match(text, tag.end()) is not None
