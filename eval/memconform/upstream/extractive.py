"""The upstream's default answers: a sentence quoted from the notes of the prompt."""

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
    """Number (empty if notes are not numbered) and text."""


def _parse(user: str) -> _Prompt:
    """Split a user message into question and notes.

    The daemons of this repository send the messages of rule ask.reader.prompt. In any other prompt
    the last line is taken as the question and the rest as one note.
    """
    matches = list(_QUESTION.finditer(user))
    if matches:
        question, body = user[matches[-1].end() :], user[: matches[-1].start()]
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
    """Reply to a chat: the sentence of the notes that shares most terms with the question.

    The sentence is followed by its note's number. If the system message asks for scores, the reply
    is `{"scores": [...]}` instead, with one score per note.
    """
    prompt = _parse(user)
    query_terms = set(terms(prompt.question)) - STOP_WORDS
    if _WANTS_SCORES in system:
        return json.dumps(
            {"scores": [_count_shared(query_terms, text) for _, text in prompt.notes]}
        )
    best, best_score = NO_ANSWER, 0
    for number, text in prompt.notes:
        for sentence in _SENTENCE.findall(text):
            score = _count_shared(query_terms, sentence)
            if score > best_score:
                cited = f" [{number}]" if number else ""
                best, best_score = sentence.strip() + cited, score
    return best


def lexical_scores(query: str, documents: list[str]) -> list[float]:
    """The fraction of the query's terms that each document contains, in [0, 1]."""
    query_terms = set(terms(query))
    return [
        _count_shared(query_terms, document) / max(len(query_terms), 1) for document in documents
    ]


def _count_shared(query_terms: set[str], text: str) -> int:
    return len(query_terms.intersection(terms(text)))
