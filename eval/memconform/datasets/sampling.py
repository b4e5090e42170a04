"""Choosing queries of a benchmark: by id, by category, spread, by lot, or held out."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from memconform.datasets.haystacks import Haystack
from memconform.datasets.selection import expect_known, spread
from memconform.errors import NothingSelectedError, UsageError

Holdout = Literal["all", "tune", "held"]
"""Every query; those that settings may be chosen by; those that they may not: every tenth."""

_TENTH = 10


@dataclass(frozen=True, slots=True)
class QuerySelection:
    """What narrows a benchmark's queries; the defaults choose all."""

    ids: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    """A query of any of them is chosen."""
    limit: int | None = None
    """So many, spread over what the rest leaves; all where there are fewer."""
    sample: int | None = None
    """So many, drawn by lot, of each category its share."""
    seed: int = 0
    holdout: Holdout = "all"


@dataclass(frozen=True, slots=True)
class _Row:
    index: int
    """Among all queries of the load."""
    id: str
    category: str


def sample_queries(haystacks: Iterable[Haystack], selection: QuerySelection) -> frozenset[str]:
    """The ids of the chosen queries; reads all haystacks, and holds none.

    Raises:
        UsageError: for an id or a category that no query has, a sample that is larger than what
            it is drawn from, and for a limit together with a sample.
        NothingSelectedError: where no query is left.
    """
    _require_consistent(selection)
    every: list[_Row] = []
    for haystack in haystacks:
        for query in haystack.queries:
            every.append(_Row(len(every), query.id, query.category))
    counts = Counter(row.category for row in every)
    expect_known(
        selection.ids,
        {row.id for row in every},
        "the benchmark has no question",
        "ids are as its loader gives them",
    )
    expect_known(
        selection.categories,
        counts,
        "the benchmark has no category",
        f"there are {', '.join(sorted(counts))}",
        code="unknown_category",
    )
    rows = [row for row in every if _belongs(row, selection)]
    if not rows:
        raise NothingSelectedError(
            f"of {len(every)} questions of the benchmark none is selected",
            code="nothing_selected",
            hint="ids, categories and the holdout narrow together: leave one of them out",
        )
    if selection.limit is not None:
        rows = spread(rows, selection.limit)
    elif selection.sample is not None:
        rows = _drawn(rows, selection.sample, selection.seed)
    return frozenset(row.id for row in rows)


def _require_consistent(selection: QuerySelection) -> None:
    if selection.limit is not None and selection.sample is not None:
        raise UsageError(
            "a limit and a sample contradict each other",
            code="bad_selection",
            hint="give --limit for a spread, or --sample for a draw by lot",
        )
    for name, number in (("limit", selection.limit), ("sample", selection.sample)):
        if number is not None and number < 1:
            raise UsageError(
                f"a {name} of {number} chooses nothing",
                code="bad_selection",
                hint=f"give --{name} 1 or more",
            )


def _belongs(row: _Row, selection: QuerySelection) -> bool:
    held = row.index % _TENTH == _TENTH - 1
    return (
        (selection.holdout == "all" or held == (selection.holdout == "held"))
        and (not selection.ids or row.id in selection.ids)
        and (not selection.categories or row.category in selection.categories)
    )


def _drawn(rows: list[_Row], size: int, seed: int) -> list[_Row]:
    """Of each category its share: rounded down, then one more where most was cut off.

    What is drawn depends on the seed and the ids, not on the order of the file: the published files
    of LongMemEval hold the same questions in different orders.
    """
    if size > len(rows):
        raise UsageError(
            f"a sample of {size} cannot be drawn from {len(rows)} questions",
            code="bad_selection",
            hint=f"give --sample {len(rows)} or fewer",
        )
    strata: dict[str, list[_Row]] = {}
    for row in rows:
        strata.setdefault(row.category, []).append(row)
    shares = {name: divmod(size * len(those), len(rows)) for name, those in strata.items()}
    missing = size - sum(whole for whole, _ in shares.values())
    most_cut = sorted(shares, key=lambda name: (-shares[name][1], name))[:missing]
    return [
        row
        for name, those in strata.items()
        for row in sorted(those, key=lambda row: _lot(seed, row.id))[
            : shares[name][0] + (name in most_cut)
        ]
    ]


def _lot(seed: int, query_id: str) -> bytes:
    """By a digest: what `random` draws of a seed may differ between versions of Python."""
    return hashlib.sha256(f"{seed}\0{query_id}".encode()).digest()
