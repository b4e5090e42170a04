"""Figures of the benchmarks, each beside its limit."""

import json
import os
from pathlib import Path

TABLE_VARIABLE = "MEMCONFORM_BENCH_TABLE"
"""Names the file in which all scripts of one `make bench` collect their figures."""

_missed = 0


def report(name: str, value: float, unit: str, *, limit: float, least: bool = False) -> None:
    """Print a figure beside its limit."""
    global _missed  # noqa: PLW0603 - the exit code of a script
    held = value >= limit if least else value <= limit
    _missed += not held
    figure = {"name": name, "value": value, "unit": unit, "limit": limit, "least": least}
    print(line(figure))
    if table := os.environ.get(TABLE_VARIABLE):
        with Path(table).open("a", encoding="utf-8") as file:
            file.write(json.dumps(figure) + "\n")


def line(figure: dict[str, object]) -> str:
    """A figure, its limit, and whether it holds."""
    value, limit = figure["value"], figure["limit"]
    if not isinstance(value, int | float) or not isinstance(limit, int | float):
        raise TypeError(f"{figure} is no figure")
    held = value >= limit if figure["least"] else value <= limit
    sign = ">=" if figure["least"] else "<="
    mark = "" if held else "   MISSED"
    return f"  {figure['name']:<58} {value:>9.2f} {figure['unit']:<6} {sign} {limit:g}{mark}"


def missed() -> int:
    """How many figures so far were beyond their limits."""
    return _missed
