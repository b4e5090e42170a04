"""Known failures: what they excuse, and when they are no excuse."""

from datetime import date
from pathlib import Path

import pytest

from memconform.conformance.known import (
    KnownFailure,
    load_known,
    mark_expected,
    mark_stale,
    require_unexpired,
)
from memconform.conformance.results import CaseResult, Check, Result, SdkResult
from memconform.errors import ExitCode, UsageError

ENTRY = {
    "check": "ask-flush#*",
    "reason": "buffered by the proxy",
    "link": "https://example.org/issues/7",
    "expires": "2030-01-31",
}


def _known(**more: str) -> KnownFailure:
    return KnownFailure.model_validate({**ENTRY, **more})


def _after(*results: tuple[str, Result], known: KnownFailure, sdk: str = "go") -> list[Result]:
    """What becomes of the checks of one case."""
    checks = [
        Check(id=f"ask-flush#{slot}", result=result, level="must", rules=["ask.flush"])
        for slot, result in results
    ]
    case = mark_expected(CaseResult(case="ask-flush", title="t", checks=checks), sdk, [known])
    return [check.result for check in mark_stale([case], sdk, [known])[0].checks]


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("failing", Result.FAIL, Result.XFAIL),
        ("failing", Result.PASS, Result.XPASS),
        # What was not measured is no failure that was known.
        ("failing", Result.UNTESTABLE, Result.UNTESTABLE),
        ("failing", Result.ERROR, Result.ERROR),
        ("failing", Result.NOT_APPLICABLE, Result.NOT_APPLICABLE),
        ("flaky", Result.FAIL, Result.XFAIL),
        ("flaky", Result.PASS, Result.PASS),
        ("flaky", Result.UNTESTABLE, Result.UNTESTABLE),
    ],
)
def test_what_an_entry_makes_of_a_result(kind: str, before: Result, after: Result) -> None:
    assert _after(("early", before), known=_known(kind=kind)) == [after]


def test_a_glob_of_which_something_still_fails_is_not_over() -> None:
    found = _after(("early", Result.FAIL), ("whole", Result.PASS), known=_known())
    assert found == [Result.XFAIL, Result.PASS]


def test_the_checks_that_every_case_has_are_excused_by_name_only() -> None:
    red = [("wire", Result.FAIL), ("alive", Result.FAIL)]
    assert _after(*red, known=_known(check="*")) == [Result.FAIL, Result.FAIL]
    assert _after(*red, known=_known(check="*#wire")) == [Result.XFAIL, Result.FAIL]


def test_an_entry_is_for_what_it_names() -> None:
    red = ("early", Result.FAIL)
    assert _after(red, known=_known(sdk="ts")) == [Result.FAIL]
    assert _after(red, known=_known(sdk="go")) == [Result.XFAIL]
    assert _after(red, known=_known(check="ask-order#*")) == [Result.FAIL]
    assert _known(check="a[basic]#*").covers("a[basic]#order")
    assert not _known(check="a[basic]#*").covers("ab#order")


def _exit(*results: Result) -> ExitCode:
    checks = [Check(id=f"a#{n}", result=r, level="must", rules=[]) for n, r in enumerate(results)]
    case = CaseResult(case="a", title="t", checks=checks)
    return SdkResult(sdk="go", profiles=[], modes=[], cases=[case]).exit_code


def test_what_results_come_to() -> None:
    assert _exit(Result.PASS, Result.XFAIL, Result.WARN, Result.NOT_APPLICABLE) is ExitCode.OK
    assert _exit(Result.PASS, Result.XPASS) is ExitCode.FAILED
    assert _exit(Result.PASS, Result.FAIL) is ExitCode.FAILED
    assert _exit(Result.PASS, Result.UNTESTABLE, Result.FAIL) is ExitCode.DAEMON
    assert _exit(Result.PASS, Result.ERROR) is ExitCode.INTERNAL
    assert _exit(Result.NOT_APPLICABLE) is ExitCode.NOTHING_SELECTED
    assert _exit(Result.XFAIL) is ExitCode.NOTHING_SELECTED


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (_known(expires="2026-11-20"), "expired on 2026-11-20"),
        (_known(check="nothing#*"), "matches no check"),
    ],
)
def test_a_stale_entry_is_refused(entry: KnownFailure, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        require_unexpired([entry], ["ask-flush#early"], date(2026, 11, 21))
    require_unexpired([_known()], ["ask-flush#early"], date(2030, 1, 31))


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
