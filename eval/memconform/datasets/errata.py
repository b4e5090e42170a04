"""Errata: questions of a benchmark whose gold is disputed, or names the wrong evidence.

Errata name questions and evidence by id; no text of a benchmark is copied into them.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memconform.contract.wire import JsonValue
from memconform.datasets.files import unfit
from memconform.datasets.json_file import read_object
from memconform.datasets.registry import shipped_folder
from memconform.datasets.rows import text, texts
from memconform.datasets.selection import expect_known
from memconform.errors import UsageError

_SHAPE = 'write {"conv-1#12": "why its gold is disputed"}; datasets/README.md has every key'
_DOCUMENT = {"about", "format", "applies_to", "sources", "reasons", "questions"}
_ENTRY = {"reason", "source", "disputed", "gold", "see", "unjudgeable"}


@dataclass(frozen=True, slots=True)
class Erratum:
    """What is wrong with one question."""

    reason: str
    disputed: bool = True
    """Whether the answer is disputed, so that the question does not count."""
    gold: tuple[str, ...] = ()
    """The right evidence, if the benchmark cites other evidence; empty otherwise."""
    see: tuple[str, ...] = ()
    """Ids of items that show the defect."""
    source: str = ""
    """Who reported it; empty for the file's only source."""
    unjudgeable: bool = False
    """Whether what a judge is given decides nothing. Its gold may be right, so that retrieval is
    measured by it."""


@dataclass(frozen=True, slots=True)
class Errata:
    """The errata of a benchmark."""

    name: str
    """`locomo` and the like for errata that ship with memconform; otherwise a path."""
    entries: Mapping[str, Erratum]
    """By question id."""
    shipped: bool = False
    applies_to: tuple[str, ...] = ()
    """The pinned sources that they describe, for shipped ones."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Addresses of reports, by short name."""

    @property
    def disputed(self) -> frozenset[str]:
        """Ids of questions that do not count."""
        return frozenset(name for name, entry in self.entries.items() if entry.disputed)

    @property
    def unjudgeable(self) -> frozenset[str]:
        """Ids of questions that no judge can decide."""
        return frozenset(name for name, entry in self.entries.items() if entry.unjudgeable)

    @property
    def corrected_gold(self) -> dict[str, tuple[str, ...]]:
        """The right evidence of the questions that cite other evidence."""
        return {name: entry.gold for name, entry in self.entries.items() if entry.gold}

    def of(self, ids: Collection[str]) -> "Errata":
        """The errata of these questions only."""
        entries = {name: entry for name, entry in self.entries.items() if name in ids}
        return replace(self, entries=entries)

    def digest(self) -> str:
        """SHA-256 of everything that affects scores."""
        effects = [
            *self.disputed,
            *(f"{k}={json.dumps(v)}" for k, v in self.corrected_gold.items()),
        ]
        return hashlib.sha256(json.dumps(sorted(effects)).encode()).hexdigest()


def read_errata(path: Path) -> Errata:
    """Read an errata file: entries by question id, or a document with `questions`.

    Raises:
        UsageError: naming the invalid entry (`dataset_invalid`).
    """
    content = read_object(path)
    if isinstance(content.get("questions"), dict):
        errata = _document(path, content)
    else:
        entries = {name: _entry(path, name, value) for name, value in content.items()}
        errata = Errata(str(path), entries)
    if not errata.entries:
        raise unfit(path, "names no question", f"{_SHAPE}; --errata none applies none")
    return errata


def _document(path: Path, content: dict[str, Any]) -> Errata:
    _require_known_keys(path, "the document", content, _DOCUMENT)
    try:
        reasons, sources = _table(content, "reasons"), _table(content, "sources")
        applies_to = texts({"applies_to": [], **content}, "applies_to")
    except TypeError as error:
        raise unfit(path, str(error), _SHAPE) from error
    entries = {}
    for name, value in content["questions"].items():
        entry = _entry(path, name, value)
        if reasons and entry.reason not in reasons:
            raise unfit(path, f"{name!r} has an undefined reason {entry.reason!r}", _SHAPE)
        if entry.source and entry.source not in sources:
            raise unfit(path, f"{name!r} has an undefined source {entry.source!r}", _SHAPE)
        entries[name] = entry
    return Errata(str(path), entries, applies_to=tuple(applies_to), sources=sources)


def _table(content: Mapping[str, JsonValue], key: str) -> dict[str, str]:
    table = content.get(key, {})
    if not isinstance(table, dict):
        raise TypeError(f"{key!r} must be an object of texts")
    return {name: text(table, name) for name in table}


def _entry(path: Path, name: str, value: JsonValue) -> Erratum:
    if isinstance(value, str) and value.strip():
        return Erratum(value)
    if not isinstance(value, dict) or not isinstance(value.get("reason"), str):
        raise unfit(path, f"{name!r} has no reason", _SHAPE)
    _require_known_keys(path, repr(name), value, _ENTRY)
    try:
        reason, source = text(value, "reason"), text({"source": "", **value}, "source")
        gold, see = (tuple(texts({key: [], **value}, key)) for key in ("gold", "see"))
    except TypeError as error:
        raise unfit(path, f"{name!r}: {error}", _SHAPE) from error
    disputed, unjudgeable = (value.get(key, False) for key in ("disputed", "unjudgeable"))
    if not reason.strip():
        raise unfit(path, f"{name!r} has no reason", _SHAPE)
    if not isinstance(disputed, bool) or not isinstance(unjudgeable, bool):
        key = "unjudgeable" if isinstance(disputed, bool) else "disputed"
        raise unfit(path, f"{name!r}: {key!r} must be true or false", _SHAPE)
    if disputed and gold:
        raise unfit(path, f"{name!r} is both disputed and corrected", "keep one of the two")
    if "gold" in value and not gold:
        raise unfit(path, f"{name!r}: 'gold' is empty", "dispute the question instead")
    if len(set(gold)) < len(gold):
        raise unfit(path, f"{name!r}: 'gold' names an id twice", _SHAPE)
    return Erratum(reason, disputed, gold, see, source, unjudgeable)


def _require_known_keys(
    path: Path, name: str, value: Mapping[str, object], known: Collection[str]
) -> None:
    if unknown := sorted(value.keys() - known):
        keys = ", ".join(sorted(known))
        raise unfit(path, f"{name} has an unknown key {unknown[0]!r}", f"the keys are {keys}")


def shipped_errata_names() -> tuple[str, ...]:
    """The names of the errata that ship with memconform."""
    return tuple(sorted(path.stem for path in _folder().glob("*.json")))


def shipped_errata(name: str) -> Errata:
    """The errata that ship with memconform under this name, which is that of a format."""
    return replace(read_errata(_folder() / f"{name}.json"), name=name, shipped=True)


def _folder() -> Path:
    return shipped_folder() / "errata"


def require_known_ids(errata: Errata, ids: Collection[str]) -> None:
    """Check that errata belong to a benchmark.

    Shipped errata may describe more than a benchmark's file contains, such as the other part of
    WMB-100K; a file of the user's may not.

    Raises:
        UsageError: if a question is unknown, or shipped errata describe none of the benchmark's
            questions (`unknown_question`).
    """
    if not errata.shipped:
        expect_known(
            errata.entries,
            ids,
            "the errata name a question that the benchmark does not have:",
            "use the ids that the loader assigns, such as sample_id#index for LoCoMo",
        )
    elif not errata.entries.keys() & set(ids):
        raise UsageError(
            f"the errata {errata.name!r} name no question of the benchmark",
            code="unknown_question",
            hint="give --errata none, or a file of your own",
        )


def require_known_gold(errata: Errata, unknown: Iterable[str]) -> None:
    """Raise UsageError if the benchmark does not have an item that the errata name as gold."""
    for item in unknown:
        raise UsageError(
            f"{errata.name}: {item}",
            code="dataset_invalid",
            hint="name evidence by the benchmark's own ids, such as D1:3 for a turn of LoCoMo",
        )
