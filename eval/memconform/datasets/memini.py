"""The JSON of memini's benchmarks: `{name, items: […], questions: […]}`, read and written."""

import json
from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memconform.contract.wire import JsonValue
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.haystacks import Dropped, Haystack, Item
from memconform.datasets.json_file import object_of
from memconform.datasets.model import Question
from memconform.validation import first_fault


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
    grouped = any(groups)
    if not all(groups) and grouped:
        number = groups.index("")
        of_items = number < len(loaded.items)
        where = f"item {number}" if of_items else f"question {number - len(loaded.items)}"
        raise unfit(source.path, f"{where} has no group, and others have: all have one, or none")
    items: dict[str, dict[str, Item]] = {}
    for item in loaded.items:
        haystack = items.setdefault(item.group if grouped else "", {})
        if item.id in haystack:
            raise unfit(source.path, f"the id {item.id!r} stands in two items")
        haystack[item.id] = Item(item.id, item.content, item.group)
    queries: dict[str, list[Question]] = {}
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
            Question(name, row.query, row.category, tuple(dict.fromkeys(row.gold)), answers)
        )
    for group, own in items.items():
        yield Haystack(
            group or loaded.name or "all",
            tuple(own.values()),
            tuple(queries.get(group, ())),
            tuple(dropped.get(group, ())),
        )


def _validated(source: PieceReader) -> _File:
    try:
        return _File.model_validate(object_of(source))
    except ValidationError as error:
        raise unfit(source.path, first_fault(error)) from error


def memini_json(name: str, haystacks: Iterable[Haystack]) -> Iterator[str]:
    """The same as memini's JSON, in pieces; ids are those of the haystack and the item.

    Its schema has no place for ids and dates of questions, rubrics, metadata, second answers, and
    for that a question is to be abstained from.
    """
    questions: list[dict[str, JsonValue]] = []
    yield f'{{"name": {_json(name)}, "items": ['
    comma = ""
    for haystack in haystacks:
        for item in haystack.items:
            row = {"id": f"{haystack.id}/{item.id}", "content": item.text, "group": haystack.id}
            yield f"{comma}\n{_json(row)}"
            comma = ","
        questions += [_question(haystack.id, query) for query in haystack.queries]
    yield '], "questions": ['
    yield ",".join(f"\n{_json(question)}" for question in questions)
    yield "]}\n"


def _question(haystack: str, query: Question) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {
        "query": query.question,
        "gold": [f"{haystack}/{gold}" for gold in query.gold],
        "group": haystack,
        "category": query.category,
    }
    return row | ({"answer": query.answers[0]} if query.answers else {})


def _json(value: JsonValue | dict[str, str]) -> str:
    return json.dumps(value, ensure_ascii=False)
