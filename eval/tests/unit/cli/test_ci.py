"""`ci` reports a step that crashes as one that failed of itself, and does the others."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from memconform.cli.ci import execution
from memconform.cli.ci.summary import StepOutcome, render_summary
from memconform.cli.main import cli
from memconform.errors import ExitCode

_CRASH = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


def test_a_step_that_is_killed_is_an_internal_error_and_prevents_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(execution, "PROGRAM", (sys.executable, "-c", _CRASH))
    arguments = ["ci", "--step", "doctor", "--step", "conform", "--step", "run"]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.return_value is ExitCode.INTERNAL
    summary = (tmp_path / "results" / "ci" / "summary.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[:3] for line in summary.splitlines()[2:]]
    assert rows == [
        [f"| {name}", "❔", "internal error (exit code 70)"]
        for name in ("doctor", "conform", "run")
    ]


@pytest.mark.parametrize(
    ("status", "code"),
    [(0, ExitCode.OK), (1, ExitCode.FAILED), (130, ExitCode.INTERRUPTED)]
    + [(status, ExitCode.INTERNAL) for status in (-9, -15, 7, 127, 255)],
)
def test_only_a_code_of_the_program_is_taken_for_its_verdict(status: int, code: ExitCode) -> None:
    assert execution._exit_code(status) is code


def test_texts_of_a_daemon_are_no_markup_of_the_summary() -> None:
    command = "memconform doctor --sdk='a|b`c<script>'"
    output = "</pre><script>\n::error::x\n" + "line\n" * 200
    outcome = StepOutcome("doctor", "doctor", command, ExitCode.DAEMON, output)
    text = render_summary([outcome], "", ["a\n## heading"])
    assert "<script>" not in text
    assert text.count("</pre>") == 1
    assert "\n::error" not in text
    assert "\n## heading" not in text
    assert text.count("line\n") < 100
    [row] = [line for line in text.splitlines() if line.startswith("| doctor")]
    assert row.replace("\\|", "").count("|") == 5
