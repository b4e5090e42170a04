"""Conformance as Markdown, for the summary that a CI server shows."""

import re

from memconform.conformance.results import RED, Check, ConformReport, Result, SdkResult
from memconform.redaction import redact
from memconform.reports.conformance import conform_banner, shortened
from memconform.reports.names import escaped

_SHOWN = 50
"""Findings an SDK: a summary that is longer than a page is not read, and CI servers cut it."""

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


def conformance_markdown(report: ConformReport) -> str:
    """A table of counts, then what is wrong, an SDK a section."""
    lines = ["## memconform conform", "", _row(["SDK", *(r.value for r in _COLUMNS), "seconds"])]
    lines.append(_row(["---", *["---:"] * (len(_COLUMNS) + 1)]))
    for sdk in report.sdks:
        counts = sdk.counts()
        mark = "✅" if sdk.exit_code == 0 else "❌"
        cells = [f"{mark} {escaped(sdk.sdk)}", *(str(counts[result]) for result in _COLUMNS)]
        lines.append(_row([*cells, f"{sdk.took_s:.0f}"]))
    lines += [f"\n`{escaped(s.sdk)}` skipped: {escaped(s.reason)}" for s in report.skipped]
    for sdk in report.sdks:
        lines += _section(sdk)
    return redact("\n".join(lines)) + "\n"


def _section(sdk: SdkResult) -> list[str]:
    told = [
        (case.title, check)
        for case in sdk.cases
        for check in case.checks
        if check.result in RED or check.result is Result.WARN
    ]
    if not told and not sdk.problems:
        return []
    lines = ["", f"### {escaped(conform_banner(sdk))}", ""]
    lines += [f"- daemon: {escaped(problem)}" for problem in sdk.problems]
    for title, check in told[:_SHOWN]:
        lines += _finding(title, check)
    if len(told) > _SHOWN:
        lines.append(f"- and {len(told) - _SHOWN} more")
    return lines


def _finding(title: str, check: Check) -> list[str]:
    rules = ", ".join(f"`{rule}`" for rule in check.rules)
    lines = [f"- **{check.result.value}** `{check.id}` {escaped(title)} ({rules})"]
    lines += [f"  - {escaped(got)}" for got in check.got]
    if check.curl:
        # A fence longer than any run of backticks inside ends where we end it.
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", check.curl)), default=0))
        lines += [f"  {fence}sh", f"  {shortened(check.curl)}", f"  {fence}"]
    return lines


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
