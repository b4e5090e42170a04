"""Conformance on the terminal: progress on standard error, the verdict on standard output."""

from collections import Counter
from collections.abc import Sequence

from memconform.conformance.results import RED, CaseResult, Check, Result, SdkResult
from memconform.conformance.rules import rules
from memconform.conformance.suite import CaseFinished, Event
from memconform.printing.console import SafeConsole, styled
from memconform.printing.escaping import Lines, indent
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
_TOLD = (*RED, Result.WARN, Result.XFAIL)


def conform_banner(sdk: SdkResult) -> str:
    """`<sdk>: <passed> of <checks> checks pass in <cases> cases[, <n> <result>]…`."""
    counts = sdk.counts()
    applicable = sum(counts.values()) - counts[Result.NOT_APPLICABLE]
    ran = sum(case.result is not Result.NOT_APPLICABLE for case in sdk.cases)
    line = f"{sdk.sdk}: {counts[Result.PASS]} of {applicable} checks pass in {ran} cases"
    others = [f"{n} {r.value}" for r, n in counts.items() if n and r is not Result.PASS]
    verdict = "conformant" if sdk.exit_code == 0 else "no verdict"
    if counts[Result.FAIL] or counts[Result.XPASS]:
        verdict = "NOT conformant"
    elif sdk.exit_code == 0 and counts[Result.XFAIL]:
        verdict = f"conformant but for {counts[Result.XFAIL]} known failures"
    return ", ".join([line, *others]) + f": {verdict}"


class ConformanceConsole(ProgressReport):
    """Listens to a session's events; a finding is told when its SDK is through, in order."""

    def __init__(self, cases: int, sdks: Sequence[str]) -> None:
        super().__init__()
        self._tasks = {sdk: self._progress.add_task(sdk, total=cases) for sdk in sdks}

    def handle(self, event: Event) -> None:
        if isinstance(event, CaseFinished):
            self._progress.advance(self._tasks[event.sdk])


def show_findings(sdk: SdkResult, *, verbose: bool = False) -> None:
    """Everything about an SDK that is not a plain pass, to standard error."""
    console = standard_error()
    for problem in sdk.problems:
        console.print(Lines(f"{sdk.sdk}: {problem}"), style=STYLE[Result.FAIL])
    reasons: Counter[tuple[str, ...]] = Counter()
    for case in sdk.cases:
        told = [c for c in case.checks if c.result in _TOLD or verbose]
        if _all_alike(told) and not verbose:
            told = told[:1]
            reason = tuple(told[0].got)
            reasons[reason] += 1
            if reasons[reason] > 1:
                continue
        _show(console, sdk.sdk, case, told)
    for reason, count in reasons.items():
        if count > 1:
            first = reason[0].partition("\n")[0] if reason else ""
            line = f"{sdk.sdk}: and {count - 1} cases more, for the same reason: {first}"
            console.print(line, style=STYLE[Result.UNTESTABLE])


def _all_alike(checks: Sequence[Check]) -> bool:
    """Whether a case came to nothing as a whole, which is told once."""
    reasons = {(check.result, tuple(check.got)) for check in checks}
    return len(reasons) == 1 and checks[0].result in (Result.UNTESTABLE, Result.ERROR)


def show_case(sdk: str, case: CaseResult) -> None:
    """Every check of a case, to standard error."""
    console = standard_error()
    _show(console, sdk, case, case.checks)


def _show(console: SafeConsole, sdk: str, case: CaseResult, checks: Sequence[Check]) -> None:
    """Each rule once, above the first check that is held to it."""
    told: set[str] = set()
    for check in checks:
        head = [
            (f"{check.result.value.upper():<10} ", STYLE[check.result]),
            (f"{sdk} {check.id}", "bold"),
            ("" if told else f"  {case.title}", ""),
        ]
        console.print(styled(head))
        if check.result not in (Result.PASS, Result.NOT_APPLICABLE):
            _show_why(console, check, told)


def _show_why(console: SafeConsole, check: Check, told: set[str]) -> None:
    for rule in check.rules:
        known = rules().get(rule)
        if known is not None and rule not in told:
            told.add(rule)
            console.print(f"    rule      {rule}: {known.text}")
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
    """A command that fits a terminal; the wire's file has the whole of it."""
    if len(curl) <= _CURL_SHOWN:
        return curl
    return f"{curl[:_CURL_SHOWN]}… ({len(curl)} characters; see wire/ in the run's folder)"
