"""Figures of the benchmarks, each beside its limit."""

_missed = 0


def report(name: str, value: float, unit: str, *, limit: float, least: bool = False) -> None:
    """Print a figure beside its limit."""
    global _missed  # noqa: PLW0603 - the exit code of a script
    held = value >= limit if least else value <= limit
    _missed += not held
    sign = ">=" if least else "<="
    mark = "" if held else "   MISSED"
    print(f"  {name:<58} {value:>9.2f} {unit:<6} {sign} {limit:g}{mark}")


def missed() -> int:
    """How many figures so far were beyond their limits."""
    return _missed
