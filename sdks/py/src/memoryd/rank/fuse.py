"""The fusion of two rankings."""

from memoryd.rank.rank import Hit, round_score


def fuse_minmax(keyword: list[Hit], vector: list[Hit], alpha: float) -> list[Hit]:
    """`alpha` · vector + (1 - `alpha`) · keyword, each leg min-max scaled; a missing score is 0."""
    scaled_keyword, scaled_vector = _minmax(keyword), _minmax(vector)
    return [
        Hit(
            slot,
            round_score(
                alpha * scaled_vector.get(slot, 0.0) + (1.0 - alpha) * scaled_keyword.get(slot, 0.0)
            ),
        )
        for slot in scaled_keyword.keys() | scaled_vector.keys()
    ]


def fuse_reciprocal(keyword: list[Hit], vector: list[Hit], k: int) -> list[Hit]:
    """Reciprocal rank fusion with zero-based ranks: the sum of 1 / (`k` + rank)."""
    scores: dict[int, float] = {}
    for leg in (keyword, vector):
        for rank, hit in enumerate(leg):
            scores[hit.slot] = scores.get(hit.slot, 0.0) + 1.0 / (k + rank)
    return [Hit(slot, round_score(score)) for slot, score in scores.items()]


def _minmax(leg: list[Hit]) -> dict[int, float]:
    if not leg:
        return {}
    low = min(hit.score for hit in leg)
    span = max(hit.score for hit in leg) - low
    if span == 0:
        return {hit.slot: 1.0 for hit in leg}
    return {hit.slot: (hit.score - low) / span for hit in leg}
