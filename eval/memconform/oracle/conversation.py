"""The ranking of conversations (core.rank.conversation.*), by words alone.

The oracle's embedder is the feature hash, with which no conversation is ranked by vectors.
"""

import math
from collections.abc import Sequence
from itertools import groupby

from memconform.contract.terms import terms
from memconform.oracle.bm25 import bm25, query_terms
from memconform.oracle.stop_words import STOP_WORDS
from memconform.oracle.store import Chunk

_BEFORE, _AFTER = 0.7, 0.6
_STEPS = 4
_LONGEST = 300


def session_of(chunk: Chunk) -> str:
    """The session of a turn; empty for a chunk that is not one."""
    session = chunk.document.metadata.get("session_id")
    return session if isinstance(session, str) else ""


def conversation(query: str, chunks: Sequence[Chunk]) -> dict[int, float]:
    """Return the unrounded score of each chunk that is near one of the query's terms."""
    asked = query_terms(query)
    counted = [term for term in asked if term not in STOP_WORDS] or asked
    texts = [chunk.text for chunk in chunks]
    of_term = {term: bm25(term, texts) for term in set(counted)}
    scores = {}
    for session in _sessions(chunks):
        for place, number in enumerate(session):
            near = {
                session[place + steps]: _AFTER**steps if steps > 0 else _BEFORE**-steps
                for steps in range(-_STEPS, _STEPS + 1)
                if 0 <= place + steps < len(session)
            }
            words = sum(
                max(decay * of_term[term].get(other, 0) for other, decay in near.items())
                for term in counted
            )
            if words > 0:
                before = chunks[session[place - 1]] if place else None
                turn = _turn(chunks[number], before) if len(session) > 1 else 0
                scores[number] = words + 2 * _speaks(chunks[number], asked) + turn
    return scores


def _sessions(chunks: Sequence[Chunk]) -> list[list[int]]:
    """The numbers of the chunks of each session, in order."""
    turns = [number for number, chunk in enumerate(chunks) if session_of(chunk)]
    others = [[number] for number, chunk in enumerate(chunks) if not session_of(chunk)]
    turns.sort(key=lambda n: (session_of(chunks[n]), _index(chunks[n]), *chunks[n].key))
    return [[*group] for _, group in groupby(turns, lambda n: session_of(chunks[n]))] + others


def _index(chunk: Chunk) -> float:
    value = chunk.document.metadata.get("index")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.inf
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _speaks(chunk: Chunk, asked: Sequence[str]) -> bool:
    """Whether the query names who speaks."""
    speaker = chunk.document.metadata.get("speaker")
    name = terms(speaker) if session_of(chunk) and isinstance(speaker, str) else []
    return bool(name) and set(name) <= set(asked)


def _turn(chunk: Chunk, before: Chunk | None) -> float:
    """What length and reply give a chunk that is not alone in its session."""
    length = math.log(min(len(chunk.text), _LONGEST) / _LONGEST)
    asked = before is None or "?" in before.text
    return 2 * length + asked - ("?" in chunk.text)
