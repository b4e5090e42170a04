"""Reads `[dialect]` of an sdk.toml, and the dialects that are shipped with the harness."""

import importlib
import os
import sys
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from memconform.contract.dialect import Dialect
from memconform.contract.dialect_keys import merged_tables
from memconform.errors import nearest

_FOLDER = resources.files("memconform") / "dialects"


def shipped_dialects() -> list[str]:
    """The names of the shipped dialects."""
    return sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir())


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def load_dialect(table: object) -> object:
    """Return the table of a dialect, with that of the shipped dialect it is based on merged in.

    `like` names the shipped dialect; other keys of the table replace its values, tables are merged.
    `class` names a subclass of Dialect, `module:Class`, of which an instance is returned.

    Raises:
        ValueError: if there is no such dialect or class, or the class refuses the table.
    """
    if isinstance(table, str):
        table = {"like": table}
    if not isinstance(table, dict):
        return table
    rest = dict(table)
    reference = rest.pop("class", None)
    merged = _with_base(rest) if "like" in rest else rest
    return merged if reference is None else _class(reference).model_validate(merged)


def _class(reference: object) -> type[Dialect]:
    """Import a subclass of Dialect; modules in the working folder are found too."""
    module, _, name = str(reference).partition(":")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as a string
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"class {reference!r}: {error}; write module:Class") from error
    finally:
        sys.path.pop(0)
    if not (isinstance(found, type) and issubclass(found, Dialect)):
        raise ValueError(  # noqa: TRY004 - pydantic expects it
            f"class {reference!r} is not a subclass of memconform.contract.dialect.Dialect"
        )
    return found


def _with_base(rest: dict[str, Any]) -> dict[str, Any]:
    base = rest.pop("like")
    if base not in shipped_dialects():
        suggestion = nearest(str(base), shipped_dialects())
        known = suggestion or f"shipped are {', '.join(shipped_dialects())}"
        raise ValueError(f"unknown dialect {base!r}; {known}")
    return merged_tables(_read(base) | {"name": base}, rest)
