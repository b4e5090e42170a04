"""What a request was refused for, apart from what the refusal repeats of the request.

Parameters are known by their names in a refusal. Validators and gateways repeat the request beside
the error, whole or in part, under keys of their own and also within texts: what is repeated was
not refused. A setting is recognized by its value, and a prompt by its words.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from memconform.llm.chat import ChatRequest

_LONGEST: Final = 50_000
"""Characters of a body that are searched."""
_NEARBY: Final = 200
"""Characters on either side of a match in which the words around it are looked for."""
_QUOTE: Final = r"""\\*["'`]"""
_SETTING: Final = re.compile(
    rf"(?:{_QUOTE})?\s*[:=]\s*(?:"
    # A number, not "temperature: 0 is not supported".
    r"(?:-?\d[\d.e+-]*|null|none)\s*[,&)\]}]"
    # An object of a log, and the form of a reply, unlike an object that describes an error.
    r"|\w+\(|\{\s*\}"
    rf"|\{{\s*{_QUOTE}(?:type|name){_QUOTE}\s*:\s*{_QUOTE}(?:json_schema|reply){_QUOTE}"
    rf"|\{{\s*{_QUOTE}(?:format|schema|json_schema){_QUOTE}\s*:\s*\{{)",
    re.IGNORECASE,
)
"""What follows the name of a parameter in a request."""
_AS_TYPE: Final = re.compile(rf"\btype(?:{_QUOTE})?\s*[:=]\s*{_QUOTE}\Z", re.IGNORECASE)
"""What precedes `json_schema` as a value in a request."""
_ESCAPE: Final = re.compile(r"""\\+(?:u[0-9a-fA-F]{4}|[bfnrt"'/])""")
_MODERATED: Final = re.compile(
    r"\b(?:moderat\w+|safety|flagged|filtered|blocked|content.?(?:filter|policy|management)\w*"
    r"|responsible.?ai\w*)\b",
    re.IGNORECASE,
)


def body_text(body: object) -> str:
    """A body as JSON, also one that is nested too deeply to be written so."""
    try:
        return json.dumps(body, default=str, ensure_ascii=False)
    except RecursionError:
        return '"(nested too deeply)"'


class Refusal:
    """The body of a refusal, read beside the request that it refuses."""

    def __init__(self, details: str, request: ChatRequest) -> None:
        self._details = details[:_LONGEST]
        self._prompt = _joined(_words(" ".join(each.content for each in request.messages)))

    @property
    def is_moderated(self) -> bool:
        """Whether it is about what the prompt says."""
        return self.contains(_MODERATED)

    def contains(self, pattern: re.Pattern[str]) -> bool:
        """Whether its own words, not those of the prompt, match a pattern."""
        return any(self._own(pattern))

    def names(self, parameter: str, *, before: str = r"(?<!\w)", value: object = None) -> bool:
        """Whether it names a parameter, other than by repeating its value or the prompt.

        Args:
            parameter: the name.
            before: a pattern of what precedes it.
            value: what the request sets it to, if that may be text.
        """
        pattern = re.compile(rf"{before}{parameter}(?!\w)", re.IGNORECASE)
        sent = re.compile(rf"{_QUOTE}\s*:\s*{_QUOTE}{re.escape(str(value))}{_QUOTE}")
        return any(
            not (
                _SETTING.match(self._details, match.end())
                or sent.match(self._details, match.end())
                or _AS_TYPE.search(self._details[max(match.start() - _NEARBY, 0) : match.start()])
            )
            for match in self._own(pattern)
        )

    def _own(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches that are not among three words in a row which the prompt has, too."""
        for match in pattern.finditer(self._details):
            start, end = match.span()
            before = _words(self._details[max(start - _NEARBY, 0) : start])[-2:]
            words = [*before, *_words(match[0]), *_words(self._details[end : end + _NEARBY])[:2]]
            rows = (_joined(words[first : first + 3]) for first in range(len(words) - 2))
            if not any(row in self._prompt for row in rows):
                yield match


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", _ESCAPE.sub(" ", text).lower())


def _joined(words: list[str]) -> str:
    return f" {' '.join(words)} "
