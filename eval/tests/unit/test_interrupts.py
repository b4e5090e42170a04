"""An interrupt ends a command with 130, whichever verb is at work."""

import asyncio
import signal

import pytest

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
