"""Fuzzing reports: progress, the disagreement and the one-line verdict."""

import json
from collections.abc import Sequence

from memconform.fuzzing.results import FuzzReport
from memconform.printing.plurals import plural
from memconform.reports.console import ProgressReport, standard_error

_SHOWN = 400
"""Maximum length of a shown value in characters: a whole ranking is too long to read."""


class FuzzConsole(ProgressReport):
    """Progress bar of the request sequences; `advance` may be called from another thread."""

    def __init__(self, examples: int) -> None:
        super().__init__()
        self._task = self._progress.add_task("programs", total=examples)

    def advance(self) -> None:
        """Count one request sequence."""
        self._progress.advance(self._task)


def fuzz_banner(report: FuzzReport) -> str:
    """Format `<sdks>: agree; <n> programs, …`, or the place of the disagreement."""
    disagreement = report.disagreement
    verdict = (
        "agree"
        if disagreement is None
        else f"DISAGREE at {disagreement.pointer}, see {disagreement.file}"
    )
    if report.connection_resets:
        verdict += f"; connection reset by {', '.join(report.connection_resets)}"
    return (
        f"{', '.join(report.sdks)}: {verdict}; {plural(report.examples, 'program')},"
        f" {plural(report.requests, 'request')} each, seed {report.seed}"
    )


def show_disagreement(report: FuzzReport, references: Sequence[str]) -> None:
    """Print what each daemon answered at the disagreement to standard error.

    `references` are the SDKs as the user named them.
    """
    disagreement = report.disagreement
    if disagreement is None:
        return
    console = standard_error()
    requests = plural(disagreement.requests, "request")
    console.print(f"DISAGREE   {disagreement.case}, after {requests}", style="bold red")
    console.print(f"    at        {disagreement.pointer}")
    for sdk in report.sdks:
        value = (
            json.dumps(disagreement.values[sdk], ensure_ascii=False)
            if sdk in disagreement.values
            else ""
        )
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        console.print(f"    {sdk:<9} {shown or '(missing)'}")
    if any(str(value).startswith("process ended") for value in disagreement.values.values()):
        console.print("    not repeated, because a daemon's process ended", style="yellow")
    elif not disagreement.steady:
        console.print("    not reproducible every time", style="yellow")
    folder = disagreement.file.rpartition("/")[0] or "."
    sdks = " ".join(f"--sdk {reference}" for reference in references)
    console.print(f"    try       memconform conform {sdks} --cases {folder}")


def show_resets(report: FuzzReport) -> None:
    """Print which requests a daemon ended by resetting their connection, to standard error."""
    console = standard_error()
    for sdk, requests in report.connection_resets.items():
        for request, count in requests.items():
            console.print(
                f"RESET      {sdk} reset the connection of {request} {plural(count, 'time')},"
                " without a response and with its process alive",
                style="bold red",
            )
