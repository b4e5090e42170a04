"""An interrupt ends a command with 130, whichever verb is at work."""

import asyncio
import signal
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from memconform.cli import start
from memconform.cli.interrupts import cancel_on_signals, run_to_end

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", _SIGNALS)
def test_a_command_without_an_answer_to_an_interrupt_is_interrupted_and_no_bug(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rescore that was sent SIGTERM ended with a traceback and `internal_error`."""
    handlers = {
        each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }

    async def work() -> int:
        cancel_on_signals()
        signal.raise_signal(number)
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr("memconform.cli.interrupts._is_ignored_hang_up", lambda _: False)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_to_end(work())
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)


def test_the_result_of_the_work_is_returned() -> None:
    async def work() -> str:
        return "done"

    assert run_to_end(work()) == "done"


_STRUCK = """
import os, signal, sys

class Striker:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Striker())
sys.argv[1:] = ["info", "--help"]
from memconform.cli.start import main
main()
"""


@pytest.mark.parametrize("number", _SIGNALS)
@pytest.mark.parametrize("module", ["memconform.cli.main", "click", "memconform.cli.info.command"])
def test_a_program_that_is_interrupted_while_it_imports_ends_as_documented(
    number: signal.Signals, module: str
) -> None:
    """SIGTERM in the first second ended with 143, and Ctrl-C with a traceback of an import."""
    script = _STRUCK.format(number=int(number), module=module)
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", "interrupted")


_STRUCK_LATER = """
import os, signal, sys
import memconform.cli.main as program

def strike(*arguments, original=program.{function}):
    os.kill(os.getpid(), {number})
    return original(*arguments)

program.{function} = strike
sys.argv[1:] = ["info", "--help"]
from memconform.cli.start import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("function", ["prepare_streams", "adopt_orphans"])
def test_a_program_that_is_interrupted_while_it_sets_itself_up_ends_as_documented(
    number: signal.Signals, function: str
) -> None:
    """Handlers were switched before anything caught a KeyboardInterrupt: it left a traceback."""
    script = _STRUCK_LATER.format(number=int(number), function=function)
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", "interrupted")


@pytest.mark.parametrize(
    "script",
    [
        _STRUCK.format(number=int(signal.SIGTERM), module="click"),
        _STRUCK_LATER.format(number=int(signal.SIGTERM), function="prepare_streams"),
        _STRUCK_LATER.format(number=int(signal.SIGTERM), function="adopt_orphans"),
    ],
)
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_an_interrupt_ends_as_documented_where_nothing_can_be_printed(
    script: str, redirection: str
) -> None:
    """It ended with 1, a verdict, because the notice could not be written."""
    command = f'exec "$0" -c "$1" {redirection}'
    ended = subprocess.run(["/bin/sh", "-c", command, sys.executable, script], check=False)
    assert ended.returncode == 130


def test_a_program_that_has_imported_all_ends_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal ended the program on the spot, with its daemons running."""
    seen: list[object] = []

    def run(*, standalone_mode: bool) -> int:
        assert not standalone_mode
        seen.extend(map(signal.getsignal, _SIGNALS))
        return 0

    before = [signal.signal(number, signal.SIG_DFL) for number in _SIGNALS]
    monkeypatch.setattr("memconform.cli.main.cli", run)
    try:
        with pytest.raises(SystemExit, match="0"):
            start.main()
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)
    assert seen == [signal.default_int_handler] * len(_SIGNALS)


def test_the_installed_program_starts_where_interrupts_are_handled() -> None:
    (script,) = entry_points(group="console_scripts", name="memconform")
    assert script.value == "memconform.cli.start:main"


def test_a_hang_up_that_is_ignored_stays_ignored() -> None:
    script = _STRUCK.format(number=int(signal.SIGHUP), module="memconform.cli.main")
    ended = subprocess.run(
        ["/bin/sh", "-c", 'trap "" HUP; exec "$0" -c "$1"', sys.executable, script],
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0
