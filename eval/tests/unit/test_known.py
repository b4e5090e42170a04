"""Known failures: what they excuse, and when they are no excuse."""

from datetime import date
from pathlib import Path

import pytest

from memconform.conformance.known import Known, excused, load_known, refuse_stale
from memconform.conformance.results import CaseResult, Check, Result, SdkResult
from memconform.errors import ExitCode, UsageError

ENTRY = {
    "check": "ask-flush#*",
    "reason": "buffered by the proxy",
    "link": "https://example.org/issues/7",
    "expires": "2030-01-31",
}


def _known(**more: str) -> Known:
    return Known.model_validate({**ENTRY, **more})


def _after(
    result: Result, *known: Known, sdk: str = "go", check: str = "ask-flush#early"
) -> Result:
    made = Check(id=check, result=result, level="must", rules=["ask.flush"])
    case = CaseResult(case="ask-flush", title="t", checks=[made])
    return excused(case, sdk, known).checks[0].result


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("failing", Result.FAIL, Result.XFAIL),
        ("failing", Result.UNTESTABLE, Result.XFAIL),
        ("failing", Result.PASS, Result.XPASS),
        ("failing", Result.ERROR, Result.ERROR),
        ("flaky", Result.FAIL, Result.XFAIL),
        ("flaky", Result.PASS, Result.PASS),
        ("failing", Result.NOT_APPLICABLE, Result.NOT_APPLICABLE),
    ],
)
def test_what_an_entry_makes_of_a_result(kind: str, before: Result, after: Result) -> None:
    assert _after(before, _known(kind=kind)) is after


def test_an_entry_is_for_what_it_names() -> None:
    assert _after(Result.FAIL, _known(sdk="ts")) is Result.FAIL
    assert _after(Result.FAIL, _known(sdk="go")) is Result.XFAIL
    assert _after(Result.FAIL, _known(), check="ask-order#order") is Result.FAIL
    named = _known(check="ask-order[basic]#*")
    assert _after(Result.FAIL, named, check="ask-order[basic]#order") is Result.XFAIL
    assert _after(Result.FAIL, named, check="ask-orderb#order") is Result.FAIL


def test_an_entry_that_passes_fails_the_run() -> None:
    made = Check(id="a#b", result=Result.XPASS, level="must", rules=["ask.flush"])
    case = CaseResult(case="a", title="t", checks=[made])
    assert SdkResult(sdk="go", profiles=[], modes=[], cases=[case]).exit_code is ExitCode.FAILED


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (_known(expires="2026-11-20"), "has expired on 2026-11-20"),
        (_known(check="nothing#*"), "fits no check"),
        (_known(sdk="rust"), "fits no check"),
    ],
)
def test_a_stale_entry_is_refused(entry: Known, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        refuse_stale([entry], [("go", "ask-flush#early")], date(2026, 11, 21))
    refuse_stale([_known()], [("go", "ask-flush#early")], date(2030, 1, 31))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("reason: x", "reason: ''"),
        ("link: https://example.org/1", "link: later"),
        ("expires: 2030-01-31", "expires: soon"),
        ("expires: 2030-01-31", "expires: 2030-02-31"),
        ("check: a", "chekc: a"),
        ("- check", "check"),
    ],
)
def test_a_bad_list_is_refused_and_named(tmp_path: Path, old: str, new: str) -> None:
    text = "- check: a\n  reason: x\n  link: https://example.org/1\n  expires: 2030-01-31\n"
    path = tmp_path / "known.yaml"
    path.write_text(text)
    assert load_known(path)[0].expires == date(2030, 1, 31)
    path.write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=r"known\.yaml"):
        load_known(path)
