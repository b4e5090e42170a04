"""Groups the checks that did not pass by cause, and writes lists of known failures. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import yaml

from memconform.conformance.known_failures import UNFILLED
from memconform.conformance.results import RED, CaseResult, Cause, Check, Result, SdkResult
from memconform.conformance.routes import request_name
from memconform.printing.plurals import plural

SHOWN = (*RED, Result.WARN, Result.XFAIL)
"""Results that a report shows."""

NOT_RECORDED = "no cause was recorded"
"""Stands for the cause of a check in a report of a version before there were causes."""

_SHORT = 300
"""Longest command of an example, in characters, if another check has a shorter one."""


@dataclass(slots=True)
class Finding:
    """A cause, and the checks that did not pass because of it."""

    cause: str
    results: Counter[Result] = field(default_factory=Counter)
    cases: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    """For each check the reason for which the cause is known; empty if it is not."""
    case: CaseResult | None = None
    """The case of the example."""
    check: Check | None = None
    """A check that shows the cause."""
    example: Cause | None = None
    """The cause in that check."""

    @property
    def checks(self) -> int:
        """Number of checks."""
        return self.results.total()

    @property
    def known(self) -> str:
        """The reason, if the cause is listed as known in every check; else empty."""
        return self.reasons[0] if all(self.reasons) else ""

    @property
    def is_red(self) -> bool:
        """Whether it fails a run: no list excuses it, and it is no warning."""
        return any(result in RED for result in self.results) and not self.known

    @property
    def step(self) -> str:
        """The step of the example."""
        return self._first("step")

    @property
    def curl(self) -> str:
        """The command that repeats the example's step."""
        return self._first("curl")

    @property
    def shows_cause(self) -> bool:
        """Whether the example has a command, and that sends the request that the cause names."""
        return bool(self.curl) and _shows(self.cause, self.step)

    @property
    def got(self) -> str:
        """What is wrong in the example, with its values."""
        if self.example is not None and self.example.got:
            return self.example.got
        return " ".join(self.check.got) if self.check is not None else ""

    def _first(self, name: str) -> str:
        own = getattr(self.example, name, "")
        return str(own or getattr(self.check, name, ""))

    def add(self, case: CaseResult, check: Check, cause: Cause) -> None:
        """Count a check with this cause, and keep the best example."""
        self.results[check.result] += 1
        self.cases.add(case.case)
        self.reasons.append(cause.known)
        if self.check is None or _worth(check, cause) > _worth(self.check, self.example):
            self.case, self.check, self.example = case, check, cause


def _worth(check: Check, cause: Cause | None) -> tuple[bool, bool, bool]:
    """Order checks by what they show as examples.

    One that fails the run comes first, then one whose command sends the request that the cause
    names, then one with a short command.
    """
    command = (cause.curl if cause is not None else "") or check.curl
    shows = _shows(cause.cause, cause.step or check.step) if cause is not None else False
    return check.result in RED, shows, 0 < len(command) <= _SHORT


def _shows(cause: str, step: str) -> bool:
    """Whether a step sends the request that a cause names, if it names one.

    A check that follows from an earlier request has the cause of that request, and its own step.
    """
    if not re.match(r"[A-Z]+ /", cause):
        return True
    method, _, target = step.removeprefix("raw: ").partition(" ")
    return cause.startswith(f"{request_name(method, target)}: ")


def causes_of(check: Check) -> list[Cause]:
    """Return the causes of a check that did not pass."""
    return check.causes or [Cause(cause=NOT_RECORDED)]


def findings(sdk: SdkResult, results: Sequence[Result] = SHOWN) -> list[Finding]:
    """Group the checks with these results by cause.

    The causes that fail a run come first, of these the one of most checks; a check with several
    causes counts for each.
    """
    groups: dict[str, Finding] = {}
    for case in sdk.cases:
        for check in case.checks:
            if check.result in results:
                for cause in causes_of(check):
                    group = groups.setdefault(cause.cause, Finding(cause.cause))
                    group.add(case, check, cause)
    return sorted(groups.values(), key=lambda f: (not f.is_red, -f.checks, f.cause))


def count_line(finding: Finding) -> str:
    """Format `N checks in M cases`, and what became of them if they did not all fail."""
    counts = f"{plural(finding.checks, 'check')} in {plural(len(finding.cases), 'case')}"
    kinds = [f"{n} {result.value}" for result, n in sorted(finding.results.items())]
    return counts if set(finding.results) == {Result.FAIL} else f"{counts} ({', '.join(kinds)})"


_VALID_DAYS = 90

_HEAD = """\
# Known causes of failures, written by memconform conform --write-known.
# Replace each link by the address of the issue about it, and delete an entry once it is fixed.
"""


def known_list(sdks: Iterable[SdkResult], today: date, *, name_sdks: bool) -> str:
    """Write a list of known failures, as YAML, with the causes that no list covers yet.

    Checks that could not be tested are not listed: no list excuses them.
    """
    entries = [
        {
            "cause": finding.cause,
            "reason": f"{count_line(finding)}, for example {finding.check.id}",
            "link": UNFILLED,
            "expires": str(today + timedelta(days=_VALID_DAYS)),
            **({"sdk": sdk.sdk} if name_sdks else {}),
        }
        for sdk in sdks
        for finding in findings(sdk, (Result.FAIL,))
        if not finding.known and finding.check is not None
    ]
    return _HEAD + yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=10_000)
