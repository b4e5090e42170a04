"""Fuzzing on the terminal."""

import json
from collections.abc import Sequence

from memconform.fuzzing.results import FuzzReport
from memconform.reports.console import ProgressReport, standard_error

_SHOWN = 400
"""Characters of a value: a ranking is longer than anybody reads."""


class FuzzConsole(ProgressReport):
    """Counts programs; `tried` may be called from another thread."""

    def __init__(self, examples: int) -> None:
        super().__init__()
        self._task = self._progress.add_task("programs", total=examples)

    def tried(self) -> None:
        self._progress.advance(self._task)


def fuzz_banner(report: FuzzReport) -> str:
    """`<sdks>: agree on <n> programs, …`, or where they part."""
    found = report.disagreement
    verdict = "agree" if found is None else f"PART at {found.pointer}, see {found.file}"
    return (
        f"{', '.join(report.sdks)}: {verdict}; {report.examples} programs,"
        f" {report.requests} requests each, seed {report.seed}"
    )


def show_disagreement(report: FuzzReport, given: Sequence[str]) -> None:
    """What each daemon answered where they part, to standard error."""
    found = report.disagreement
    if found is None:
        return
    console = standard_error()
    console.print(f"PART       {found.case}, after {found.requests} requests", style="bold red")
    console.print(f"    at        {found.pointer}")
    for sdk in report.sdks:
        value = json.dumps(found.values[sdk], ensure_ascii=False) if sdk in found.values else ""
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        console.print(f"    {sdk:<9} {shown or '(nothing there)'}")
    if not found.steady:
        console.print("    it does not come each time", style="yellow")
    folder = found.file.rpartition("/")[0] or "."
    sdks = " ".join(f"--sdk {each}" for each in given)
    console.print(f"    try       memconform conform {sdks} --cases {folder}")
