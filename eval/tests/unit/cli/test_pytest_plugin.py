"""What pytest makes of each result of `conform`; results take the place of the engine."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import pytest

from memconform.cli.conform import execution
from memconform.cli.conform.command import ConformOptions
from memconform.cli.conform.selection import ChosenCases
from memconform.cli.pytest_plugin import nodes
from memconform.conformance.case_runner import check_ids, skipped_case
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.results import (
    CaseResult,
    Cause,
    Check,
    ConformReport,
    Result,
    SdkResult,
)
from memconform.errors import DaemonError
from memconform.redaction import hide
from memconform.storage.folders import RunFolder

pytest_plugins = ("pytester",)

_MANIFEST = """
name = "mine"
language = "none"
[serve]
argv = ["false"]
[capabilities]
profiles = ["core"]
modes = ["auto", "bm25"]
"""
_FLAGS = ("--memconform-sdk=sdk.toml", "-v", "-p", "no:asyncio")
_LEFT_OUT = "skipped because the run stopped early"
_HEALTH, _VERSION, _DATES = "health", "version", "version-run"
Run = Callable[..., pytest.RunResult]


def _case(entry: CaseVariant, results: Sequence[Result]) -> CaseResult:
    checks = [
        Check(
            id=check,
            result=result,
            level="must",
            rules=list(entry.case.rules),
            got=["what came"],
            known="a reason" if result in (Result.XFAIL, Result.XPASS) else "",
            causes=[] if result is Result.PASS else [Cause(cause="the cause")],
        )
        for check, result in zip(check_ids(entry), results, strict=False)
    ]
    return CaseResult(case=entry.id, title=entry.case.title, took_ms=1500, checks=checks)


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest on cases with these results of their checks; none: -x left the case out."""

    def call(
        results: Mapping[str, Sequence[Result]],
        *flags: str,
        problems: Sequence[str] = (),
        error: Exception | None = None,
    ) -> pytest.RunResult:
        async def check_sdks(
            options: ConformOptions, chosen: ChosenCases[CaseVariant]
        ) -> execution.CheckedSdks:
            if error is not None:
                raise error
            folder = RunFolder(options.output, "one")
            cases = [
                _case(entry, results[entry.id])
                if results[entry.id]
                else skipped_case(entry, Result.NOT_APPLICABLE, _LEFT_OUT)
                for entry in chosen.own
            ]
            sdk = SdkResult(sdk="mine", profiles=[], modes=[], cases=cases, problems=[*problems])
            now = datetime.now(UTC)
            report = ConformReport(
                run="one",
                started_at=now,
                finished_at=now,
                contract="1",
                harness_version="0",
                command=[],
                sdk_references={"mine": "sdk.toml"},
                exit_code=int(sdk.exit_code),
                sdks=[sdk],
            )
            return execution.CheckedSdks(folder, report, {}, [])

        monkeypatch.setattr(execution, "check_sdks", check_sdks)
        monkeypatch.setattr(nodes, "adopt_orphans", lambda: None)
        pytester.path.joinpath("sdk.toml").write_text(_MANIFEST)
        cases = [f"--memconform-case={name}" for name in results]
        return pytester.runpytest_inprocess(*_FLAGS, *cases, *flags)

    return call


@pytest.mark.parametrize(
    ("results", "outcome"),
    [
        ([Result.PASS, Result.PASS], "passed"),
        ([Result.PASS, Result.WARN], "passed"),
        ([Result.PASS, Result.FAIL], "failed"),
        ([Result.XFAIL, Result.FAIL], "failed"),
        ([Result.FAIL, Result.UNTESTABLE], "failed"),
        ([Result.PASS, Result.XPASS], "failed"),
        ([Result.WARN, Result.XFAIL], "xfailed"),
        ([Result.PASS, Result.UNTESTABLE], "errors"),
        ([Result.XFAIL, Result.UNTESTABLE], "errors"),
        ([Result.FAIL, Result.ERROR], "errors"),
        ([Result.NOT_APPLICABLE, Result.NOT_APPLICABLE], "skipped"),
    ],
)
def test_each_result_has_its_outcome(results: list[Result], outcome: str, run: Run) -> None:
    ended = run({_HEALTH: results, _VERSION: [Result.PASS]})
    ended.assert_outcomes(**{"passed": 1 + (outcome == "passed"), **_one(outcome)})
    assert ended.ret == (1 if outcome in ("failed", "errors") else 0)


def _one(outcome: str) -> dict[str, int]:
    return {} if outcome == "passed" else {outcome: 1}


def test_a_known_failure_is_a_failure_with_runxfail(run: Run) -> None:
    ended = run({_HEALTH: [Result.WARN, Result.XFAIL]}, "--runxfail")
    ended.assert_outcomes(failed=1, errors=1)
    ended.stdout.fnmatch_lines(["*the cause*", "*known     a reason*"])


def test_what_belongs_to_no_case_is_an_error_at_the_end(run: Run) -> None:
    ended = run({_HEALTH: [Result.PASS], _VERSION: [Result.PASS]}, problems=["it did not stop"])
    ended.assert_outcomes(passed=2, errors=1)
    ended.stdout.fnmatch_lines(["*ERROR at teardown of mine: version*", "it did not stop"])


def test_an_sdk_that_passes_nothing_is_not_green(run: Run) -> None:
    ended = run({_HEALTH: [Result.NOT_APPLICABLE]})
    ended.assert_outcomes(skipped=1, errors=1)
    ended.stdout.fnmatch_lines(["*no selected check applies*"])


def test_x_shows_the_failure_before_the_cases_that_it_left_out(run: Run) -> None:
    ended = run({_HEALTH: [], _VERSION: [Result.FAIL], _DATES: []}, "-x")
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(["memconform::mine::version FAILED*"])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (DaemonError("it broke", code="build_failed"), "build_failed: it broke"),
        (ExceptionGroup("tasks", [DaemonError("it broke", code="broken")]), "broken: it broke"),
        (RuntimeError("a bug"), "RuntimeError: a bug"),
    ],
)
def test_what_ends_a_run_is_an_error_of_each_case(error: Exception, says: str, run: Run) -> None:
    ended = run({_HEALTH: [], _VERSION: []}, error=error)
    ended.assert_outcomes(errors=2)
    ended.stdout.fnmatch_lines([f"*{says}*"])


def test_durations_and_messages_are_those_of_the_cases(run: Run, pytester: pytest.Pytester) -> None:
    run({_HEALTH: [Result.PASS], _VERSION: [Result.FAIL]}, "--junitxml=j.xml")
    report = pytester.path.joinpath("j.xml").read_text()
    assert report.count('classname="memconform.mine"') == 2
    assert report.count('time="1.50') == 2
    assert "Failed: the cause" in report


def test_texts_of_a_daemon_hide_secrets_and_start_no_command(run: Run) -> None:
    hide("s3cr3t-value")
    ended = run({_HEALTH: []}, error=RuntimeError("\n::error::\x1b[31m s3cr3t-value"))
    ended.assert_outcomes(errors=1)
    for text in ("::error::", "\x1b[31m", "s3cr3t-value"):
        assert text not in ended.stdout.str()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["memconform::mine::nothing"], "not found: memconform::mine::nothing"),
        (["--memconform-sdk=nothing"], "unknown SDK 'nothing'"),
        (["--memconform-sdk=sdk.toml"], "'mine' was given twice"),
        (["--memconform-profile=nothing"], "Invalid value for '--memconform-profile'"),
        (["--memconform-case=nothing"], "no case matches"),
        (["--memconform-known=nothing.yaml"], "nothing.yaml"),
        (["--memconform-known=known.yaml"], "matches no check"),
    ],
)
def test_what_cannot_be_run_is_a_usage_error(
    flags: list[str], says: str, run: Run, pytester: pytest.Pytester
) -> None:
    entry = "check: nothing#x\n  reason: r\n  link: https://example.org/1\n  expires: 2999-01-31"
    pytester.path.joinpath("known.yaml").write_text(f"- {entry}\n")
    for more in ((), ("--collect-only",)):
        ended = run({_HEALTH: [Result.PASS]}, *flags, *more)
        assert ended.ret == pytest.ExitCode.USAGE_ERROR
        ended.stderr.fnmatch_lines([f"*{says}*"])
