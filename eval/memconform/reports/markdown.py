"""Conformance as Markdown, for the job summary of a CI server."""

import re

from memconform.conformance.findings import Finding, count_line, findings
from memconform.conformance.results import RED, ConformReport, Result, SdkResult
from memconform.printing.escaping import escape_markdown, printable
from memconform.printing.plurals import plural
from memconform.reports.conformance import conform_banner, conform_notes, shortened

_SHOWN = 50
"""Maximum number of causes per SDK: nobody reads a longer summary, and CI servers cut it."""

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
    """Render a table of counts, then a section with the causes of each SDK's failures.

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
    lines += [f"\n{escape_markdown(note)}." for note in conform_notes(report)]
    lines += [
        f"\n{escape_markdown(s.sdk)} skipped: {escape_markdown(s.reason)}" for s in report.skipped
    ]
    for sdk in report.sdks:
        lines += _section(sdk, selection)
    return "\n".join(lines) + "\n"


def _section(sdk: SdkResult, selection: str) -> list[str]:
    causes = findings(sdk, (*RED, Result.WARN))
    if not causes and not sdk.problems and not sdk.stale_known:
        return []
    lines = ["", f"### {escape_markdown(conform_banner(sdk, selection))}", ""]
    lines += [f"- daemon: {escape_markdown(problem)}" for problem in sdk.problems]
    lines += [
        f"- listed as known to fail, but no longer occurs: {escape_markdown(cause)}"
        for cause in sdk.stale_known
    ]
    for finding in causes[:_SHOWN]:
        lines += _finding(finding)
    if len(causes) > _SHOWN:
        lines.append(f"- and {plural(len(causes) - _SHOWN, 'more cause')}")
    return lines


def _finding(finding: Finding) -> list[str]:
    case, check = finding.case, finding.check
    if case is None or check is None:
        return []
    rules = ", ".join(f"`{rule}`" for rule in check.rules)
    example = f"`{check.id}` {escape_markdown(case.title)} ({rules})"
    got = finding.example.got if finding.example is not None else ""
    lines = [f"- **{count_line(finding)}**: {escape_markdown(finding.cause)}"]
    lines += [f"  - **{check.result.value}** {example}"]
    lines += [f"  - {escape_markdown(line)}" for line in ([got] if got else check.got)]
    if finding.curl:
        # Only a fence longer than any run of backticks inside cannot be closed early.
        curl = printable(shortened(finding.curl))
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", curl)), default=0))
        lines += [f"  {fence}sh", f"  {curl}", f"  {fence}"]
    return lines


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
