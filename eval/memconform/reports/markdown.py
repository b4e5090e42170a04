"""Conformance as Markdown, for the job summary of a CI server."""

import re

from memconform.conformance.results import RED, Check, ConformReport, Result, SdkResult
from memconform.printing.escaping import escape_markdown, printable
from memconform.reports.conformance import conform_banner, shortened

_SHOWN = 50
"""Maximum number of findings per SDK: nobody reads a longer summary, and CI servers cut it."""

_COLUMNS = (
    Result.PASS,
    Result.FAIL,
    Result.WARN,
    Result.XFAIL,
    Result.XPASS,
    Result.UNTESTABLE,
    Result.ERROR,
    Result.NOT_APPLICABLE,
)


def conformance_markdown(report: ConformReport, selection: str = "") -> str:
    """Render a table of counts, then a section with the findings of each SDK.

    `selection` names the part of the cases that was run; empty if all were.
    """
    lines = ["## memconform conform", "", _row(["SDK", *(r.value for r in _COLUMNS), "seconds"])]
    lines.append(_row(["---", *["---:"] * (len(_COLUMNS) + 1)]))
    for sdk in report.sdks:
        counts = sdk.counts()
        mark = "✅" if sdk.exit_code == 0 else "❌"
        cells = [
            f"{mark} {escape_markdown(sdk.sdk)}",
            *(str(counts[result]) for result in _COLUMNS),
        ]
        lines.append(_row([*cells, f"{sdk.took_s:.0f}"]))
    if selection:
        lines.append(f"\nTested: {escape_markdown(selection)}; other rules were not tested.")
    lines += [
        f"\n{escape_markdown(s.sdk)} skipped: {escape_markdown(s.reason)}" for s in report.skipped
    ]
    for sdk in report.sdks:
        lines += _section(sdk, selection)
    return "\n".join(lines) + "\n"


def _section(sdk: SdkResult, selection: str) -> list[str]:
    findings = [
        (case.title, check)
        for case in sdk.cases
        for check in case.checks
        if check.result in RED or check.result is Result.WARN
    ]
    if not findings and not sdk.problems:
        return []
    lines = ["", f"### {escape_markdown(conform_banner(sdk, selection))}", ""]
    lines += [f"- daemon: {escape_markdown(problem)}" for problem in sdk.problems]
    for title, check in findings[:_SHOWN]:
        lines += _finding(title, check)
    if len(findings) > _SHOWN:
        lines.append(f"- and {len(findings) - _SHOWN} more")
    return lines


def _finding(title: str, check: Check) -> list[str]:
    rules = ", ".join(f"`{rule}`" for rule in check.rules)
    lines = [f"- **{check.result.value}** `{check.id}` {escape_markdown(title)} ({rules})"]
    lines += [f"  - {escape_markdown(got)}" for got in check.got]
    if check.curl:
        # Only a fence longer than any run of backticks inside cannot be closed early.
        curl = printable(shortened(check.curl))
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", curl)), default=0))
        lines += [f"  {fence}sh", f"  {curl}", f"  {fence}"]
    return lines


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
