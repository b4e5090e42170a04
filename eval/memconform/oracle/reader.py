"""The reader `fake`, and the stream of its answer (ask.*, ask.reader.fake). Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from memconform.contract.terms import terms
from memconform.oracle.predictions import ANYTHING, Omittable
from memconform.oracle.search import Ranked
from memconform.oracle.stop_words import STOP_WORDS

NO_ANSWER: Final = "No information available."

_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]?")
_WORD = re.compile(r"[^ ]+ *")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the reader says."""

    text: str
    source: int | None
    """Index of the text that has the answer; None if no text has it."""

    @property
    def deltas(self) -> list[str]:
        """One piece for each word, with the spaces after it."""
        return _WORD.findall(self.text)


def read(question: str, texts: Sequence[str]) -> Answer:
    """Return the sentence with most distinct terms of the question, the first of several."""
    wanted = set(terms(question)) - STOP_WORDS
    best, most = Answer(NO_ANSWER, None), 0
    for number, text in enumerate(texts):
        for piece in _SENTENCE.findall(text):
            sentence = piece.strip(" \t\r\n\f\v")
            shared = len(wanted & set(terms(sentence)))
            if shared > most:
                best, most = Answer(sentence, number), shared
    return best


def stream(question: str, ranked: Sequence[Ranked], retrieve: dict[str, Any]) -> list[list[Any]]:
    """Return the events of an answer as `[name, data, id]`."""
    answer = read(question, [hit.chunk.text for hit in ranked])
    events: list[list[Any]] = [["retrieve", retrieve, ANYTHING]]
    events += [["answer_delta", {"text": delta}, ANYTHING] for delta in answer.deltas]
    if answer.source is not None:
        hit = ranked[answer.source]
        body = hit.body()
        citation = {"chunkId": body["chunkId"], "path": hit.chunk.path}
        events.append(["citation", {**citation, "title": hit.title, "score": hit.score}, ANYTHING])
    return [*events, ["done", {"ok": True, "answer": Omittable(answer.text)}, ANYTHING]]
