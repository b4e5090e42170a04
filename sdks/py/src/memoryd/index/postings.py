"""Where each token occurs, in memory, and the scores of bm25."""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from memoryd.index.matrix import Slots
from memoryd.text.terms import query_terms
from memoryd.text.tokens import tokens

_K1, _B = 1.2, 0.75

Mask = npt.NDArray[np.bool_]
_Scores = npt.NDArray[np.float64]


class Postings:
    """The slots of each token, ascending, one an occurrence.

    Those of chunks that are gone stay until the slots are renumbered: only a search counts.
    """

    def __init__(self) -> None:
        self._slots: dict[bytes, array[int]] = {}
        self._lengths = array("I")
        """Tokens by slot."""

    def add(self, text: str) -> None:
        """Add the chunk of the next slot."""
        slot = len(self._lengths)
        found = tokens(text)
        for token in found:
            slots = self._slots.get(token)
            if slots is None:
                slots = self._slots[token] = array("I")
            slots.append(slot)
        self._lengths.append(len(found))

    def keep(self, taken: Mask) -> None:
        """Renumber the slots without those that are not taken."""
        numbers = np.cumsum(taken) - 1
        for token, slots in list(self._slots.items()):
            former = np.array(slots)
            kept = numbers[former[taken[former]]]
            if len(kept):
                self._slots[token] = array("I", kept.astype(np.uintc).tobytes())
            else:
                del self._slots[token]
        self._lengths = array("I", np.array(self._lengths)[taken].tobytes())

    def scores(self, query: str, taken: Mask, text_of: Callable[[int], str]) -> _Scores:
        """The score of each slot, above 0 where a term occurs; `taken` are those that hold a chunk.

        The arithmetic is in the order of FTS5's, because sums in another order differ.
        """
        scores = np.zeros(len(taken))
        for _, slots, values in self.term_scores(query_terms(query), taken, text_of):
            scores[slots] += values
        return scores

    def term_scores(
        self, terms: Iterable[str], taken: Mask, text_of: Callable[[int], str]
    ) -> Iterator[tuple[str, Slots, _Scores]]:
        """Each of `terms` that occurs, with its slots and their scores for it alone."""
        chunks = np.count_nonzero(taken)
        if not chunks:
            return
        # Copies, because an array cannot grow while numpy has a view of it.
        lengths = np.array(self._lengths)
        mean = int(lengths[taken].sum()) / chunks
        norms = _K1 * (1 - _B + _B * lengths / mean) if mean else lengths
        for term in terms:
            slots = self._occurrences(tokens(term), taken, text_of)
            if not len(slots):
                continue
            starts = np.flatnonzero(np.diff(slots, prepend=-1))
            counts = np.diff(starts, append=len(slots)).astype(np.float64)
            slots = slots[starts]
            idf = math.log((chunks - len(slots) + 0.5) / (len(slots) + 0.5))
            weight = idf if idf > 0 else 1e-6
            yield term, slots, weight * (counts * (_K1 + 1) / (counts + norms[slots]))

    def _occurrences(
        self, phrase: list[bytes], taken: Mask, text_of: Callable[[int], str]
    ) -> Slots:
        """The slots in which the tokens of a term follow each other, one an occurrence.

        A term has several tokens if it contains one of the few code points that are letters or
        numbers for the contract, and not for the tokenizer.
        """
        if not phrase or any(token not in self._slots for token in phrase):
            return np.zeros(0, np.int64)
        slots = np.array(self._slots[phrase[0]]).astype(np.int64)
        slots = slots[taken[slots]]
        if len(phrase) == 1:
            return slots
        candidates = np.unique(slots)
        times = [_count(phrase, tokens(text_of(slot))) for slot in candidates.tolist()]
        return np.repeat(candidates, times)


def _count(phrase: list[bytes], found: list[bytes]) -> int:
    starts = (place for place, token in enumerate(found) if token == phrase[0])
    return sum(found[start : start + len(phrase)] == phrase for start in starts)
