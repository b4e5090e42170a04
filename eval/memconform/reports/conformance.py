"""Conformance reports: progress and findings on the terminal, and the one-line verdict."""

import shlex
from collections import Counter
from collections.abc import Sequence

from memconform.conformance.results import RED, CaseResult, Check, Result, SdkResult
from memconform.conformance.rules import rules
from memconform.conformance.suite import CaseFinished, Event
from memconform.printing.console import SafeConsole, styled
from memconform.printing.escaping import Lines, indent
from memconform.printing.plurals import plural
from memconform.reports.console import ProgressReport, standard_error

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
_SHOWN_RESULTS = (*RED, Result.WARN, Result.XFAIL)


def conform_banner(sdk: SdkResult, selection: str = "") -> str:
    """Format `<sdk>: <n> of <n> checks pass in <n> case variants[, <n> <result>]…: <verdict>`.

    `selection` names the part of the cases that was run; a part cannot show conformance.
    """
    counts = sdk.counts()
    name = f"{sdk.sdk}, {selection}" if selection else sdk.sdk
    applicable = sum(counts.values()) - counts[Result.NOT_APPLICABLE]
    if not applicable:
        return f"{name}: no selected check applies, because {_skip_reasons(sdk)}: no verdict"
    ran = sum(case.result is not Result.NOT_APPLICABLE for case in sdk.cases)
    checks = plural(applicable, "check")
    verb = "passes" if applicable == 1 else "pass"
    line = f"{name}: {counts[Result.PASS]} of {checks} {verb} in {plural(ran, 'case variant')}"
    others = [f"{n} {r.value}" for r, n in counts.items() if n and r is not Result.PASS]
    verdict = "conformant" if sdk.exit_code == 0 else "no verdict"
    if counts[Result.FAIL] or counts[Result.XPASS]:
        verdict = "NOT conformant"
    elif sdk.exit_code == 0 and counts[Result.XFAIL]:
        verdict = f"conformant except for {plural(counts[Result.XFAIL], 'known failure')}"
    if selection and sdk.exit_code == 0:
        return f"{', '.join([line, *others])}; other rules were not tested"
    return f"{', '.join([line, *others])}: {verdict}"


def _skip_reasons(sdk: SdkResult) -> str:
    """The reasons for which cases do not apply, each once."""
    reasons = dict.fromkeys(reason for case in sdk.cases for reason in case.checks[0].got)
    return " and ".join(reasons)


class ConformanceConsole(ProgressReport):
    """Event handler that shows the progress of each SDK; findings are shown at its end."""

    def __init__(self, cases: int, sdks: Sequence[str]) -> None:
        super().__init__()
        self._tasks = {sdk: self._progress.add_task(sdk, total=cases) for sdk in sdks}

    def handle(self, event: Event) -> None:
        """Advance the progress bar of the event's SDK."""
        if isinstance(event, CaseFinished):
            self._progress.advance(self._tasks[event.sdk])


def show_findings(sdk: SdkResult, *, verbose: bool = False, replay: str = "") -> None:
    """Print everything about an SDK that is not a plain pass to standard error.

    `replay` is the command that repeats a case, without the check; empty if there is none.
    """
    console = standard_error()
    for problem in sdk.problems:
        console.print(Lines(f"{sdk.sdk}: {problem}"), style=STYLE[Result.FAIL])
    reasons: Counter[tuple[str, ...]] = Counter()
    for case in sdk.cases:
        checks = [c for c in case.checks if c.result in _SHOWN_RESULTS or verbose]
        if _share_a_reason(checks) and not verbose:
            checks = checks[:1]
            reason = tuple(checks[0].got)
            reasons[reason] += 1
            if reasons[reason] > 1:
                continue
        _show(console, sdk.sdk, case, checks)
        failed = next((check for check in checks if check.result is Result.FAIL), None)
        if replay and failed is not None:
            console.print(f"    replay    {replay} {shlex.quote(f'{sdk.sdk}:{failed.id}')}")
    for reason, count in reasons.items():
        if count > 1:
            first = reason[0].partition("\n")[0] if reason else ""
            more = plural(count - 1, "more case")
            line = f"{sdk.sdk}: {more} for the same reason: {first}"
            console.print(line, style=STYLE[Result.UNTESTABLE])


def _share_a_reason(checks: Sequence[Check]) -> bool:
    """Whether a case as a whole could not be tested, which is reported once."""
    reasons = {(check.result, tuple(check.got)) for check in checks}
    return len(reasons) == 1 and checks[0].result in (Result.UNTESTABLE, Result.ERROR)


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
            console.print(f"    rule      {name}: {rule.text}")
    for name, value in (("expected", check.expected), ("at", check.step), ("known", check.known)):
        if value:
            console.print(f"    {name:<9} {value}")
    for number, got in enumerate(check.got):
        first, *more = got.split("\n")
        console.print(f"    {'got' if number == 0 else '':<9} {first}")
        if more:
            console.print(indent("\n".join(more), " " * 14))
    if check.curl:
        console.print(f"    try       {shortened(check.curl)}")


_CURL_SHOWN = 2_000


def shortened(curl: str) -> str:
    """Cut a command to a length that fits a terminal; the run's wire/ folder has all of it."""
    if len(curl) <= _CURL_SHOWN:
        return curl
    return f"{curl[:_CURL_SHOWN]}… ({len(curl)} characters; see wire/ in the run's folder)"
