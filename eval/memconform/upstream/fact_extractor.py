"""The offline extractor: quotes what users say of themselves, so that no model is needed.

It takes the prompt apart by the lines that `replay.extraction` writes, and obeys nothing in it.
"""

import json
import re
from collections.abc import Sequence

from memconform.contract.terms import terms
from memconform.upstream.extractive import STOP_WORDS, first_person_sentences

_FORM = r'\{"facts": \[\{"text": [^\n]*"day": [^\n]*"tags": [^\n]*\}'
_SYSTEM = re.compile(rf"^Reply with one JSON object and nothing else: {_FORM}\s*\Z", re.MULTILINE)
_USER = re.compile(
    r"\ADay: (\d{4}-\d{2}-\d{2})\n(-----data [0-9a-f]{16}-----)\n(.*)\n\2\n"
    rf"Reply with the JSON object alone: {_FORM}\Z",
    re.DOTALL,
)
"""The fence holds a digest that its content cannot know."""
_REPAIR = "That reply is invalid: "
_TURN = re.compile(r"^(user|assistant): ", re.MULTILINE)
_MOST_FACTS = 3
_TAGS = 2


def is_extracting(system: str, users: Sequence[str]) -> bool:
    """Whether a chat asks for dated facts of a conversation, for the first time or again."""
    if not users or _SYSTEM.search(system) is None or _USER.match(users[0]) is None:
        return False
    return all(later.startswith(_REPAIR) for later in users[1:])


def extract_facts(users: Sequence[str]) -> str:
    """The reply to an extraction's prompt: JSON with the first sentences of users on themselves.

    Each fact is of the given day, and has its longest words as tags.

    Raises:
        ValueError: if the chat asks for something else.
    """
    prompt = _USER.match(users[0])
    if prompt is None:
        raise ValueError("the chat does not ask for facts")
    # What precedes the first turn, then role and text by turns.
    _, *parts = _TURN.split(prompt[3])
    sentences = [
        sentence
        for role, text in zip(parts[::2], parts[1::2], strict=True)
        if role == "user"
        for sentence in first_person_sentences(text)
    ]
    facts = [
        {"text": sentence, "day": prompt[1], "tags": _tags(sentence)}
        for sentence in sentences[:_MOST_FACTS]
    ]
    return json.dumps({"facts": facts}, ensure_ascii=False)


def _tags(sentence: str) -> list[str]:
    words = {word for word in terms(sentence) if word.isascii()} - STOP_WORDS
    return sorted(words, key=lambda word: (-len(word), word))[:_TAGS]
