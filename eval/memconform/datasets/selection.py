"""Choosing questions: by id, by tag, spread over the whole set."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memconform.datasets.model import Dataset, Question
from memconform.errors import NothingSelectedError, UsageError, nearest

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Selection:
    """What narrows a dataset; the defaults choose everything."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """A question with any of them is chosen."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """The chosen questions of a dataset, in its order."""

    dataset: Dataset
    rows: frozenset[int] | None
    """Row numbers from 0; None chooses all."""
    size: int

    def __iter__(self) -> Iterator[Question]:
        rows = self.rows
        return (q for row, q in enumerate(self.dataset) if rows is None or row in rows)


def select(dataset: Dataset, selection: Selection) -> Selected:
    """Apply a selection; a limit of n takes rows `int(i * N / n)`, spread and not the head.

    Raises:
        UsageError: for an id that the dataset does not have.
        NothingSelectedError: where no question is left.
    """
    rows = list(range(dataset.size))
    if selection.ids or selection.tags:
        rows = _matching(dataset, selection)
    if selection.limit is not None:
        rows = spread(rows, selection.limit)
    if not rows:
        raise NothingSelectedError(
            f"no question of {dataset.path} is selected",
            code="nothing_selected",
            hint=_tags_hint(dataset, selection) if selection.tags else "the dataset is empty",
        )
    everything = len(rows) == dataset.size
    return Selected(dataset, None if everything else frozenset(rows), len(rows))


def spread(rows: Sequence[_T], limit: int) -> list[_T]:
    """Rows `int(i * N / limit)`, and all where there are no more than `limit`."""
    if limit >= len(rows):
        return list(rows)
    return [rows[i * len(rows) // limit] for i in range(limit)]


def expect_known(
    wanted: Iterable[str],
    known: Collection[str],
    says: str,
    hint: str,
    *,
    code: str = "unknown_question",
) -> None:
    """Raise UsageError for the first wanted name that is not known; it names the nearest one."""
    for unknown in sorted(set(wanted).difference(known)):
        raise UsageError(f"{says} {unknown!r}", code=code, hint=nearest(unknown, known) or hint)


def _matching(dataset: Dataset, selection: Selection) -> list[int]:
    wanted_ids, wanted_tags = set(selection.ids), set(selection.tags)
    known: list[str] = []
    rows = []
    for row, question in enumerate(dataset):
        known.append(question.id)
        by_id = not wanted_ids or question.id in wanted_ids
        by_tag = not wanted_tags or not wanted_tags.isdisjoint(question.tags)
        if by_id and by_tag:
            rows.append(row)
    expect_known(
        wanted_ids, known, f"{dataset.path} has no question", "ids are in the dataset's `id` keys"
    )
    return rows


def _tags_hint(dataset: Dataset, selection: Selection) -> str:
    tags = sorted({tag for question in dataset for tag in question.tags})
    guesses = [nearest(tag, tags) for tag in selection.tags]
    return " ".join(filter(None, guesses)) or f"tags there: {', '.join(tags) or 'none'}"
