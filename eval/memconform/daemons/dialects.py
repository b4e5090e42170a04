"""Reads `[dialect]` of an sdk.toml or of a file, and the dialects shipped with the harness."""

import importlib
import os
import sys
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from memconform.contract.dialect import Dialect
from memconform.contract.dialect_keys import merged_tables
from memconform.errors import UsageError, nearest
from memconform.validation_faults import validation_faults

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


def read_dialect(reference: str) -> Dialect:
    """The dialect of a shipped name, or of a TOML file with a `[dialect]` or with the keys of one.

    Raises:
        UsageError: `bad_dialect` if there is none, or its content is invalid.
    """
    path = Path(reference)
    try:
        table: object = reference
        if path.suffix == ".toml" or path.is_file():
            content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
            table = content.get("dialect", content)
        return TypeAdapter(Annotated[Dialect, BeforeValidator(load_dialect)]).validate_python(table)
    except OSError as error:
        raise _bad_dialect(reference, [error.strerror or "cannot be read"]) from error
    except ValidationError as error:
        faults = validation_faults(error, known=_known_keys)
        raise _bad_dialect(reference, faults) from error
    except ValueError as error:
        raise _bad_dialect(reference, [str(error)]) from error


def _known_keys(path: Sequence[str]) -> list[str]:
    return list(Dialect.model_fields) if len(path) == 1 else []


def _bad_dialect(reference: str, faults: Sequence[str]) -> UsageError:
    return UsageError(
        f"dialect {reference!r} cannot be used",
        code="bad_dialect",
        hint=f"name a shipped dialect ({', '.join(shipped_dialects())}), or a TOML file with the"
        " keys of [dialect], which docs/DIALECTS.md lists",
        excerpt="\n".join(faults),
    )


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
