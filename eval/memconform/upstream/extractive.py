"""What the upstream says when it is not scripted: it answers with a sentence of the notes."""

import json
import re
from dataclasses import dataclass
from importlib import resources

from memconform.contract.terms import terms

NO_ANSWER = "No information available."

STOP_WORDS = frozenset(
    resources.files("memconform.upstream").joinpath("stopwords.txt").read_text().split()
)

_NOTE = re.compile(r"^\[(\d+)\] .*$", re.MULTILINE)
_QUESTION = re.compile(r"(?:\A|\n)Question: ")
_DATE_LINE = re.compile(r"^Date of the question: .*$", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]?")
_WANTS_SCORES = '{"scores"'


@dataclass(frozen=True, slots=True)
class _Prompt:
    question: str
    notes: list[tuple[str, str]]
    """Number (empty where notes are not numbered) and text."""


def _parse(user: str) -> _Prompt:
    """Split a user message into question and notes.

    Our daemons send the messages of rule ask.reader.prompt; of any other prompt the last line
    is the question and the rest one note.
    """
    marks = list(_QUESTION.finditer(user))
    if marks:
        question, body = user[marks[-1].end() :], user[: marks[-1].start()]
    else:
        body, _, question = user.rstrip().rpartition("\n")
    heads = list(_NOTE.finditer(body))
    if not heads:
        return _Prompt(question, [("", _DATE_LINE.sub("", body))])
    ends = [head.start() for head in heads[1:]] + [len(body)]
    return _Prompt(
        question,
        [
            (head[1], _DATE_LINE.sub("", body[head.end() : end]))
            for head, end in zip(heads, ends, strict=True)
        ],
    )


def complete(system: str, user: str) -> str:
    """The reply to a chat: a sentence of the notes with its note's number, or their scores."""
    prompt = _parse(user)
    wanted = set(terms(prompt.question)) - STOP_WORDS
    if _WANTS_SCORES in system:
        return json.dumps({"scores": [_shared(wanted, text) for _, text in prompt.notes]})
    best, best_score = NO_ANSWER, 0
    for number, text in prompt.notes:
        for sentence in _SENTENCE.findall(text):
            score = _shared(wanted, sentence)
            if score > best_score:
                cited = f" [{number}]" if number else ""
                best, best_score = sentence.strip() + cited, score
    return best


def lexical_scores(query: str, documents: list[str]) -> list[float]:
    """The share of the query's terms that each document has, in [0, 1]."""
    wanted = set(terms(query))
    return [_shared(wanted, document) / max(len(wanted), 1) for document in documents]


def _shared(wanted: set[str], text: str) -> int:
    return len(wanted.intersection(terms(text)))
