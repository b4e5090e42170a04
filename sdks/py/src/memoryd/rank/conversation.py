"""The ranking of conversations: chunks gain by those around them, and by how turns are taken."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

_BEFORE, _AFTER = 0.7, 0.6
"""What the terms of the chunks before count for, and those of the chunks after, once a step."""
_STEPS = 4
_BESIDE = 0.5
"""What z of the chunks right before and right after counts for."""
_VECTORS, _SPEAKER, _LENGTH, _REPLY = 1.4, 2.0, 2.0, 1.0
_LONGEST = 300
"""Code points from which on a text gains nothing by its length."""
_LEAST_DEVIATION = 1e-9


class Turns:
    """Chunks, session by session, in the order of each session. Immutable.

    The weights were fitted by scripts/fit_conversation.py: docs/BENCH.md.
    """

    def __init__(self, sessions: Places, sizes: Places, asks: Flags) -> None:
        """Take for each chunk its session's number, its code points, and whether it has a `?`."""
        self._sessions = sessions
        ones = np.ones(len(sessions))
        first = self._nearby(ones, 1) == 0
        alone = first & (self._nearby(ones, -1) == 0)
        asked = np.where(first, 1.0, self._nearby(asks.astype(np.float64), 1))
        lengths = np.log(np.minimum(sizes, _LONGEST) / _LONGEST)
        self.lengths: Scores = np.where(alone, 0.0, lengths)
        """0 for a text of 300 code points or more, and less for a shorter one."""
        self.replies: Scores = np.where(alone, 0.0, asked - asks)
        """1 for what follows a question or begins a session, less 1 for a question."""

    def _nearby(self, values: Scores, steps: int) -> Scores:
        """The value of the chunk that many steps before each, or after it; 0 if there is none."""
        nearby = np.zeros(len(values))
        count = abs(steps)
        same = self._sessions[count:] == self._sessions[:-count]
        if steps > 0:
            nearby[count:] = np.where(same, values[:-count], 0)
        else:
            nearby[:-count] = np.where(same, values[count:], 0)
        return nearby

    def words(self, terms: Iterable[tuple[Places, Scores]]) -> Scores:
        """The sum over `terms` of the best around each chunk: where each occurs, and its scores."""
        total = np.zeros(len(self._sessions))
        for places, scores in terms:
            best = np.zeros(len(total))
            best[places] = scores
            for steps in range(1, _STEPS + 1):
                self._spread(best, places, steps, _BEFORE**steps * scores)
                self._spread(best, places, -steps, _AFTER**steps * scores)
            total += best
        return total

    def _spread(self, best: Scores, places: Places, steps: int, scores: Scores) -> None:
        targets = places + steps
        inside = (targets >= 0) & (targets < len(best))
        inside[inside] = self._sessions[targets[inside]] == self._sessions[places[inside]]
        targets = targets[inside]
        best[targets] = np.maximum(best[targets], scores[inside])

    def vectors(self, cosines: Scores) -> Scores:
        """How far each cosine is above the mean, and half of that of the chunks beside it."""
        centred = cosines - cosines.mean()
        deviation = np.sqrt((centred**2).mean())
        if deviation < _LEAST_DEVIATION:
            return np.zeros(len(cosines))
        z: Scores = centred / deviation
        return z + _BESIDE * (self._nearby(z, 1) + self._nearby(z, -1))

    def scores(self, words: Scores, vectors: Scores | None, named: Flags) -> Scores:
        """The score of each chunk, not rounded; `named` are those whose speaker is named."""
        total = words + _SPEAKER * named + _LENGTH * self.lengths + _REPLY * self.replies
        return total if vectors is None else total + _VECTORS * vectors
