"""Which keys of the contract a message lacks, and what a dialect could say of each. No I/O."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.alias_generators import to_snake
from pydantic.fields import FieldInfo

from memconform.contract.dialect import Dialect
from memconform.contract.dialect_keys import DialectError, plain_key
from memconform.contract.dialect_objects import can_be_unknown, model_of

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Gap:
    """A key that is missing from an object of the contract."""

    object: str
    """The object's name in `[dialect.objects]`."""
    key: str
    place: str
    """Where the key is missing, as in `chunks.*.text`."""
    unknowable: bool
    """Whether a measurement can do without it."""
    respelled: str | None
    """A key of the daemon that differs only in case and underscores."""
    others: tuple[str, ...]
    """Places in that object which the contract does not have and which may hold the value."""

    def line(self) -> str:
        """The line of an sdk.toml that would help."""
        if self.respelled is not None:
            return '[dialect] keys = "any"'
        shown = [*self.others[:_SHOWN], *(["…"] if self.others[_SHOWN:] else [])]
        others = f"   # or one of its keys: {', '.join(shown)}" if shown else ""
        if self.unknowable:
            return f"[dialect.objects.{self.object}] {self.key} = false{others}"
        return f'[dialect.objects.{self.object}] {self.key} = "KEY"{others}'

    def table(self) -> dict[str, Any] | None:
        """The change of the dialect; None if only the user can know the daemon's key."""
        if self.respelled is not None:
            return {"keys": "any"}
        return {"objects": {self.object: {self.key: False}}} if self.unknowable else None


def gaps(text: str | bytes, model: type[BaseModel], dialect: Dialect | None) -> list[Gap]:
    """Return the required keys that a message lacks in a dialect, each once, outermost first."""
    try:
        value = json.loads(text)
    except ValueError:
        return []
    try:
        found = list(_gaps(value, model, dialect or Dialect()))
    except DialectError:
        # A key that is spelt in two ways is a defect, which no dialect can say.
        return []
    return list({(gap.object, gap.key): gap for gap in found}.values())


def _gaps(
    value: object, model: type[BaseModel], dialect: Dialect, where: str = ""
) -> Iterator[Gap]:
    if not isinstance(value, dict):
        return
    table = dialect.objects.get(to_snake(model.__name__), {})
    keys = {field.alias or name for name, field in model.model_fields.items()}
    for name, field in model.model_fields.items():
        key = field.alias or name
        names = table.get(key)
        if names is False:
            continue
        inner = dialect.look_up(value, key, model)
        if inner is not None:
            nested = model_of(field.annotation)
            if nested is not None:
                place = f"{where}{key}.*." if isinstance(inner, list) else f"{where}{key}."
                for item in inner if isinstance(inner, list) else [inner]:
                    yield from _gaps(item, nested, dialect, place)
        elif any(part.endswith("?") for part in names or ()):
            continue
        elif field.is_required() and key not in value:
            respelled = next((k for k in value if plain_key(k) == plain_key(key)), None)
            unknown = {other: value[other] for other in value if other not in keys}
            others = tuple(_places(unknown, field)) or tuple(unknown)
            yield Gap(
                to_snake(model.__name__),
                key,
                f"{where}{key}",
                can_be_unknown(field),
                respelled,
                others,
            )


_DEPTH = 3
"""Deepest place that is proposed."""


def _places(value: dict[str, Any], field: FieldInfo, depth: int = _DEPTH) -> Iterator[str]:
    """Yield the places within an object whose values are of a field's kind, such as `Result.Hits`.

    The kinds are array, object, and anything else.
    """
    is_list = get_origin(field.annotation) is list
    kind = list if is_list else dict if model_of(field.annotation) is not None else None
    for key, inner in value.items():
        if "." in key or "?" in key:
            continue  # A dialect cannot name it.
        if isinstance(inner, kind) if kind is not None else not isinstance(inner, dict | list):
            yield key
        if isinstance(inner, dict) and depth > 1:
            yield from (f"{key}.{place}" for place in _places(inner, field, depth - 1))
