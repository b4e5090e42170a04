"""Lists of known failures: checks that may fail, each with a reason and an expiry date."""

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
    """One entry of a list of known failures."""

    check: str = Field(min_length=1)
    """A glob over check ids, `case#slot`; `[` and `]` stand for themselves. The slots `wire` and
    `alive`, which every case has, must be named explicitly."""
    kind: Literal["failing", "flaky"] = "failing"
    """A `failing` entry that no longer matches any failure fails the run; checks covered by a
    `flaky` entry may pass or fail."""
    reason: str = Field(min_length=1)
    link: str = Field(pattern=r"^https?://\S+$")
    expires: date
    """The last day on which the entry is valid, `YYYY-MM-DD`."""
    sdk: str | None = None
    """The SDK it applies to; None: every SDK."""

    @field_validator("expires", mode="before")
    @classmethod
    def _require_date(cls, raw: object) -> object:
        if not isinstance(raw, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", raw):
            raise ValueError("write the date as YYYY-MM-DD")
        return raw

    def applies_to(self, sdk: str, check: str) -> bool:
        """Whether the entry covers a check of this SDK."""
        return self.sdk in (None, sdk) and self.covers(check)

    def covers(self, check: str) -> bool:
        """Whether the glob matches a check; a slot that every case has must be named explicitly."""
        slot = check.rpartition("#")[2]
        if slot in IMPLICIT and not self.check.endswith(f"#{slot}"):
            return False
        return fnmatchcase(check, self.check.replace("[", "[[]"))


def load_known(path: Path) -> list[KnownFailure]:
    """Read the entries of a file, a YAML list.

    Raises:
        UsageError: `yaml_unreadable`, `yaml_invalid` or, naming file and entry, `known_invalid`.
    """
    rows = strict_yaml.load_yaml(path)
    if not isinstance(rows, list):
        raise _invalid(f"{path}: the file must be a list of entries")
    entries = []
    for number, raw in enumerate(rows):
        try:
            entries.append(KnownFailure.model_validate(raw))
        except ValidationError as error:
            raise _invalid(f"{path}: entry {number}: {first_fault(error)}") from error
    return entries


def require_unexpired(known: Iterable[KnownFailure], checks: Sequence[str], today: date) -> None:
    """Check that no entry has expired, and that each one matches at least one check.

    Raises:
        UsageError: `known_invalid`, naming the first invalid entry.
    """
    for entry in known:
        if entry.expires < today:
            raise _invalid(f"the entry {entry.check!r} expired on {entry.expires}")
        if not any(entry.covers(check) for check in checks):
            raise _invalid(f"the entry {entry.check!r} matches no check")


def _invalid(why: str) -> UsageError:
    return UsageError(
        why,
        code="known_invalid",
        hint="an entry has check, reason, link and expires (YYYY-MM-DD); delete it once fixed",
    )


def mark_expected(case: CaseResult, sdk: str, known: Sequence[KnownFailure]) -> CaseResult:
    """Return `case` with its known failures marked as expected (XFAIL)."""
    return case.model_copy(update={"checks": [_mark_check(c, sdk, known) for c in case.checks]})


def _mark_check(check: Check, sdk: str, known: Sequence[KnownFailure]) -> Check:
    entry = next((candidate for candidate in known if candidate.applies_to(sdk, check.id)), None)
    if entry is None or check.result is not Result.FAIL:
        return check
    return check.model_copy(update={"result": Result.XFAIL, "known": _reason(entry)})


def mark_stale(
    cases: Sequence[CaseResult], sdk: str, known: Sequence[KnownFailure]
) -> list[CaseResult]:
    """Return `cases` with the passing checks of stale entries marked as XPASS.

    A `failing` entry is stale if at least one of the checks it covers passed and none failed.
    """
    checks = [check for case in cases for check in case.checks]
    stale = [entry for entry in known if entry.kind == "failing" and _is_stale(entry, sdk, checks)]

    def mark(check: Check) -> Check:
        entry = next(
            (candidate for candidate in stale if candidate.applies_to(sdk, check.id)), None
        )
        if entry is None or check.result is not Result.PASS:
            return check
        return check.model_copy(update={"result": Result.XPASS, "known": _reason(entry)})

    return [case.model_copy(update={"checks": [*map(mark, case.checks)]}) for case in cases]


def _is_stale(entry: KnownFailure, sdk: str, checks: Sequence[Check]) -> bool:
    """Whether some check that the entry covers passes, and none fails."""
    results = {check.result for check in checks if entry.applies_to(sdk, check.id)}
    return Result.PASS in results and Result.XFAIL not in results


def _reason(entry: KnownFailure) -> str:
    return f"{entry.reason} ({entry.link}, until {entry.expires})"
