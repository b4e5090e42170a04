"""Known failures: which checks they cover, and when they are rejected or stale."""

from datetime import date
from pathlib import Path

import pytest
from pydantic import ValidationError

from memconform.conformance.findings import NOT_RECORDED, findings
from memconform.conformance.known_failures import (
    KnownFailure,
    load_known,
    mark_expected,
    mark_stale,
    require_unexpired,
)
from memconform.conformance.results import CaseResult, Cause, Check, Result, SdkResult
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
    """Return the results of one case's checks once known failures are applied."""
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
        # A check that was not measured is not an expected failure.
        ("failing", Result.UNTESTABLE, Result.UNTESTABLE),
        ("failing", Result.ERROR, Result.ERROR),
        ("failing", Result.NOT_APPLICABLE, Result.NOT_APPLICABLE),
        ("flaky", Result.FAIL, Result.XFAIL),
        ("flaky", Result.PASS, Result.PASS),
        ("flaky", Result.UNTESTABLE, Result.UNTESTABLE),
    ],
)
def test_effect_of_an_entry_on_a_result(kind: str, before: Result, after: Result) -> None:
    assert _after(("early", before), known=_known(kind=kind)) == [after]


def test_a_glob_with_a_remaining_failure_is_not_stale() -> None:
    results = _after(("early", Result.FAIL), ("whole", Result.PASS), known=_known())
    assert results == [Result.XFAIL, Result.PASS]


def test_implicit_checks_must_be_named_explicitly() -> None:
    red = [("wire", Result.FAIL), ("alive", Result.FAIL)]
    assert _after(*red, known=_known(check="*")) == [Result.FAIL, Result.FAIL]
    assert _after(*red, known=_known(check="*#alive")) == [Result.FAIL, Result.XFAIL]


def test_an_entry_for_wire_names_its_cause() -> None:
    """Such an entry, written for one missing key, hid null arrays and errors 500 too."""
    for check in ("*#wire", "ask-flush#wire"):
        with pytest.raises(ValidationError, match="name one with `cause`"):
            _known(check=check)
    assert _known(check="*#wire", cause="GET /version: *").covers("ask-flush#wire")


def _caused(*causes: str) -> Check:
    listed = [Cause(cause=cause) for cause in causes]
    return Check(id="a#wire", result=Result.FAIL, level="must", rules=[], causes=listed)


def _marked(check: Check, *known: KnownFailure) -> Check:
    case = mark_expected(CaseResult(case="a", title="t", checks=[check]), "go", known)
    return case.checks[0]


def _cause(cause: str, **more: str) -> KnownFailure:
    return KnownFailure.model_validate({**ENTRY, "check": None, "cause": cause, **more})


def test_a_check_is_expected_only_if_all_its_causes_are_known() -> None:
    check = _caused("GET /a: missing key x", "GET /b: x is null")
    partly = _marked(check, _cause("GET /a: *"))
    assert partly.result is Result.FAIL
    assert [bool(cause.known) for cause in partly.causes] == [True, False]
    assert _marked(check, _cause("GET /a: *"), _cause("GET /b: *")).result is Result.XFAIL
    assert _marked(check, _cause("*: missing key *")).result is Result.FAIL
    assert _marked(check, _cause("GET /a: *"), _cause("GET /b: *", sdk="ts")).result is Result.FAIL
    assert _marked(check, _cause("GET /*", check="b#*")).result is Result.FAIL
    assert _marked(check, _cause("GET /*", check="a#*")).result is Result.XFAIL


@pytest.mark.parametrize("entry", [{"cause": "*"}, {"cause": " ?*"}, {}, {"link": "TODO"}])
def test_an_entry_that_hides_everything_or_is_unfinished_is_rejected(entry: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        KnownFailure.model_validate({**ENTRY, "check": None, **entry})


def test_a_stale_cause_fails_a_run() -> None:
    passed = Check(id="a#b", result=Result.PASS, level="must", rules=[])
    case = CaseResult(case="a", title="t", checks=[passed])
    good = SdkResult(sdk="go", profiles=[], modes=[], cases=[case])
    assert good.exit_code is ExitCode.OK
    assert good.model_copy(update={"stale_known": ["x"]}).exit_code is ExitCode.FAILED


def test_reports_without_causes_can_still_be_read() -> None:
    old = {"id": "a#b", "result": "fail", "level": "must", "rules": [], "got": ["x"]}
    case = CaseResult.model_validate({"case": "a", "title": "t", "checks": [old]})
    sdk = SdkResult(sdk="go", profiles=[], modes=[], cases=[case])
    [finding] = findings(sdk)
    assert (finding.cause, finding.checks, finding.got) == (NOT_RECORDED, 1, "x")


def test_an_entry_applies_only_to_matching_sdks_and_checks() -> None:
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


def test_exit_codes_of_results() -> None:
    assert _exit(Result.PASS, Result.XFAIL, Result.WARN, Result.NOT_APPLICABLE) is ExitCode.OK
    assert _exit(Result.PASS, Result.XPASS) is ExitCode.FAILED
    assert _exit(Result.PASS, Result.FAIL) is ExitCode.FAILED
    assert _exit(Result.PASS, Result.UNTESTABLE, Result.FAIL) is ExitCode.DAEMON
    assert _exit(Result.PASS, Result.ERROR) is ExitCode.INTERNAL
    assert _exit(Result.NOT_APPLICABLE) is ExitCode.NOTHING_SELECTED
    assert _exit(Result.XFAIL) is ExitCode.NOTHING_SELECTED


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (_known(expires="2026-11-20"), "expired on 2026-11-20"),
        (_known(check="nothing#*"), "matches no check"),
    ],
)
def test_expired_and_unmatched_entries_are_rejected(entry: KnownFailure, message: str) -> None:
    with pytest.raises(UsageError, match=message):
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
def test_an_invalid_list_is_rejected_and_named(tmp_path: Path, old: str, new: str) -> None:
    text = "- check: a\n  reason: x\n  link: https://example.org/1\n  expires: 2030-01-31\n"
    path = tmp_path / "known.yaml"
    path.write_text(text)
    assert load_known(path)[0].expires == date(2030, 1, 31)
    path.write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=r"known\.yaml"):
        load_known(path)


def test_the_example_of_a_cause_is_a_check_that_fails_the_run() -> None:
    def made(name: str, result: Result, curl: str) -> Check:
        causes = [Cause(cause="x", known="r" if result is Result.XFAIL else "")]
        return Check(id=name, result=result, level="must", rules=[], curl=curl, causes=causes)

    checks = [
        made("a#known", Result.XFAIL, "curl 1"),
        made("a#long", Result.FAIL, "curl " + "x" * 999),
        made("a#short", Result.FAIL, "curl 2"),
        made("a#later", Result.FAIL, "curl 3"),
    ]
    case = CaseResult(case="a", title="t", checks=checks)
    [finding] = findings(SdkResult(sdk="go", profiles=[], modes=[], cases=[case]))
    assert finding.check is checks[2]
    assert (finding.checks, finding.known, finding.is_red) == (4, "", True)
