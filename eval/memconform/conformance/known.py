"""Checks that are known to fail, with a reason and a day on which that is no excuse any more."""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from memconform.conformance import strict_yaml
from memconform.conformance.bodies import Strict
from memconform.conformance.results import IMPLICIT, CaseResult, Check, Result
from memconform.errors import UsageError
from memconform.validation import first_fault


class KnownFailure(Strict):
    """One entry of a list."""

    check: str = Field(min_length=1)
    """A glob over ids of checks, `case#slot`; `[` and `]` stand for themselves. The slots `wire`
    and `alive`, which every case has, must be named."""
    kind: Literal["failing", "flaky"] = "failing"
    """Once nothing that it covers fails any more, a failing entry is a failure itself; what a flaky
    one covers may do either."""
    reason: str = Field(min_length=1)
    link: str = Field(pattern=r"^https?://\S+$")
    expires: date
    """The last day on which it holds, `YYYY-MM-DD`."""
    sdk: str | None = None
    """None: every SDK."""

    @field_validator("expires", mode="before")
    @classmethod
    def _a_day(cls, given: object) -> object:
        if not isinstance(given, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", given):
            raise ValueError("write a day as YYYY-MM-DD")
        return given

    def fits(self, sdk: str, check: str) -> bool:
        return self.sdk in (None, sdk) and self.covers(check)

    def covers(self, check: str) -> bool:
        """Whether it is about that check; about one that every case has only by its name."""
        slot = check.rpartition("#")[2]
        if slot in IMPLICIT and not self.check.endswith(f"#{slot}"):
            return False
        return fnmatchcase(check, self.check.replace("[", "[[]"))


def load_known(path: Path) -> list[KnownFailure]:
    """The entries of a file, a YAML list.

    Raises:
        UsageError: naming file and entry, for what is none.
    """
    loaded = strict_yaml.load_yaml(path)
    if not isinstance(loaded, list):
        raise _invalid(f"{path}: a list of entries is wanted")
    entries = []
    for number, raw in enumerate(loaded):
        try:
            entries.append(KnownFailure.model_validate(raw))
        except ValidationError as error:
            raise _invalid(f"{path}: entry {number}: {first_fault(error)}") from error
    return entries


def require_unexpired(known: Iterable[KnownFailure], checks: Sequence[str], today: date) -> None:
    """Raise UsageError for an entry that is out of date, or fits no check that there is."""
    for entry in known:
        if entry.expires < today:
            raise _invalid(f"the entry {entry.check!r} has expired on {entry.expires}")
        if not any(entry.covers(check) for check in checks):
            raise _invalid(f"the entry {entry.check!r} fits no check")


def _invalid(why: str) -> UsageError:
    return UsageError(
        why,
        code="known_invalid",
        hint="an entry has check, reason, link and expires (YYYY-MM-DD); take out what is mended",
    )


def mark_expected(case: CaseResult, sdk: str, known: Sequence[KnownFailure]) -> CaseResult:
    """`case` with its known failures marked as such."""
    return case.model_copy(update={"checks": [_excused(c, sdk, known) for c in case.checks]})


def _excused(check: Check, sdk: str, known: Sequence[KnownFailure]) -> Check:
    entry = next((each for each in known if each.fits(sdk, check.id)), None)
    if entry is None or check.result is not Result.FAIL:
        return check
    return check.model_copy(update={"result": Result.XFAIL, "known": _reason(entry)})


def mark_stale(
    cases: Sequence[CaseResult], sdk: str, known: Sequence[KnownFailure]
) -> list[CaseResult]:
    """`cases`, in which what passes is red where an entry has nothing left that fails."""
    checks = [check for case in cases for check in case.checks]
    over = [entry for entry in known if entry.kind == "failing" and _is_over(entry, sdk, checks)]

    def marked(check: Check) -> Check:
        entry = next((each for each in over if each.fits(sdk, check.id)), None)
        if entry is None or check.result is not Result.PASS:
            return check
        return check.model_copy(update={"result": Result.XPASS, "known": _reason(entry)})

    return [case.model_copy(update={"checks": [*map(marked, case.checks)]}) for case in cases]


def _is_over(entry: KnownFailure, sdk: str, checks: Sequence[Check]) -> bool:
    """Whether of all that it covers, and was run, some passes and none fails."""
    results = {check.result for check in checks if entry.fits(sdk, check.id)}
    return Result.PASS in results and Result.XFAIL not in results


def _reason(entry: KnownFailure) -> str:
    return f"{entry.reason} ({entry.link}, until {entry.expires})"
