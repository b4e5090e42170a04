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
from memconform.conformance.results import CaseResult, Check, Result
from memconform.contract.wire import describe_mismatch
from memconform.errors import UsageError

_RED_BEFORE = (Result.FAIL, Result.UNTESTABLE)


class Known(Strict):
    """One entry of a list."""

    check: str = Field(min_length=1)
    """A glob over ids of checks, `case#slot`; `[` and `]` stand for themselves."""
    kind: Literal["failing", "flaky"] = "failing"
    """A failing check that passes is a failure; a flaky one may do either."""
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
        escaped = self.check.replace("[", "[[]")
        return self.sdk in (None, sdk) and fnmatchcase(check, escaped)


def load_known(path: Path) -> list[Known]:
    """The entries of a file, a YAML list.

    Raises:
        UsageError: naming file and entry, for what is none.
    """
    loaded = strict_yaml.load(path)
    if not isinstance(loaded, list):
        raise _invalid(f"{path}: a list of entries is wanted")
    entries = []
    for number, raw in enumerate(loaded):
        try:
            entries.append(Known.model_validate(raw))
        except ValidationError as error:
            raise _invalid(f"{path}: entry {number}: {describe_mismatch(error)}") from error
    return entries


def refuse_stale(known: Iterable[Known], checks: Sequence[tuple[str, str]], today: date) -> None:
    """Raise UsageError for an entry that is out of date, or fits none of (SDK, check)."""
    for entry in known:
        if entry.expires < today:
            raise _invalid(f"the entry {entry.check!r} has expired on {entry.expires}")
        if not any(entry.fits(sdk, check) for sdk, check in checks):
            raise _invalid(f"the entry {entry.check!r} fits no check")


def _invalid(why: str) -> UsageError:
    return UsageError(
        why,
        code="known_invalid",
        hint="an entry has check, reason, link and expires (YYYY-MM-DD); take out what is mended",
    )


def excused(case: CaseResult, sdk: str, known: Sequence[Known]) -> CaseResult:
    """`case` with its known failures marked as such, and what passes although it is known."""
    return case.model_copy(update={"checks": [_excused(c, sdk, known) for c in case.checks]})


def _excused(check: Check, sdk: str, known: Sequence[Known]) -> Check:
    entry = next((each for each in known if each.fits(sdk, check.id)), None)
    if entry is None:
        return check
    result = check.result
    if result in _RED_BEFORE:
        result = Result.XFAIL
    elif result is Result.PASS and entry.kind == "failing":
        result = Result.XPASS
    reason = f"{entry.reason} ({entry.link}, until {entry.expires})"
    return check.model_copy(update={"result": result, "known": reason})
