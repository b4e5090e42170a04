"""What `lme` prints and writes at its end: its report, and the command that continues it."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from memconform.cli import html_report
from memconform.cli.lme import reports
from memconform.cli.lme.checks import require_consistent
from memconform.cli.lme.command import run_command
from memconform.cli.lme.options import LmeOptions
from memconform.cli.lme.reports import continuation_hint, report_replay
from memconform.daemons.availability import SkippedSdk
from memconform.errors import DaemonError, ExitCode, MemconformError, ResultsError, UsageError
from memconform.llm.chat import ModelUnusableError, ServiceDownError
from memconform.printing.output import reserved_stdout
from memconform.records import Incident
from memconform.replay.events import PartHalted, ReplayFinished
from memconform.replay.plan import ReplayPlan
from memconform.replay.records import LmeReport, LmeResult
from memconform.reports.lme import LmeConsole
from tests.unit.lme_results import question, result_of

_COMMAND = ("/bin/memconform", "lme", "run", "--data", "lme.json")
_CONTINUED = "to continue: memconform lme run --data lme.json --output out\n"
_BROKEN = SkippedSdk("ts", DaemonError("no npm", code="build_failed", hint=""))


@pytest.fixture(autouse=True)
def _command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "command_line", lambda: _COMMAND)


def _options(*flags: str) -> LmeOptions:
    context = run_command.make_context("run", ["--data", "lme.json", *flags])
    return LmeOptions(**context.params, dry_run=False)


def _whole() -> LmeResult:
    return result_of([question("a-0"), question("a-1")])


def _partial(code: ExitCode) -> LmeResult:
    incident = Incident.of(DaemonError("it died", code="daemon_died", hint=""))
    incident = incident.model_copy(update={"exit_code": code})
    return result_of([question("a-0"), question("a-1", "not_run")], incident=incident)


def _report(
    *results: LmeResult,
    flags: Sequence[str] = ("--quiet",),
    code: ExitCode = ExitCode.OK,
    skipped: Sequence[SkippedSdk] = (),
) -> ExitCode:
    finished = ReplayFinished(results, None, Path("out"), code)
    with reserved_stdout():
        return report_replay(_options(*flags), finished, skipped)


def test_json_on_standard_output_is_alone_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = _report(_whole(), flags=["--json", "-"], skipped=[_BROKEN])
    output, errors = capsys.readouterr()
    report = LmeReport.model_validate(json.loads(output))
    assert report.exit_code == code == ExitCode.DAEMON
    assert [result.sdk for result in report.results] == ["go"]
    assert [skip.reason for skip in report.skipped] == ["build_failed: no npm"]
    assert "-> out" in errors


def test_html_shows_the_results_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    monkeypatch.setattr(
        reports, "write_html_report", lambda *args, quiet: written.extend((*args, quiet))
    )
    _report(_whole(), flags=["--html", "--quiet"])
    assert written == [[Path("out/result-go.json")], Path("out") / html_report.REPORT, True]


def test_a_quiet_replay_shows_its_result_alone(capsys: pytest.CaptureFixture[str]) -> None:
    _report(_whole())
    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()] == [
        *("go", "-> out")
    ]


@pytest.mark.parametrize("flag", ["--json=-", "--html"])
def test_an_extraction_has_no_report(flag: str) -> None:
    with pytest.raises(UsageError, match="replays nothing"):
        require_consistent(_options("--extract-only", flag))


@pytest.mark.parametrize(
    ("result", "code", "continued"),
    [
        (_whole(), ExitCode.OK, False),
        (_partial(ExitCode.DAEMON), ExitCode.DAEMON, True),
        (_partial(ExitCode.BUDGET), ExitCode.BUDGET, True),
        (_whole(), ExitCode.INTERRUPTED, True),
        # Another build of the SDK, say: the same command would be refused again.
        (_partial(ExitCode.USAGE), ExitCode.USAGE, False),
    ],
)
def test_what_is_not_measured_comes_with_the_command_that_continues(
    capsys: pytest.CaptureFixture[str], result: LmeResult, code: ExitCode, *, continued: bool
) -> None:
    """Only `run` and `bench` printed it."""
    _report(result, code=code)
    assert (_CONTINUED in capsys.readouterr().err) == continued


@pytest.mark.parametrize(
    ("error", "continued"),
    [
        (KeyboardInterrupt(), True),
        (ResultsError("disk full", code="disk_full", hint=""), True),
        (UsageError("no", code="bad_option", hint=""), False),
        (_BROKEN.error, False),
        # A model service may answer later, unless it refused for good.
        (ServiceDownError("down", code="llm_down", hint=""), True),
        (ModelUnusableError("no key", code="llm_unusable", hint=""), False),
    ],
)
def test_so_does_a_replay_that_ends_before_its_first_result(
    capsys: pytest.CaptureFixture[str], error: BaseException, *, continued: bool
) -> None:
    with pytest.raises((KeyboardInterrupt, MemconformError)), continuation_hint(Path("out")):
        raise error
    assert capsys.readouterr().err == (_CONTINUED if continued else "")


def test_the_error_of_a_daemon_has_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """They were printed as one, with `\\n` between them."""
    plan = cast("ReplayPlan", SimpleNamespace(parts=[], questions=[]))
    error = DaemonError("it died", code="daemon_died", hint="see its log", excerpt="last words")
    LmeConsole(plan, quiet=True).handle(PartHalted("go", error))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "go: daemon_died: it died"
    assert len(lines) == 3
