"""The JSON of memini's benchmarks: `{name, items: […], questions: […]}`, read and written."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memconform.contract.wire import JsonValue, describe_mismatch
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.haystacks import Dropped, Haystack, Item, Query


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Item(_Strict):
    id: str
    content: str
    group: str = ""


class _Question(_Strict):
    query: str
    gold: list[str]
    group: str = ""
    answer: str | int | float | None = None
    category: str = ""


class _File(_Strict):
    name: str = ""
    items: list[_Item] = Field(min_length=1)
    questions: list[_Question]


def read_memini(source: PieceReader) -> Iterator[Haystack]:
    """A haystack a group, where every item and question has one; else one of everything.

    Questions have no ids of their own: theirs is their place.

    Raises:
        UsageError: naming what is not as it should be.
    """
    loaded = _validated(source)
    groups = [item.group for item in loaded.items] + [each.group for each in loaded.questions]
    grouped = all(groups)
    items: dict[str, dict[str, Item]] = {}
    for item in loaded.items:
        haystack = items.setdefault(item.group if grouped else "", {})
        if item.id in haystack:
            raise unfit(source.path, f"the id {item.id!r} stands in two items")
        haystack[item.id] = Item(item.id, item.content, item.group)
    queries: dict[str, list[Query]] = {}
    dropped: dict[str, list[Dropped]] = {}
    for number, row in enumerate(loaded.questions):
        group = row.group if grouped else ""
        name = f"#{number}"
        if group not in items:
            raise unfit(source.path, f"question {number}: no item has the group {group!r}")
        unknown = [gold for gold in row.gold if gold not in items[group]]
        dropped.setdefault(group, []).extend(Dropped(name, f"no item {each!r}") for each in unknown)
        answers = () if row.answer is None else (str(row.answer),)
        queries.setdefault(group, []).append(
            Query(name, row.query, row.category, tuple(dict.fromkeys(row.gold)), answers)
        )
    for group, own in items.items():
        yield Haystack(
            group or loaded.name or "all",
            tuple(own.values()),
            tuple(queries.get(group, ())),
            tuple(dropped.get(group, ())),
        )


def _validated(source: PieceReader) -> _File:
    content = bytearray()
    while piece := source.read():
        content += piece
    try:
        return _File.model_validate_json(bytes(content))
    except ValidationError as error:
        raise unfit(source.path, describe_mismatch(error)) from error


def memini_json(name: str, haystacks: Iterable[Haystack]) -> Iterator[str]:
    """The same as memini's JSON, in pieces; ids are those of the haystack and the item."""
    items: list[dict[str, JsonValue]] = []
    questions: list[dict[str, JsonValue]] = []
    for haystack in haystacks:
        items += [
            {"id": f"{haystack.id}/{item.id}", "content": item.text, "group": haystack.id}
            for item in haystack.items
        ]
        for query in haystack.queries:
            row: dict[str, Any] = {
                "query": query.question,
                "gold": [f"{haystack.id}/{gold}" for gold in query.gold],
                "group": haystack.id,
                "category": query.category,
            }
            if query.answers:
                row["answer"] = query.answers[0]
            questions.append(row)
    yield from json.JSONEncoder(ensure_ascii=False).iterencode(
        {"name": name, "items": items, "questions": questions}
    )
