"""A run that ends early prints the command that continues it."""

from pathlib import Path

import pytest

from memconform.errors import DaemonError
from memconform.reports.console import ConsoleReport
from memconform.runs.events import AskingStarted, Event, RunFinished, RunHalted, RunStarted
from memconform.runs.highlights import Highlights
from memconform.runs.stored_run import read_summary
from tests.run_results import question, write_run

_DIED = RunHalted(DaemonError("the daemon died", code="daemon_died"))
_STARTED = RunStarted("run-go", "go", "ask-basic", "bm25", 2)


def _shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    events: list[Event],
    sdks: tuple[str, ...] = ("go",),
) -> str:
    path = write_run(tmp_path / "result.json", "go", [question("a"), question("b")])
    report = ConsoleReport(sdks, quiet=True)
    for event in (*events, RunFinished(read_summary(path), Highlights(), path, path)):
        report.handle(event)
    return " ".join(capsys.readouterr().err.split())


def test_after_a_daemon_has_died_the_command_is_printed_with_the_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = _shown(tmp_path, capsys, [_STARTED, AskingStarted(2), _DIED])
    assert "to continue: memconform run --sdk go --dataset birds --resume run-go" in shown


def test_of_several_sdks_one_is_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = _shown(tmp_path, capsys, [_STARTED, AskingStarted(2), _DIED], ("go", "py"))
    assert "repeat the command with --sdk go --resume run-go in place of its --sdk" in shown


@pytest.mark.parametrize("events", [[_STARTED, AskingStarted(2)], [_STARTED, _DIED]])
def test_a_run_that_ended_or_never_asked_has_nothing_to_continue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], events: list[Event]
) -> None:
    assert "to continue" not in _shown(tmp_path, capsys, events)
