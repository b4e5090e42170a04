"""Fuzzing reports: progress, the disagreement and the one-line verdict."""

import json
from collections.abc import Sequence

from memconform.conformance.rules import rules
from memconform.fuzzing.results import FoundDisagreement, FuzzReport
from memconform.printing.commands import suggested_command
from memconform.printing.console import standard_error
from memconform.printing.plurals import plural

_SHOWN = 400
"""Maximum length of a shown value in characters: a whole ranking is too long to read."""


def fuzz_banner(report: FuzzReport) -> str:
    """Format `<sdks>: agree; <n> programs, …`, or the place of the disagreement."""
    disagreement = report.disagreement
    others = f" with the {report.against}" if report.against is not None else ""
    if disagreement is None:
        verdict = f"agree{others}"
    else:
        verdict = f"DISAGREE{others} at {disagreement.pointer}, see {disagreement.file}"
    if len(report.disagreements) > 1:
        folder = report.disagreements[0].file.rpartition("/")[0] or "."
        verdict = f"DISAGREE{others} in {len(report.disagreements)} ways, see {folder}"
    if report.connection_resets:
        verdict += f"; connection reset by {', '.join(report.connection_resets)}"
    programs = plural(report.examples, "program", spec=",")
    requests = plural(report.requests, "request", spec=",")
    each = " to each SDK" if len(report.sdks) > 1 else ""
    return (
        f"{', '.join(report.sdks)}: {verdict}; {programs} with {requests}{each}, seed {report.seed}"
    )


def show_disagreements(report: FuzzReport, references: Sequence[str]) -> None:
    """Print what each daemon answered at each disagreement to standard error.

    `references` are the SDKs as the user named them.
    """
    for disagreement in report.disagreements:
        _show(disagreement)
    if not report.disagreements:
        return
    console = standard_error()
    folder = report.disagreements[0].file.rpartition("/")[0] or "."
    sdks = [word for reference in references for word in ("--sdk", reference)]
    command = suggested_command("conform", *sdks, "--cases", folder)
    console.print(f"    try       {command}", soft_wrap=True)


def _show(disagreement: FoundDisagreement) -> None:
    console = standard_error()
    requests = plural(disagreement.requests, "request")
    found = f"in program {disagreement.found_after:,}, minimized to {requests}"
    console.print(f"DISAGREE   {disagreement.case}, {found}", style="bold red")
    if disagreement.rule:
        text = rules()[disagreement.rule].text
        console.print(f"    rule      {disagreement.rule}: {_cut(text)}")
    console.print(f"    at        {disagreement.pointer}")
    for name in disagreement.compared:
        value = (
            json.dumps(disagreement.values[name], ensure_ascii=False)
            if name in disagreement.values
            else ""
        )
        console.print(f"    {name:<9} {_cut(value) or '(missing)'}")
    for line in disagreement.curl:
        console.print(f"    curl      {line}", soft_wrap=True)
    if disagreement.steady:
        return
    if any(str(value).startswith("process ended") for value in disagreement.values.values()):
        console.print("    not repeated, because a daemon's process ended", style="yellow")
    else:
        console.print("    not reproducible every time", style="yellow")


def _cut(value: str) -> str:
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"


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
