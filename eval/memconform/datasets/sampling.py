"""Selecting queries of a benchmark: by id, category, even spacing, random sample or holdout."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from memconform.datasets.haystacks import Haystack
from memconform.datasets.selection import expect_known, spread
from memconform.errors import NothingSelectedError, UsageError

Holdout = Literal["all", "tune", "held"]
"""All queries; those for tuning settings; or those held out from tuning, which is every tenth."""

_TENTH = 10


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
    """Sample each category in proportion; largest remainders are rounded up.

    The sample depends on the seed and the ids, not on the order of the file, because the published
    files of LongMemEval contain the same questions in different orders.
    """
    if size > len(rows):
        raise UsageError(
            f"a sample of {size} cannot be drawn from {len(rows)} questions",
            code="bad_selection",
            hint=f"draw {len(rows)} or fewer",
        )
    strata: dict[str, list[_Row]] = {}
    for row in rows:
        strata.setdefault(row.category, []).append(row)
    shares = {name: divmod(size * len(stratum), len(rows)) for name, stratum in strata.items()}
    missing = size - sum(quotient for quotient, _ in shares.values())
    rounded_up = sorted(shares, key=lambda name: (-shares[name][1], name))[:missing]
    return [
        row
        for name, stratum in strata.items()
        for row in sorted(stratum, key=lambda row: _sort_key(seed, row.id))[
            : shares[name][0] + (name in rounded_up)
        ]
    ]


def _sort_key(seed: int, query_id: str) -> bytes:
    """A digest, because `random` may draw differently in other versions of Python."""
    return hashlib.sha256(f"{seed}\0{query_id}".encode()).digest()
