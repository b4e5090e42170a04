"""Key expansion (Wu et al., LongMemEval): items can also be found by summaries, phrases or facts.

The keys of each item come from a cache file; no model is called here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memconform.contract.wire import JsonValue
from memconform.datasets.files import unfit
from memconform.datasets.haystacks import DroppedEntry, Haystack, Item
from memconform.datasets.json_file import read_object
from memconform.longmemeval.names import Join

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
"""LongMemEval's code splits summaries with NLTK, which also knows abbreviations."""

_SHAPE = 'write {"haystack/item": "text", …}, or a list of texts'
EVIDENCE = "answer_"
"""LongMemEval marks evidence with this prefix in the ids of its haystacks, but not in its cache."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of items, read from a cache file."""

    path: Path
    texts: Mapping[str, tuple[str, ...]]
    """By `haystack/item`, or by the item's id alone; empty if no key could be generated."""
    lists: frozenset[str] = frozenset()
    """Names whose key is a list, whose texts are never split further."""

    def name(self, haystack: str, item: str) -> str | None:
        """The name of an item in the cache; None if the cache does not have it."""
        names = (f"{haystack}/{item}", item, item.removeprefix(EVIDENCE))
        return next((name for name in names if name in self.texts), None)


def read_keys(path: Path) -> Keys:
    """Read a cache file of keys; those of LongMemEval's index expansion are understood too.

    Raises:
        UsageError: if an item's key is neither text nor a list of texts (`dataset_invalid`).
    """
    cache = read_object(path)
    texts = {name: _texts(path, name, value) for name, value in cache.items()}
    return Keys(path, texts, frozenset(n for n, value in cache.items() if isinstance(value, list)))


def _texts(path: Path, name: str, value: JsonValue) -> tuple[str, ...]:
    # LongMemEval's caches have null where a model's answer could not be parsed.
    values = value if isinstance(value, list) else [] if value is None else [value]
    for each in values:
        # Models that list facts occasionally write a number.
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise unfit(path, f"{name!r} has a key that is not text: {str(each)[:60]}", _SHAPE)
    return tuple(stripped for each in values if (stripped := str(each).strip()))


def expand(haystack: Haystack, keys: Keys, join: Join) -> Haystack:
    """The haystack with its items' keys; items without keys stay unchanged and are reported.

    Separate keys become items `<id>#1`, `<id>#2`, … whose source is the item, as do all but the
    first part of a key that is split and merged or replaces the item.

    Raises:
        UsageError: if an item already has such an id (`dataset_invalid`).
    """
    items: list[Item] = []
    dropped = list(haystack.dropped)
    ids = {item.id for item in haystack.items}
    for item in haystack.items:
        name = keys.name(haystack.id, item.id)
        texts = () if name is None else keys.texts[name]
        if not texts:
            dropped.append(DroppedEntry(item.id, f"{keys.path.name} has no key for it"))
            items.append(item)
            continue
        if join.startswith("split-") and name not in keys.lists:
            texts = _parts(texts[0])
        joined = _joined(item, texts, join)
        for each in joined:
            if each.source and each.id in ids:
                raise unfit(
                    keys.path,
                    f"{haystack.id} has an item {each.id!r}, which is the id of a separate key",
                    "join by merge or replace",
                )
        items += joined
    # Baselines then index the same items as the SDKs.
    return replace(haystack, items=tuple(items), dropped=tuple(dropped), official_items=())


def _joined(item: Item, texts: tuple[str, ...], join: Join) -> list[Item]:
    match join:
        case "separate" | "split-separate":
            return [item, *_further(item, texts, start=1)]
        case "merge":
            return [replace(item, text="\n".join((*texts, item.text)))]
        case "replace":
            return [replace(item, text="\n".join(texts))]
        case "split-merge":
            texts = tuple(f"{text} {item.text}" for text in texts)
    # Gold names the item, so that one of its documents keeps its id.
    return [replace(item, text=texts[0]), *_further(item, texts[1:], start=2)]


def _further(item: Item, texts: Sequence[str], start: int) -> list[Item]:
    """Further documents of an item; finding one counts as finding the item."""
    return [
        replace(item, id=f"{item.id}#{number}", text=text, source=item.id)
        for number, text in enumerate(texts, start=start)
    ]


def _parts(text: str) -> tuple[str, ...]:
    """The phrases between `;` of a text, or the sentences of one without."""
    pieces = text.split(";") if ";" in text else _SENTENCE_END.split(text)
    return tuple(part for piece in pieces if (part := piece.strip())) or (text,)


def expanded(haystacks: Iterable[Haystack], keys: Keys, join: Join) -> Iterator[Haystack]:
    """Expand every haystack.

    Raises:
        UsageError: if a key is named by an item's id alone and several haystacks have different
            items with that id; and at the end, if the cache matches no item (`dataset_invalid`).
    """
    first: dict[str, tuple[str, int]] = {}
    has_match = False
    for haystack in haystacks:
        for item in haystack.items:
            name = keys.name(haystack.id, item.id)
            if name is None:
                continue
            has_match = True
            if name == f"{haystack.id}/{item.id}":
                continue
            # In LongMemEval the same session has different dates in different haystacks.
            digest = hash(item.text.replace(item.date, "", 1) if item.date else item.text)
            first_haystack, first_digest = first.setdefault(name, (haystack.id, digest))
            if first_digest != digest:
                raise unfit(
                    keys.path,
                    f"{name!r} could be an item of {first_haystack} or of {haystack.id}",
                    f"write {haystack.id}/{item.id}",
                )
        yield expand(haystack, keys, join)
    if not has_match:
        raise unfit(keys.path, "names no item of the benchmark", _SHAPE)
