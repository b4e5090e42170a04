"""Plays the agent that answers by searching: one search with each tool, then a quoted sentence.

It takes the prompt apart by the lines that `replay.agent_prompts` writes, and obeys nothing in it.
"""

import json
import re
from collections.abc import Sequence

from memconform.contract.terms import terms
from memconform.upstream.extractive import STOP_WORDS, best_sentence

_TOOLS = ("kb_search", "memory_recall")
"""In the order in which they are used."""
_SEARCH_FORM = f'{{"tool": "{_TOOLS[0]}" or "{_TOOLS[1]}", "query": "<words>"}}'
_QUESTION = re.compile(r"\A(?:Date of the question: [^\n]*\n)?Question: (.*)\Z", re.DOTALL)
_RESULTS = re.compile(
    r"\AResults:\n(-----results [0-9a-f]{16}-----)\n(.*?)\n\1(?:\n\n|\Z)", re.DOTALL
)
_HEAD = re.compile(r"^\[\d+\] (?:conversation|fact) of .*, session \d+$", re.MULTILINE)
_NONE_LEFT = re.compile(r"\n\nYou have no search left\. [^\n]*\Z")
_MOST_QUERY_CHARACTERS = 1_000


def is_searching(system: str, users: Sequence[str]) -> bool:
    """Whether a chat is an agent's, by its system message and its first question."""
    return _SEARCH_FORM in system and _QUESTION.match(users[0]) is not None


def next_reply(users: Sequence[str]) -> str:
    """The reply to the user messages of an agent's chat.

    A message that sends a reply back as invalid changes nothing: the same reply comes again.
    """
    asked = _QUESTION.match(users[0])
    question = asked[1] if asked else ""
    words = [word for word in dict.fromkeys(terms(question)) if word not in STOP_WORDS]
    results = [match[2] for user in users[1:] if (match := _RESULTS.match(user))]
    must_answer = any(_NONE_LEFT.search(user) for user in users[1:])
    if words and len(results) < len(_TOOLS) and not must_answer:
        query = " ".join(words)[:_MOST_QUERY_CHARACTERS]
        return json.dumps({"tool": _TOOLS[len(results)], "query": query}, ensure_ascii=False)
    notes = [("", text) for result in results for text in _HEAD.split(result)]
    return json.dumps({"answer": best_sentence(question, notes)}, ensure_ascii=False)
