"""Conformance reports: on the terminal, as Markdown, and the one-line verdict."""

import re
import shlex
from collections.abc import Iterator, Sequence

from memconform.conformance.concerns import CONCERNS, Concern
from memconform.conformance.defects import defects
from memconform.conformance.findings import Finding, count_line, findings
from memconform.conformance.names import ROBUSTNESS
from memconform.conformance.results import (
    RED,
    CaseResult,
    Check,
    ConformReport,
    Result,
    SdkResult,
)
from memconform.conformance.rules import rules
from memconform.conformance.suite import CaseFinished, Event
from memconform.printing.console import SafeConsole, standard_error, styled
from memconform.printing.escaping import Lines, escape_markdown, printable
from memconform.printing.plurals import plural
from memconform.reports.markdown import markdown_table
from memconform.reports.progress import ProgressReport

STYLE = {
    Result.PASS: "green",
    Result.FAIL: "bold red",
    Result.WARN: "yellow",
    Result.XFAIL: "yellow",
    Result.XPASS: "bold red",
    Result.UNTESTABLE: "red",
    Result.NOT_APPLICABLE: "dim",
    Result.ERROR: "bold magenta",
}


def conform_banner(sdk: SdkResult, selection: str = "") -> str:
    """Format `<sdk>: <n> of <n> checks pass in <n> case variants[, <n> <result>]…: <verdict>`.

    `selection` names the part of the cases that was run; a part cannot show conformance.
    """
    counts = sdk.counts()
    name = f"{sdk.sdk}, {selection}" if selection else sdk.sdk
    applicable = sdk.applicable()
    if not applicable:
        return f"{name}: no selected check applies, because {_skip_reasons(sdk)}: no verdict"
    ran = sum(case.result is not Result.NOT_APPLICABLE for case in sdk.cases)
    checks = plural(applicable, "check")
    verb = "passes" if applicable == 1 else "pass"
    line = f"{name}: {counts[Result.PASS]} of {checks} {verb} in {plural(ran, 'case variant')}"
    others = [f"{n} {r.value}" for r, n in counts.items() if n and r is not Result.PASS]
    if sdk.stale_known:
        others.append(f"{len(sdk.stale_known)} stale known")
    verdict = "conformant" if sdk.exit_code == 0 else "no verdict"
    if counts[Result.FAIL] or counts[Result.XPASS] or sdk.stale_known:
        verdict = "NOT conformant"
    elif sdk.exit_code == 0 and counts[Result.XFAIL]:
        verdict = f"conformant except for {plural(counts[Result.XFAIL], 'known failure')}"
    claims = [_named(kind, claimed) for kind, claimed, _ in _claims(sdk)]
    if claims and verdict.startswith("conformant"):
        verdict += f" with the {' and the '.join(claims)} only"
    if selection and sdk.exit_code == 0:
        return f"{', '.join([line, *others])}; other rules were not tested"
    return f"{', '.join([line, *others])}: {verdict}"


_SHOWN_REPEATS = 5


def conform_notes(report: ConformReport) -> list[str]:
    """Lines about cases that were not run, or not as others were: no count of checks shows them."""
    notes = []
    for sdk in report.sdks:
        for kind, claimed, skipped in _claims(sdk):
            cases = plural(len(skipped), "case variant")
            notes.append(
                f"{sdk.sdk} claims the {_named(kind, claimed)} only: {cases} of other {kind}s"
                " skipped, not passed"
            )
        if sdk.repeated:
            cases = plural(len(sdk.repeated), "case variant")
            shown = ", ".join(sdk.repeated[:_SHOWN_REPEATS])
            more = ", …" if len(sdk.repeated) > _SHOWN_REPEATS else ""
            notes.append(
                f"{sdk.sdk}: {cases} ran again, alone, because they or the start of their daemon"
                f" had timed out: {shown}{more}"
            )
    if report.unprofiled_not_run:
        cases = plural(len(report.unprofiled_not_run), "case")
        verb = "belongs" if len(report.unprofiled_not_run) == 1 else "belong"
        notes.append(f"not run: {cases} that {verb} to no profile; add --profile {ROBUSTNESS}")
    return notes


def _claims(sdk: SdkResult) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each kind of provider of which an SDK claims some: which, and what was skipped."""
    if sdk.readers is not None:
        yield "reader", sdk.readers, sdk.unclaimed_reader_cases
    if sdk.embedders is not None:
        yield "embedder", sdk.embedders, sdk.unclaimed_embedder_cases


def _named(kind: str, names: Sequence[str]) -> str:
    return f"{kind if len(names) == 1 else f'{kind}s'} {', '.join(names)}"


def _skip_reasons(sdk: SdkResult) -> str:
    """The reasons for which cases do not apply, each once."""
    reasons = dict.fromkeys(reason for case in sdk.cases for reason in case.checks[0].got)
    return " and ".join(reasons)


class ConformanceConsole(ProgressReport):
    """Event handler that shows the progress of each SDK; findings are shown at its end."""

    def __init__(self, cases: int, sdks: Sequence[str], *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self._tasks = {sdk: self._progress.add_task(sdk, total=cases) for sdk in sdks}

    def handle(self, event: Event) -> None:
        """Advance the progress bar of the event's SDK."""
        if isinstance(event, CaseFinished):
            self._progress.advance(self._tasks[event.sdk])


_MOST_CAUSES = 20
"""With more causes, defects are shown, so that they fit one screen."""
_SHOWN_DEFECTS = {Concern.SAFETY: 10, Concern.INTERCHANGE: 10, Concern.STRICTNESS: 6}
_COLUMNS = 100
_DETAILED = 5
"""Up to so many causes, the example of each is shown with its rule and what was expected."""


def show_findings(sdk: SdkResult, *, verbose: bool = False, replay: str = "") -> None:
    """Print the causes for which checks of an SDK did not pass to standard error.

    `verbose` prints every check instead. `replay` is the command that repeats a case, without the
    check; empty if there is none.
    """
    if verbose:
        checks = [check for case in sdk.cases for check in case.checks]
        show_checks(standard_error(), sdk, checks, replay=replay)
        return
    console = standard_error()
    _show_problems(console, sdk)
    causes = findings(sdk)
    red = [finding for finding in causes if finding.is_red]
    if len(red) > _MOST_CAUSES:
        _show_defects(console, sdk)
        others = [finding for finding in causes if not finding.is_red]
        causes = []
        if others:
            count = plural(sum(finding.checks for finding in others), "check")
            console.print(f"known failures and warnings: {count}, {plural(len(others), 'cause')}")
    for finding in causes:
        _show_finding(console, sdk.sdk, finding, replay, detailed=len(red) <= _DETAILED)
    if red:
        total = sum(sdk.counts()[result] for result in RED)
        line = f"{sdk.sdk}: {plural(total, 'red check')}, {plural(len(red), 'cause')}"
        if sum(finding.checks for finding in red) > total:
            line += "; a check with several causes is counted for each"
        console.print(line)


def _show_defects(console: SafeConsole, sdk: SdkResult) -> None:
    """Print the defects of an SDK on one screen, the gravest first, each with a check to look at.

    A check with several causes counts for each.
    """
    found = defects(sdk)
    for concern, most in _SHOWN_DEFECTS.items():
        mine = [defect for defect in found if defect.concern is concern]
        if not mine:
            continue
        count = plural(len(mine), "defect")
        head = (f"{concern.value}: ", STYLE[Result.FAIL])
        console.print(styled([head, (f"{count}: {_MEANING[concern]}", "")]), soft_wrap=True)
        for defect in mine[:most]:
            example = _cut(defect.example, _EXAMPLE)
            name = _cut(
                defect.shown.replace("/v1/brains/{brain}", "…"), _COLUMNS - len(example) - 10
            )
            line = f"{len(defect.checks):>6}  {name:<{_COLUMNS - len(example) - 10}}  {example}"
            console.print(line, soft_wrap=True)
        if len(mine) > most:
            checks = len({check for defect in mine[most:] for check in defect.checks})
            console.print(f"{checks:>6}  in {plural(len(mine) - most, 'more defect')}")


_EXAMPLE = 36

_MEANING = {
    Concern.SAFETY: "documents or access are at risk, or the daemon fails",
    Concern.INTERCHANGE: "a client of the contract breaks, or gets something else",
    Concern.STRICTNESS: "accepted, worded or computed otherwise; clients need not notice",
}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _show_problems(console: SafeConsole, sdk: SdkResult) -> None:
    for problem in sdk.problems:
        console.print(Lines(f"{sdk.sdk}: {problem}"), style=STYLE[Result.FAIL])
    for cause in sdk.stale_known:
        line = f"{sdk.sdk}: listed as known to fail, but no longer occurs: {cause}"
        console.print(line, style=STYLE[Result.XPASS])


def _show_finding(
    console: SafeConsole, sdk: str, finding: Finding, replay: str, *, detailed: bool
) -> None:
    case, check = finding.case, finding.check
    if case is None or check is None:
        return
    style = STYLE[check.result if finding.is_red else Result.XFAIL]
    head = [(f"{count_line(finding)}: ", style), (finding.cause, "bold")]
    console.print(styled([*head, (f"  (known: {finding.known})" if finding.known else "", "")]))
    if detailed:
        evidence: dict[str, object] = {"step": finding.step, "curl": finding.curl, "causes": []}
        if finding.example is not None and finding.example.got:
            evidence["got"] = [finding.example.got]
        _show(console, sdk, case, [check.model_copy(update=evidence)])
        if replay and check.result is Result.FAIL:
            _show_replay(console, f"{replay} {shlex.quote(f'{sdk}:{check.id}')}")
        return
    console.print(f"    example   {check.id}  {case.title}")
    console.print(f"    got       {_first_line(finding.got)}")
    if finding.curl:
        console.print(f"    try       {shortened(finding.curl)}", soft_wrap=True)


def _show_replay(console: SafeConsole, command: str) -> None:
    # Commands are not wrapped, so that they can be copied.
    console.print(f"    replay    {command}", soft_wrap=True)


_GOT_SHOWN = 300


def _first_line(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= _GOT_SHOWN else f"{line[:_GOT_SHOWN]}…"


def show_checks(
    console: SafeConsole, sdk: SdkResult, checks: Sequence[Check], *, replay: str = ""
) -> None:
    """Print these checks of an SDK, each with its rule, evidence and commands."""
    _show_problems(console, sdk)
    wanted = {check.id for check in checks}
    for case in sdk.cases:
        mine = [check for check in case.checks if check.id in wanted]
        _show(console, sdk.sdk, case, mine)
        failed = next((check for check in mine if check.result is Result.FAIL), None)
        if replay and failed is not None:
            _show_replay(console, f"{replay} {shlex.quote(f'{sdk.sdk}:{failed.id}')}")


def show_case(sdk: str, case: CaseResult) -> None:
    """Print every check of a case to standard error."""
    console = standard_error()
    _show(console, sdk, case, case.checks)


def _show(console: SafeConsole, sdk: str, case: CaseResult, checks: Sequence[Check]) -> None:
    """Print checks, each rule once, with the first check that it applies to."""
    shown_rules: set[str] = set()
    for check in checks:
        head = [
            (f"{check.result.value.upper():<10} ", STYLE[check.result]),
            (f"{sdk} {check.id}", "bold"),
            ("" if shown_rules else f"  {case.title}", ""),
        ]
        console.print(styled(head))
        if check.result not in (Result.PASS, Result.NOT_APPLICABLE):
            _show_details(console, check, shown_rules)


def _show_details(console: SafeConsole, check: Check, shown_rules: set[str]) -> None:
    for name in check.rules:
        rule = rules().get(name)
        if rule is not None and name not in shown_rules:
            shown_rules.add(name)
            console.print(f"    rule      {name} ({CONCERNS[name].value}): {rule.text}")
    causes = "; ".join(cause.cause for cause in check.causes)
    facts = (
        ("cause", causes), ("expected", check.expected), ("at", check.step), ("known", check.known),
    )  # fmt: skip
    for name, value in facts:
        if value:
            console.print(f"    {name:<9} {value}")
    lines = [line for got in check.got for line in got.split("\n")]
    for number, line in enumerate(lines[:_GOT_LINES]):
        console.print(Lines(f"    {'got' if number == 0 else '':<9} {line}"))
    if len(lines) > _GOT_LINES:
        console.print(f"              and {len(lines) - _GOT_LINES} more lines")
    if check.curl:
        console.print(f"    try       {shortened(check.curl)}", soft_wrap=True)


_GOT_LINES = 20
"""Most lines of one check: 1,024 differences say no more than the first ones."""

LONGEST_COMMAND = 100 * 1024
"""A shell takes 128 KiB as one argument."""

_CURL_SHOWN = 2_000


def shortened(curl: str) -> str:
    """Cut a command that no shell takes, which results of earlier versions have."""
    if len(curl) <= LONGEST_COMMAND:
        return curl
    return f"{curl[:_CURL_SHOWN]}… ({len(curl)} characters, too long for a shell; use replay)"


_MOST_LISTED = 50
"""Maximum number of causes per SDK in Markdown: CI servers cut a longer summary."""

_COUNTED = (
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
    rows = []
    for sdk in report.sdks:
        counts = sdk.counts()
        name = f"{'✅' if sdk.exit_code == 0 else '❌'} {sdk.sdk}"
        rows.append([name, *(str(counts[each]) for each in _COUNTED), f"{sdk.took_s:.0f}"])
    header = ["SDK", *(result.value for result in _COUNTED), "seconds"]
    lines = [f"## memconform {report.suite}", "", *markdown_table(header, rows)]
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
    for finding in causes[:_MOST_LISTED]:
        lines += _item(finding)
    if len(causes) > _MOST_LISTED:
        lines.append(f"- and {plural(len(causes) - _MOST_LISTED, 'more cause')}")
    return lines


def _item(finding: Finding) -> list[str]:
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
