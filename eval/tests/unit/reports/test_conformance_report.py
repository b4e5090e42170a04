"""What `conform` prints about the checks that did not pass."""

from collections.abc import Sequence

import pytest

from memconform.conformance.findings import findings
from memconform.conformance.known_failures import choice_entry, mark_expected
from memconform.conformance.results import CaseResult, Cause, Check, Result, SdkResult
from memconform.printing.console import SafeConsole
from memconform.reports.conformance import show_checks, show_findings

_ROUTE = "GET /v1/brains"


def _check(
    name: str, *causes: Cause, curl: str = "", step: str = _ROUTE, got: Sequence[str] = ()
) -> Check:
    evidence = {"causes": [*causes], "curl": curl, "step": step, "got": [*got]}
    return Check(id=name, result=Result.FAIL, level="must", rules=[]).model_copy(update=evidence)


def _sdk(*checks: Check) -> SdkResult:
    case = CaseResult(case="a", title="t", checks=[*checks])
    return SdkResult(sdk="mine", profiles=[], modes=[], cases=[case])


def test_many_causes_fit_one_screen_the_grave_ones_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A public daemon once had 68 lines of up to 312 columns."""
    keys = [
        _check(
            f"a[{'x' * 90}]#{number}", Cause(cause=f"{_ROUTE}/{{b}}/{'y' * 90}: missing key k{n}")
        )
        for n, number in enumerate(range(60))
    ]
    crash = _check("a#crash", Cause(cause=f"{_ROUTE}: the daemon exits: exit status 1"))
    strict = _check("a#strict", Cause(cause=f"{_ROUTE}: accepts topK out of range"))
    known = _check("a#known", Cause(cause="x", known="because")).model_copy(
        update={"result": Result.XFAIL}
    )
    show_findings(_sdk(*keys, strict, crash, known))
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 40
    heads = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    assert heads == ["safety", "interchange", "strictness", "known failures and warnings", "mine"]
    assert "the daemon exits" in lines[1]
    assert "    50  in 50 more defects" in lines


def test_the_example_of_a_cause_sends_the_request_that_it_names() -> None:
    cause = Cause(cause=f"{_ROUTE}: status 500, expected 200")
    after = _check("a#after", cause, curl="curl version", step="GET /version")
    own = _check("a#own", cause, curl="curl brains")
    [finding] = findings(_sdk(after, own))
    assert finding.curl == "curl brains"


def test_a_check_with_several_causes_is_said_to_be_counted_for_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = _check("a#wire", Cause(cause=f"{_ROUTE}: x"), Cause(cause=f"{_ROUTE}: y"))
    show_findings(_sdk(both))
    assert "mine: 1 red check, 2 causes; a check with several" in capsys.readouterr().err
    show_findings(_sdk(_check("a#wire", Cause(cause="x")), _check("a#b", Cause(cause="x"))))
    assert "mine: 2 red checks, 1 cause\n" in capsys.readouterr().err


def test_a_check_prints_few_of_a_thousand_differences(capsys: pytest.CaptureFixture[str]) -> None:
    sdk = _sdk(_check("a#b", step="", got=("\n".join(map(str, range(1_000))), "last")))
    show_checks(SafeConsole(), sdk, sdk.cases[0].checks)
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert len(lines) == 22
    assert lines[1].split() == ["got", "0"]
    assert lines[-1].strip() == "and 981 more lines"


def test_a_choice_of_a_dialect_has_no_link_and_no_last_day() -> None:
    sdk = _sdk(_check("a#b", Cause(cause="x")))
    entry = choice_entry("x", "one answer for all", "mine")
    [check] = mark_expected(sdk.cases[0], "mine", [entry]).checks
    assert check.result is Result.XFAIL
    assert check.known == "a choice of the dialect: one answer for all"
