"""Choosing questions: by id, by tag, spread over the whole set."""

from collections.abc import Iterator
from dataclasses import dataclass

from memconform.datasets.model import Dataset, Question
from memconform.errors import NothingSelectedError, UsageError, nearest


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
    if selection.limit is not None and selection.limit < len(rows):
        rows = [rows[i * len(rows) // selection.limit] for i in range(selection.limit)]
    if not rows:
        raise NothingSelectedError(
            f"no question of {dataset.path} is selected",
            code="nothing_selected",
            hint=_tags_hint(dataset, selection) if selection.tags else "the dataset is empty",
        )
    everything = len(rows) == dataset.size
    return Selected(dataset, None if everything else frozenset(rows), len(rows))


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
    for unknown in sorted(wanted_ids.difference(known)):
        raise UsageError(
            f"{dataset.path} has no question {unknown!r}",
            code="unknown_question",
            hint=nearest(unknown, known) or "ids are in the dataset's `id` keys",
        )
    return rows


def _tags_hint(dataset: Dataset, selection: Selection) -> str:
    tags = sorted({tag for question in dataset for tag in question.tags})
    guesses = [nearest(tag, tags) for tag in selection.tags]
    return " ".join(filter(None, guesses)) or f"tags there: {', '.join(tags) or 'none'}"
