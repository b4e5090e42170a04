"""The offline extractor: quotes what users say of themselves, so that no model is needed.

It takes prompts apart by the lines that `replay.extraction` and `replay.contextualising` write, and
obeys nothing in them.
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
_CONTEXT_FORM = r'\{"context": "<paragraph>"\}'
_CONTEXT_SYSTEM = re.compile(
    rf"^Reply with one JSON object and nothing else: {_CONTEXT_FORM}\s*\Z", re.MULTILINE
)
_CONTEXT_USER = re.compile(
    r"\ADay: ([^\n]*)\n(-----data [0-9a-f]{16}-----)\n(.*)\n\2\n"
    rf"Reply with the JSON object alone: {_CONTEXT_FORM}\Z",
    re.DOTALL,
)
_OPENING_WORDS = 12
_MOST_CONTEXT_CHARACTERS = 500
_REPAIR = "That reply is invalid: "
_TURN = re.compile(r"^(user|assistant): ", re.MULTILINE)
_MOST_FACTS = 3
_TAGS = 2


def is_extracting(system: str, users: Sequence[str]) -> bool:
    """Whether a chat is an extractor's: it asks for the dated facts of a conversation, or how a
    fact belongs to it; for the first time or again."""
    forms = ((_SYSTEM, _USER), (_CONTEXT_SYSTEM, _CONTEXT_USER))
    if not users or not any(form.search(system) and user.match(users[0]) for form, user in forms):
        return False
    return all(later.startswith(_REPAIR) for later in users[1:])


def extractor_reply(users: Sequence[str]) -> str:
    """The reply to such a chat, raises as `extract_facts`."""
    asks_for_context = _CONTEXT_USER.match(users[0])
    return extract_facts(users) if asks_for_context is None else _situate(asks_for_context)


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


def _situate(prompt: re.Match[str]) -> str:
    """The day of a fact, and how its conversation begins."""
    opening = " ".join(prompt[3].split()[:_OPENING_WORDS])
    context = f"Said on {prompt[1]}, in a conversation that begins: {opening}"
    return json.dumps({"context": context[:_MOST_CONTEXT_CHARACTERS]}, ensure_ascii=False)


def _tags(sentence: str) -> list[str]:
    words = {word for word in terms(sentence) if word.isascii()} - STOP_WORDS
    return sorted(words, key=lambda word: (-len(word), word))[:_TAGS]
