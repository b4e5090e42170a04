"""Key expansion (Wu et al., LongMemEval): items are found by a summary, key phrases or facts too.

What was written of each item comes from a cache file; nothing is asked of a model here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from memconform.contract.wire import JsonValue
from memconform.datasets.files import unfit
from memconform.datasets.haystacks import Dropped, Haystack, Item
from memconform.datasets.json_file import read_object

Join = Literal["separate", "merge", "replace"]
"""Keys are items of their own beside theirs; before its text; instead of its text."""

_SHAPE = 'write {"haystack/item": "text", …}, or a list of texts'
_EVIDENCE = "answer_"
"""LongMemEval marks evidence by it in the ids of its haystacks, and not in those of its cache."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What a cache file has been read for."""

    path: Path
    texts: Mapping[str, tuple[str, ...]]
    """By `haystack/item`, or by the item's id alone; none where nothing could be written."""

    def name(self, haystack: str, item: str) -> str | None:
        """What the cache calls an item; None where it does not have it."""
        names = (f"{haystack}/{item}", item, item.removeprefix(_EVIDENCE))
        return next((name for name in names if name in self.texts), None)


def read_keys(path: Path) -> Keys:
    """A cache file, those of LongMemEval's index expansion too.

    Raises:
        UsageError: naming the item whose key is no text and no list of texts.
    """
    given = read_object(path)
    return Keys(path, {name: _texts(path, name, value) for name, value in given.items()})


def _texts(path: Path, name: str, value: JsonValue) -> tuple[str, ...]:
    # What a model's answer could not be read for is null in LongMemEval's.
    given = value if isinstance(value, list) else [] if value is None else [value]
    for each in given:
        # A model that lists facts writes a number now and then.
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise unfit(path, f"{name!r} has a key that is not text: {str(each)[:60]}", _SHAPE)
    return tuple(stripped for each in given if (stripped := str(each).strip()))


def expand(haystack: Haystack, keys: Keys, join: Join) -> Haystack:
    """The haystack with its items' keys; one that has none stays as it is, and is told.

    Separate keys are items `<id>#1`, `<id>#2`, … whose source is the item.

    Raises:
        UsageError: where an item has such an id already.
    """
    items: list[Item] = []
    dropped = list(haystack.dropped)
    ids = {item.id for item in haystack.items}
    for item in haystack.items:
        name = keys.name(haystack.id, item.id)
        texts = () if name is None else keys.texts[name]
        if not texts:
            dropped.append(Dropped(item.id, f"{keys.path.name} has no key of it"))
            items.append(item)
            continue
        made = _joined(item, texts, join)
        for each in made:
            if each.source and each.id in ids:
                raise unfit(
                    keys.path,
                    f"{haystack.id} has an item {each.id!r}, as its keys would be called",
                    "join by merge or replace",
                )
        items += made
    return replace(haystack, items=tuple(items), dropped=tuple(dropped))


def _joined(item: Item, texts: tuple[str, ...], join: Join) -> list[Item]:
    match join:
        case "separate":
            further = [
                replace(item, id=f"{item.id}#{number}", text=text, source=item.id)
                for number, text in enumerate(texts, start=1)
            ]
            return [item, *further]
        case "merge":
            return [replace(item, text="\n".join((*texts, item.text)))]
        case "replace":
            return [replace(item, text="\n".join(texts))]


def expanded(haystacks: Iterable[Haystack], keys: Keys, join: Join) -> Iterator[Haystack]:
    """Every haystack with its items' keys.

    Raises:
        UsageError: for a key that is named by an item's id alone where several haystacks have
            different items of that id; and at the end, where the cache has no item of any.
    """
    first: dict[str, tuple[str, int]] = {}
    named = False
    for haystack in haystacks:
        for item in haystack.items:
            name = keys.name(haystack.id, item.id)
            if name is None:
                continue
            named = True
            if name == f"{haystack.id}/{item.id}":
                continue
            # The same session has another date in another haystack of LongMemEval.
            said = hash(item.text.replace(item.date, "", 1) if item.date else item.text)
            where, before = first.setdefault(name, (haystack.id, said))
            if before != said:
                raise unfit(
                    keys.path,
                    f"{name!r} could be an item of {where} or of {haystack.id}",
                    f"write {haystack.id}/{item.id}",
                )
        yield expand(haystack, keys, join)
    if not named:
        raise unfit(keys.path, "names no item of the benchmark", _SHAPE)
