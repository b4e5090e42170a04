"""Output of benchmark figures with their limits."""

import json
import os
from pathlib import Path

TABLE_VARIABLE = "MEMCONFORM_BENCH_TABLE"
"""Environment variable with the file that collects the figures of all scripts."""

_missed = 0


def report(name: str, value: float, unit: str, *, limit: float, least: bool = False) -> None:
    """Print a figure with its limit, a minimum if `least`, and count it if it is missed."""
    global _missed  # noqa: PLW0603 - the exit code of a script
    is_met = value >= limit if least else value <= limit
    _missed += not is_met
    figure = {"name": name, "value": value, "unit": unit, "limit": limit, "least": least}
    print(line(figure))
    if table := os.environ.get(TABLE_VARIABLE):
        with Path(table).open("a", encoding="utf-8") as file:
            file.write(json.dumps(figure) + "\n")


def line(figure: dict[str, object]) -> str:
    """Format a figure with its limit, marked if it is missed."""
    value, limit = figure["value"], figure["limit"]
    if not isinstance(value, int | float) or not isinstance(limit, int | float):
        raise TypeError(f"not a figure: {figure}")
    is_met = value >= limit if figure["least"] else value <= limit
    sign = ">=" if figure["least"] else "<="
    mark = "" if is_met else "   MISSED"
    return f"  {figure['name']:<58} {value:>9.2f} {figure['unit']:<6} {sign} {limit:g}{mark}"


def missed() -> int:
    """Return how many figures missed their limits so far."""
    return _missed
