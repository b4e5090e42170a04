"""Selecting queries of a benchmark: by id, category, even spacing, random sample or holdout."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memconform.datasets.haystacks import Haystack
from memconform.datasets.selection import expect_known, spread
from memconform.errors import NothingSelectedError, UsageError

Holdout = Literal["all", "tune", "held"]
"""All queries; those for tuning settings; or those held out from tuning, which is every tenth."""

_TENTH = 10

_64_BITS = (1 << 64) - 1
_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407
"""Knuth's constants for MMIX."""


@dataclass(frozen=True, slots=True)
class QuerySelection:
    """Criteria that narrow a benchmark's queries; the defaults select all."""

    ids: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    """A query of any of these is selected."""
    limit: int | None = None
    """At most so many, evenly spaced among those that match the other criteria."""
    sample: int | None = None
    """So many, drawn at random and stratified by category."""
    seed: int = 0
    holdout: Holdout = "all"


@dataclass(frozen=True, slots=True)
class _Row:
    index: int
    """Position among all queries of the benchmark."""
    id: str
    category: str


def sample_queries(haystacks: Iterable[Haystack], selection: QuerySelection) -> frozenset[str]:
    """The ids of the selected queries; reads all haystacks without keeping them in memory.

    Raises:
        MemconformError: as `select_queries` does.
    """
    categories: dict[str, str] = {}
    for haystack in haystacks:
        categories |= {query.id: query.category for query in haystack.queries}
    return select_queries(categories, selection)


def select_queries(categories: Mapping[str, str], selection: QuerySelection) -> frozenset[str]:
    """The ids of the selected queries of a benchmark, given the category of each in its order.

    Raises:
        UsageError: if no query has a given id (`unknown_question`) or category
            (`unknown_category`), or if limit and sample are contradictory or out of range
            (`bad_selection`).
        NothingSelectedError: if no query matches (`nothing_selected`).
    """
    _require_consistent(selection)
    all_rows = [_Row(index, *query) for index, query in enumerate(categories.items())]
    counts = Counter(row.category for row in all_rows)
    expect_known(
        selection.ids,
        {row.id for row in all_rows},
        "the benchmark has no question",
        "use the ids that the loader assigns",
    )
    expect_known(
        selection.categories,
        counts,
        "the benchmark has no category",
        f"there are {', '.join(sorted(counts))}",
        code="unknown_category",
    )
    rows = [row for row in all_rows if _matches(row, selection)]
    if not rows:
        raise NothingSelectedError(
            f"none of the benchmark's {len(all_rows)} questions is selected",
            code="nothing_selected",
            hint="ids, categories and the holdout are combined: remove one of them",
        )
    if selection.limit is not None:
        rows = spread(rows, selection.limit)
    elif selection.sample is not None:
        rows = _stratified_sample(rows, selection.sample, selection.seed)
    return frozenset(row.id for row in rows)


def _require_consistent(selection: QuerySelection) -> None:
    if selection.limit is not None and selection.sample is not None:
        raise UsageError(
            "--limit and --sample contradict each other",
            code="bad_selection",
            hint="give --limit for evenly spaced questions, or --sample for a random sample",
        )
    for name, number in (("limit", selection.limit), ("sample", selection.sample)):
        if number is not None and number < 1:
            raise UsageError(
                f"a {name} of {number} selects nothing",
                code="bad_selection",
                hint=f"give --{name} 1 or more",
            )


def _matches(row: _Row, selection: QuerySelection) -> bool:
    is_held_out = row.index % _TENTH == _TENTH - 1
    return (
        (selection.holdout == "all" or is_held_out == (selection.holdout == "held"))
        and (not selection.ids or row.id in selection.ids)
        and (not selection.categories or row.category in selection.categories)
    )


def _stratified_sample(rows: list[_Row], size: int, seed: int) -> list[_Row]:
    """Sample each category in proportion.

    The sample depends on the seed and the ids, not on the order of the file, because the published
    files of LongMemEval contain the same questions in different orders.
    """
    _require_enough(rows, size)
    strata = _strata(rows)
    sizes = _allocation(strata, size)
    return [
        row
        for name, stratum in strata.items()
        for row in sorted(stratum, key=lambda row: _sort_key(seed, row.id))[: sizes[name]]
    ]


def _require_enough(rows: Sequence[_Row], size: int) -> None:
    if size > len(rows):
        raise UsageError(
            f"a sample of {size} cannot be drawn from {len(rows)} questions",
            code="bad_selection",
            hint=f"draw {len(rows)} or fewer",
        )


def _strata(rows: Iterable[_Row]) -> dict[str, list[_Row]]:
    strata: dict[str, list[_Row]] = {}
    for row in rows:
        strata.setdefault(row.category, []).append(row)
    return strata


def _allocation(strata: Mapping[str, Sequence[_Row]], size: int) -> dict[str, int]:
    """How many of each category are drawn: in proportion, largest remainders rounded up."""
    total = sum(map(len, strata.values()))
    shares = {name: divmod(size * len(stratum), total) for name, stratum in strata.items()}
    missing = size - sum(quotient for quotient, _ in shares.values())
    rounded_up = sorted(shares, key=lambda name: (-shares[name][1], name))[:missing]
    return {name: shares[name][0] + (name in rounded_up) for name in strata}


def jeffs_brain_sample(categories: Mapping[str, str], size: int, seed: int) -> list[str]:
    """The ids that `memory eval lme run` of jeffs-brain/memory draws, in the order of its draw.

    Each category, in the order of its name, is shuffled by a linear congruential generator that
    begins with the seed. Unlike ours, the sample depends on the order of the file.

    Args:
        categories: of each question by id, in the order of the file.
        size: questions to draw.
        seed: of the generator, 64 bits.

    Raises:
        UsageError: if there are fewer questions (`bad_selection`).
    """
    rows = [_Row(index, *query) for index, query in enumerate(categories.items())]
    _require_enough(rows, size)
    if size == len(rows):
        return list(categories)
    strata = _strata(rows)
    sizes = _allocation(strata, size)
    return [
        strata[name][index].id
        for name in sorted(strata)
        for index in _shuffled(len(strata[name]), sizes[name], seed)
    ]


def _shuffled(length: int, size: int, seed: int) -> list[int]:
    """The first of shuffled indices; all of them, where all are drawn, stay in order."""
    indices = list(range(length))
    if size < length:
        state = seed & _64_BITS
        for last in range(length - 1, 0, -1):
            state = (state * _MULTIPLIER + _INCREMENT) & _64_BITS
            other = (state >> 33) % (last + 1)
            indices[last], indices[other] = indices[other], indices[last]
    return indices[:size]


def _sort_key(seed: int, query_id: str) -> bytes:
    """A digest, because `random` may draw differently in other versions of Python."""
    return hashlib.sha256(f"{seed}\0{query_id}".encode()).digest()
