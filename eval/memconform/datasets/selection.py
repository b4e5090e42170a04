"""Selecting questions of a question set: by id, by tag, or evenly spaced."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from memconform.datasets.question import Dataset, Question
from memconform.datasets.sharding import Shard, ShardRecord
from memconform.errors import NothingSelectedError, UsageError, nearest

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Selection:
    """Criteria that narrow a dataset; the defaults select everything."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """A question with any of these is selected."""
    limit: int | None = None
    shard: Shard | None = None
    """Which part of what the other criteria select."""


@dataclass(frozen=True, slots=True)
class SelectedQuestions:
    """The selected questions of a dataset, in its order."""

    dataset: Dataset
    rows: frozenset[int] | None
    """Row numbers from 0, before they are divided into shards; None selects all."""
    size: int
    """Number of questions, in a shard its own."""
    shard: ShardRecord | None = None
    """The shards of the selected rows that these questions are; None for all."""

    def __iter__(self) -> Iterator[Question]:
        rows = self.rows
        selected = (q for row, q in enumerate(self.dataset) if rows is None or row in rows)
        if self.shard is None:
            return selected
        places = frozenset(self.shard.places or ())
        return (question for place, question in enumerate(selected) if place in places)


def select(dataset: Dataset, selection: Selection) -> SelectedQuestions:
    """Apply a selection; a limit of n takes evenly spaced rows, `int(i * N / n)`, not the first n.

    Raises:
        UsageError: if the dataset does not have a given id (`unknown_question`), or fewer questions
            are selected than there are shards (`too_many_shards`).
        NothingSelectedError: if no question matches (`nothing_selected`).
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
    whole = SelectedQuestions(dataset, None if everything else frozenset(rows), len(rows))
    if selection.shard is None:
        return whole
    places = selection.shard.places([question.id for question in whole], "question")
    record = selection.shard.record("question", places)
    return replace(whole, size=len(places), shard=record)


def spread(rows: Sequence[_T], limit: int) -> list[_T]:
    """Evenly spaced rows `int(i * N / limit)`; all rows if there are at most `limit`."""
    if limit >= len(rows):
        return list(rows)
    return [rows[i * len(rows) // limit] for i in range(limit)]


def expect_known(
    names: Iterable[str],
    known: Collection[str],
    message: str,
    hint: str,
    *,
    code: str = "unknown_question",
) -> None:
    """Raise UsageError for the first unknown name, with the nearest known one as a hint."""
    for unknown in sorted(set(names).difference(known)):
        raise UsageError(f"{message} {unknown!r}", code=code, hint=nearest(unknown, known) or hint)


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
        wanted_ids,
        known,
        f"{dataset.path} has no question",
        "the ids are in the dataset's `id` keys",
    )
    return rows


def _tags_hint(dataset: Dataset, selection: Selection) -> str:
    tags = sorted({tag for question in dataset for tag in question.tags})
    guesses = [nearest(tag, tags) for tag in selection.tags]
    return " ".join(filter(None, guesses)) or f"the dataset's tags: {', '.join(tags) or 'none'}"
