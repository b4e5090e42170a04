"""The upstream's default answers: a sentence quoted from the notes of the prompt."""

import json
import re
from collections.abc import Sequence
from importlib import resources

from memconform.contract.terms import terms
from memconform.upstream.prompt_evidence import Note
from memconform.upstream.reader_prompt import read_prompt

NO_ANSWER = "No information available."

STOP_WORDS = frozenset(
    resources.files("memconform.upstream").joinpath("stopwords.txt").read_text().split()
)

_ASCII_SPACE = " \t\n\r\f\v"
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]?")
_WANTS_SCORES = '{"scores"'


_WANTS_LAST_LINE = 'on a last line that begins with "Answer:"'


def wants_scores(system: str) -> bool:
    """Whether a system message asks for one score per note, as rerankers do."""
    return _WANTS_SCORES in system


def complete(system: str, users: Sequence[str]) -> str:
    """Reply to a chat: the sentence of the notes that shares most terms with the question.

    The sentence is followed by its note's number. If the system message asks for scores, the reply
    is `{"scores": [...]}` instead, with one score per note. A last line for the answer that the
    system message asks for is the only one.

    Raises:
        UnreadablePromptError: if the prompt's question or notes cannot be told from its other text.
    """
    prompt = read_prompt(system, users)
    query_terms = set(terms(prompt.question)) - STOP_WORDS
    if wants_scores(system):
        return json.dumps(
            {"scores": [_count_shared(query_terms, text) for _, text in prompt.notes]}
        )
    begun = "Answer: " if _WANTS_LAST_LINE in system else ""
    return begun + best_sentence(prompt.question, prompt.notes)


def best_sentence(question: str, notes: Sequence[Note]) -> str:
    """The sentence that shares most terms with a question, and its note's number if it has one."""
    query_terms = set(terms(question)) - STOP_WORDS
    best, best_score = NO_ANSWER, 0
    for number, text in notes:
        for sentence in _SENTENCE.findall(text):
            score = _count_shared(query_terms, sentence)
            if score > best_score:
                cited = f" [{number}]" if number else ""
                best, best_score = sentence.strip(_ASCII_SPACE) + cited, score
    return best


def lexical_scores(query: str, documents: list[str]) -> list[float]:
    """The fraction of the query's terms that each document contains, in [0, 1]."""
    query_terms = set(terms(query))
    return [
        _count_shared(query_terms, document) / max(len(query_terms), 1) for document in documents
    ]


def _count_shared(query_terms: set[str], text: str) -> int:
    return len(query_terms.intersection(terms(text)))


_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")


def first_person_sentences(text: str) -> list[str]:
    """The sentences of a text that say something in the first person, without questions."""
    sentences = (" ".join(sentence.split()) for sentence in _SENTENCE.findall(text))
    return [each for each in sentences if _FIRST_PERSON.search(each) and not each.endswith("?")]
