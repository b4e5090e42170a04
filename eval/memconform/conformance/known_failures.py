"""Lists of known failures: checks and causes that may fail, each with a reason and a last day."""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from memconform.conformance import strict_yaml
from memconform.conformance.request_bodies import Strict
from memconform.conformance.results import (
    IMPLICIT,
    CaseResult,
    Cause,
    Check,
    Result,
    SdkResult,
)
from memconform.errors import UsageError
from memconform.validation_faults import first_fault

UNFILLED = "TODO"
"""What stands for a link in a list that was written by memconform."""


class KnownFailure(Strict):
    """One entry of a list of known failures: the checks it covers, the cause, or both."""

    check: str | None = Field(default=None, min_length=1)
    """A glob over check ids, `case#slot`; `[` and `]` stand for themselves. The slots `wire` and
    `alive`, which every case has, must be named explicitly, unless there is a cause."""
    cause: str | None = Field(default=None, min_length=1)
    """A glob over causes, as reports show them; None: whatever the cause."""
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

    @field_validator("link", mode="before")
    @classmethod
    def _require_link(cls, raw: object) -> object:
        if raw == UNFILLED:
            raise ValueError(f"replace {UNFILLED} by the address of your issue")
        return raw

    @model_validator(mode="after")
    def _require_a_subject(self) -> Self:
        if self.check is None and self.cause is None:
            raise ValueError("an entry needs a check or a cause")
        if self.cause is None and self.check is not None and self.check.endswith("#wire"):
            # Such an entry, written for one missing key, hid null arrays and errors 500 too.
            raise ValueError(f"{self.check!r} hides every cause of #wire; name one with `cause`")
        if self.cause is not None and not self.cause.strip("* ?"):
            raise ValueError("the cause matches everything")
        return self

    @property
    def name(self) -> str:
        """What the entry is about, for messages."""
        return " ".join(part for part in (self.check, self.cause) if part is not None)

    def applies_to(self, sdk: str, check: str) -> bool:
        """Whether the entry covers a check of this SDK."""
        return self.sdk in (None, sdk) and self.covers(check)

    def covers(self, check: str) -> bool:
        """Whether the glob matches a check; a slot that every case has must be named explicitly."""
        if self.check is None:
            return True
        slot = check.rpartition("#")[2]
        if slot in IMPLICIT and self.cause is None and not self.check.endswith(f"#{slot}"):
            return False
        return _matches(self.check, check)

    def explains(self, cause: str) -> bool:
        """Whether it is about this cause, or about any."""
        return self.cause is None or _matches(self.cause, cause)


def choice_entry(cause: str, reason: str, sdk: str) -> KnownFailure:
    """Return the entry of a cause that is a choice of an SDK's dialect.

    It has no issue and does not expire, which only entries of a file must.
    """
    return KnownFailure.model_construct(
        cause=cause,
        kind="flaky",
        reason=f"a choice of the dialect: {reason}",
        link="",
        expires=date.max,
        sdk=sdk,
    )


def _matches(glob: str, text: str) -> bool:
    return fnmatchcase(text, glob.replace("[", "[[]"))


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
            raise _invalid(f"the entry {entry.name!r} expired on {entry.expires}")
        if not any(entry.covers(check) for check in checks):
            raise _invalid(f"the entry {entry.name!r} matches no check")


def _invalid(why: str) -> UsageError:
    return UsageError(
        why,
        code="known_invalid",
        hint="an entry has check or cause, reason, link and expires (YYYY-MM-DD); delete it once"
        " fixed",
    )


def mark_expected(case: CaseResult, sdk: str, known: Sequence[KnownFailure]) -> CaseResult:
    """Return `case` with its known failures marked as expected (XFAIL)."""
    return case.model_copy(update={"checks": [_mark_check(c, sdk, known) for c in case.checks]})


def _mark_check(check: Check, sdk: str, known: Sequence[KnownFailure]) -> Check:
    """Mark the known causes of a failed check, which is expected if all of them are known."""
    if check.result is not Result.FAIL:
        return check
    entries = [entry for entry in known if entry.applies_to(sdk, check.id)]
    causes = [
        cause.model_copy(update={"known": _reason_for(cause.cause, entries)})
        for cause in check.causes
    ]
    reasons = [cause.known for cause in causes] or [_reason_for("", entries)]
    update: dict[str, object] = {"causes": causes}
    if all(reasons):
        known_for = "; ".join(dict.fromkeys(reasons))
        update |= {"result": Result.XFAIL, "known": known_for}
    return check.model_copy(update=update)


def _reason_for(cause: str, entries: Iterable[KnownFailure]) -> str:
    """Return the reason of the first entry that explains a cause; empty if none does."""
    return next((_reason(entry) for entry in entries if entry.explains(cause)), "")


def mark_stale(
    cases: Sequence[CaseResult], sdk: str, known: Sequence[KnownFailure]
) -> list[CaseResult]:
    """Return `cases` with the passing checks of stale entries marked as XPASS.

    A `failing` entry without a cause is stale if at least one of the checks it covers passed and
    none failed.
    """
    checks = [check for case in cases for check in case.checks]
    stale = [
        entry
        for entry in known
        if entry.kind == "failing" and entry.cause is None and _is_stale(entry, sdk, checks)
    ]

    def mark(check: Check) -> Check:
        entry = next(
            (candidate for candidate in stale if candidate.applies_to(sdk, check.id)), None
        )
        if entry is None or check.result is not Result.PASS:
            return check
        update = {"result": Result.XPASS, "known": _reason(entry), "causes": [Cause(cause=_STALE)]}
        return check.model_copy(update=update)

    return [case.model_copy(update={"checks": [*map(mark, case.checks)]}) for case in cases]


_STALE = "passes, but is listed as known to fail"


def _is_stale(entry: KnownFailure, sdk: str, checks: Sequence[Check]) -> bool:
    """Whether some check that the entry covers passes, and none fails."""
    results = {check.result for check in checks if entry.applies_to(sdk, check.id)}
    return Result.PASS in results and Result.XFAIL not in results


def stale_causes(result: SdkResult, known: Sequence[KnownFailure], *, complete: bool) -> list[str]:
    """Return the known causes that no longer occur, of `failing` entries.

    Args:
        result: The results of an SDK.
        known: Known failures.
        complete: Whether all cases were run. Otherwise only an entry that names its checks can be
            stale: the cases that show the cause of another one may not have been among them.
    """
    checks = [check for case in result.cases for check in case.checks]
    return [
        entry.name
        for entry in known
        if entry.kind == "failing" and entry.cause is not None
        if complete or entry.check is not None
        if _no_longer_occurs(entry, result.sdk, checks)
    ]


_TESTED = (Result.PASS, Result.WARN, Result.FAIL, Result.XFAIL)


def _no_longer_occurs(entry: KnownFailure, sdk: str, checks: Sequence[Check]) -> bool:
    covered = [check for check in checks if entry.applies_to(sdk, check.id)]
    occurs = any(entry.explains(cause.cause) for check in covered for cause in check.causes)
    return not occurs and any(check.result in _TESTED for check in covered)


def _reason(entry: KnownFailure) -> str:
    """Its reason; with the link and the last day, which a choice of a dialect does not have."""
    return f"{entry.reason} ({entry.link}, until {entry.expires})" if entry.link else entry.reason
