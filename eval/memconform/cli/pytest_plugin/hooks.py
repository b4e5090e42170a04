"""The hooks that collect cases, run them before the first test, and show the verdict."""

import re
import signal
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import click
import pytest

from memconform.cli.pytest_plugin.nodes import ROOT, CaseItem, SdkCases
from memconform.cli.sdks import require_distinct_names
from memconform.errors import MemconformError
from memconform.printing.errors import render_error
from memconform.printing.escaping import printable

_NODE_ID = re.compile(rf"(?:\.\./)*({ROOT}(?:::.*)?)", re.DOTALL)
"""An argument that names our nodes; below its root folder, pytest prints `../` before their ids."""


class ConformanceHooks:
    """What pytest calls if a flag names an SDK."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._sdks: list[SdkCases] = []
        ids = [a for a in config.args if _NODE_ID.fullmatch(a) and not Path(a).exists()]
        # pytest would look for files of these names.
        config.args[:] = [argument for argument in config.args if argument not in ids]
        self._wanted = [_NODE_ID.sub(r"\1", argument) for argument in ids]

    @pytest.hookimpl(tryfirst=True)  # before pytest selects by -k, -m and --deselect
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add the cases before all other tests: they have run when the first test begins."""
        with _usage_errors(), _without_warnings():
            references = self._config.getoption("memconform_sdk")
            self._sdks = [SdkCases.of(session, reference) for reference in references]
            require_distinct_names([sdk.runner for sdk in self._sdks])
        cases = [item for sdk in self._sdks for item in session.genitems(sdk)]
        for wanted in self._wanted:
            if not any(_is_named(item, [wanted]) for item in cases):
                raise pytest.UsageError(f"not found: {wanted}")
        items[:0] = [item for item in cases if not self._wanted or _is_named(item, self._wanted)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Run the selected cases, unless pytest is about to end without a test."""
        option = self._config.option
        is_broken = session.testsfailed and not option.continue_on_collection_errors
        if not option.collectonly and not is_broken:
            self._run(session)
        return (yield)

    def _run(self, session: pytest.Session) -> None:
        stop_at_first = self._config.getoption("maxfail") == 1
        cases = [item for item in session.items if isinstance(item, CaseItem)]
        for sdk in self._sdks:
            entries = [item.entry for item in cases if item.sdk is sdk]
            if entries:
                with _without_warnings(), _signals_restored(), self._uncaptured():
                    sdk.run(entries, stop_at_first=stop_at_first)
            if stop_at_first and sdk.is_red:
                break
        # The failure at which -x stops comes before the cases that it left out.
        session.items.sort(key=lambda item: isinstance(item, CaseItem) and item.was_skipped)

    def _uncaptured(self) -> AbstractContextManager[None]:
        """Let the progress be seen: building and running may take minutes."""
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        if capture is None:
            return nullcontext()
        uncaptured: AbstractContextManager[None] = capture.global_and_fixture_disabled()
        return uncaptured

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Report how long the case took, not how long its result was looked at.

        The message is its first line: where `CI` is set, pytest repeats it in its summary.
        """
        report = yield
        crash = getattr(report.longrepr, "reprcrash", None)
        if isinstance(item, CaseItem) and crash is not None:
            crash.message = crash.message.partition("\n")[0]
        if isinstance(item, CaseItem) and item.result is not None and call.when == "call":
            report.duration = item.result.took_ms / 1e3
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the verdict on each SDK, as `memconform conform` does."""
        for line in (line for sdk in self._sdks for line in sdk.summary):
            terminalreporter.write_line(printable(line))


def _is_named(item: pytest.Item, ids: Sequence[str]) -> bool:
    """Whether one of these ids is that of a test, of its case, or of what contains it."""
    return any(item.nodeid == i or item.nodeid.startswith((f"{i}::", f"{i}[")) for i in ids)


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except MemconformError as error:
        raise pytest.UsageError(render_error(error)) from error
    except click.ClickException as error:
        message = error.format_message().replace("'--", "'--memconform-")
        raise pytest.UsageError(message) from error


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Ignore warnings, because with -W error one of a library would end the run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _signals_restored() -> Iterator[None]:
    """Give pytest its signal handlers back; those of a run ignore the second Ctrl-C."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
