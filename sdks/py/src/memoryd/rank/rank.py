"""Hits and the rounding of scores."""

import math
from typing import Literal, NamedTuple

Fusion = Literal["minmax", "rrf"]

Kernel = Literal["cosine", "inverse-l2"]


def round_score(score: float) -> float:
    """Round a score to 1e-9, the precision at which scores are compared and fused.

    Languages sum in different orders and differ in the last bits; rounding half up on the scaled
    value is plain IEEE arithmetic, so scores that should be equal are equal bit by bit.
    """
    return math.floor(score * 1e9 + 0.5) / 1e9


def inverse_l2(cosine: float) -> float:
    """1 / (1 + L2) of vectors of length 1 with this rounded cosine.

    Their distance L2 is √(2 - 2 · cosine). float32 vectors have cosines slightly above 1.
    """
    return round_score(1.0 / (1.0 + math.sqrt(max(0.0, 2.0 - 2.0 * cosine))))


class Hit(NamedTuple):
    slot: int
    score: float
