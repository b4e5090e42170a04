"""Log lines: who pays for them, and what they may show."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from memconform.printing.logs import LEVELS, Logger, configure_logs, reset_logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    reset_logs()


@pytest.mark.parametrize("least", LEVELS)
def test_lines_below_the_level_are_not_shown(
    least: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(least)
    log = Logger()
    for write in (log.debug, log.info, log.warning):
        write(f"a line of {write.__name__}", number=3)
    shown = capsys.readouterr().err
    expected = [level for level in LEVELS[:3] if LEVELS.index(level) >= LEVELS.index(least)]
    assert [line.split("a line of ")[1].split()[0] for line in shown.splitlines()] == expected
    assert shown.count("number") == len(expected)


def test_values_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("warning")
    Logger().warning("text", said="\x1b[31m", nothing=None)
    shown = capsys.readouterr().err
    assert "\\x1b[31m" in shown
    assert "nothing=None" in shown


@pytest.mark.parametrize(("level", "loaded"), [("info", False), ("warning", True)])
def test_structlog_is_imported_by_the_first_line_that_is_shown(level: str, *, loaded: bool) -> None:
    code = (
        "import sys; from memconform.printing.logs import Logger, configure_logs;"
        f"configure_logs('warning'); Logger().{level}('a line');"
        "print('structlog' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == str(loaded)
