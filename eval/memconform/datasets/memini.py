"""The JSON of memini's benchmarks: `{name, items: […], questions: […]}`, read and written."""

import json
from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memconform.contract.wire import JsonValue
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.haystacks import DroppedEntry, Haystack, Item
from memconform.datasets.json_file import object_of
from memconform.datasets.question import Question
from memconform.validation_faults import first_fault


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)


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
    """Yield one haystack per group, or a single one if nothing has a group.

    Questions have no ids in this format; they get `#0`, `#1`, … by position.

    Raises:
        UsageError: if the file is invalid (`dataset_invalid`), for example if only some items or
            questions have a group.
    """
    loaded = _validated(source)
    groups = [item.group for item in loaded.items] + [each.group for each in loaded.questions]
    grouped = any(groups)
    if not all(groups) and grouped:
        number = groups.index("")
        is_item = number < len(loaded.items)
        where = f"item {number}" if is_item else f"question {number - len(loaded.items)}"
        raise unfit(source.path, f"{where} has no group, but others do: give all a group, or none")
    items: dict[str, dict[str, Item]] = {}
    for item in loaded.items:
        haystack = items.setdefault(item.group if grouped else "", {})
        if item.id in haystack:
            raise unfit(source.path, f"the id {item.id!r} occurs in two items")
        haystack[item.id] = Item(item.id, item.content, item.group)
    queries: dict[str, list[Question]] = {}
    dropped: dict[str, list[DroppedEntry]] = {}
    for number, row in enumerate(loaded.questions):
        group = row.group if grouped else ""
        name = f"#{number}"
        if group not in items:
            raise unfit(source.path, f"question {number}: no item has the group {group!r}")
        unknown = [gold for gold in row.gold if gold not in items[group]]
        dropped.setdefault(group, []).extend(
            DroppedEntry(name, f"no item {each!r}") for each in unknown
        )
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
    """Serialize haystacks as memini's JSON, in pieces; item ids become `haystack/item`.

    The format cannot represent ids and dates of questions, rubrics, metadata, second answers, and
    whether a question is to be abstained from; these are lost.
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
