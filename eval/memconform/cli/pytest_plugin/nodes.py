"""SDKs and case variants as nodes of pytest: `conform` runs them, each item has its result."""

import io
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memconform.cli.conform import execution
from memconform.cli.conform.command import ConformOptions, command
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.lazy import captured
from memconform.conformance.applicability import skip_reason
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.results import FAILING, RED, CaseResult, Result, SdkResult, has_result
from memconform.conformance.session import drop_logs, read_report, write_suite_report
from memconform.daemons.discovery import find_runner, working_folder
from memconform.daemons.guard import adopt_orphans
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import ExitCode, MemconformError
from memconform.printing.console import SafeConsole
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines, disarm_commands, printable
from memconform.printing.logs import configure_logs, reset_logs
from memconform.reports.conformance import conform_banner, conform_notes, show_checks

ROOT = "memconform"
"""Begins the id of each node."""


class SdkCases(pytest.Collector):
    """The cases of an SDK, and their results once they have run."""

    def __init__(
        self,
        *,
        runner: SdkRunner,
        options: ConformOptions,
        **node: Any,  # noqa: ANN401 - pytest's signature
    ) -> None:
        super().__init__(**node)
        self.extra_keyword_matches.add(ROOT)
        self.runner = runner
        self.results: dict[str, CaseResult] = {}
        self.failure = ""
        """Why there are no results: the SDK could not be built, or memconform failed."""
        self.is_red = False
        self.summary: list[str] = []
        self._options = options
        self._chosen = execution.chosen_cases(options)
        self._replay = ""
        self._problems: list[str] = []
        """Failures that belong to no case."""
        self._shown: dict[str, str] = {}
        """Why cases could not be tested, and the item that shows it."""

    @classmethod
    def of(cls, session: pytest.Session, reference: str) -> "SdkCases":
        """Read the manifest of an SDK, the cases and the lists of known failures.

        Raises:
            MemconformError, click.ClickException: if a flag or a file is invalid.
        """
        options = _options(session.config, reference)
        runner = find_runner(reference, working_folder())
        sdk: SdkCases = cls.from_parent(
            session,
            name=runner.name,
            nodeid=f"{ROOT}::{runner.name}",
            path=(runner.manifest_file or session.config.rootpath).absolute(),
            runner=runner,
            options=options,
        )
        # `conform` reads them again; here an invalid list is found before anything starts.
        target = execution.target_of(runner.name, reference, {})
        execution.known_failures(options.known, [target], sdk._chosen.catalog)
        return sdk

    def collect(self) -> Iterator["CaseItem"]:
        for entry in self._chosen.own:
            yield CaseItem.from_parent(self, name=entry.id, sdk=self, entry=entry)

    def run(self, entries: Sequence[CaseVariant], *, stop_at_first: bool) -> None:
        """Run these cases as `memconform conform` does, and keep their results."""
        options = replace(self._options, stop_at_first=stop_at_first)
        chosen = replace(self._chosen, selected=entries, own=entries)
        if len(entries) < len(self._chosen.own):
            chosen = replace(chosen, complete=False, selection="selected cases")
        chosen = replace(chosen, complete=chosen.complete and not stop_at_first)

        async def check() -> execution.CheckedSdks:
            cancel_on_signals()
            return await execution.check_sdks(options, chosen)

        configure_logs(options.log_level)
        adopt_orphans()  # as the program does when it starts
        try:
            self._take(run_to_end(check()), chosen.label)
        except Exception as raised:  # noqa: BLE001 - whatever it is, no case has passed
            error: BaseException = raised
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self.is_red = True
            self.failure = (
                render_error(error)
                if isinstance(error, MemconformError)
                else "".join(traceback.format_exception(error))
            )
        finally:
            reset_logs()

    def _take(self, checked: execution.CheckedSdks, label: str) -> None:
        write_suite_report(checked.run, checked.report)
        # What was written is masked, and its commands are for the run's folder.
        report = read_report(checked.run.path)
        code = ExitCode(report.exit_code)
        if code is ExitCode.OK:
            drop_logs(checked.run)
        [sdk] = report.sdks
        banner = conform_banner(sdk, label)
        is_empty = code is ExitCode.NOTHING_SELECTED
        is_empty = is_empty and not any(has_result(case, RED) for case in sdk.cases)
        self.is_red = code is not ExitCode.OK
        self.results = {case.case: case for case in sdk.cases}
        self.summary = [banner, *conform_notes(report), f"-> {checked.run.path}"]
        self._replay = execution.replay_command(checked.run, checked.variables)
        self._problems = [
            *sdk.problems,
            *(f"listed as known to fail, but no longer occurs: {each}" for each in sdk.stale_known),
            *([banner] if is_empty else []),
        ]

    def teardown(self) -> None:
        """Report once what belongs to no case, as an error of the SDK's last test."""
        problems, self._problems = self._problems, []
        if problems:
            pytest.fail(_safe("\n".join(problems)), pytrace=False)

    def describe_failure(self, item: str) -> str:
        """Why there are no results: once, and then where it stands."""
        shown = self._shown.setdefault(self.failure, item)
        return _safe(
            self.failure if shown == item else f"{self.failure.partition(chr(10))[0]}\nsee {shown}"
        )

    def describe(self, case: CaseResult, item: str) -> str:
        """Describe the checks that did not pass as `conform findings` does, after the cause."""
        checks = [check for check in case.checks if check.result in (*RED, Result.XFAIL)]
        bad = case.model_copy(update={"checks": checks})
        first = next(check for check in checks if check.result is bad.result)
        cause = first.causes[0].cause if first.causes else " ".join(first.got)
        if first.result is Result.XPASS:
            cause = f"[XPASS(strict)] {cause}: {first.known}"
        if first.result is Result.UNTESTABLE:
            # The log of a daemon that does not start, once and not for each check of all cases.
            bad = case.model_copy(update={"checks": [first]})
            shown = self._shown.setdefault("\n".join(first.got), item)
            if shown != item:
                return _safe(f"{cause}\nsee {shown}")
        sdk = SdkResult(sdk=self.name, profiles=[], modes=[], cases=[bad])
        console = SafeConsole()
        console.file, console.record, console.soft_wrap = io.StringIO(), True, True
        show_checks(console, sdk, bad.checks, replay=self._replay)
        return _safe(f"{cause}\n{console.export_text().rstrip()}")


class CaseItem(pytest.Item):
    """A case variant; it has run before it is set up."""

    def __init__(
        self,
        *,
        sdk: SdkCases,
        entry: CaseVariant,
        **node: Any,  # noqa: ANN401 - pytest's signature
    ) -> None:
        super().__init__(**node)
        self.sdk = sdk
        self.entry = entry

    @property
    def result(self) -> CaseResult | None:
        return self.sdk.results.get(self.entry.id)

    @property
    def was_skipped(self) -> bool:
        """Whether it was not run because another case failed, and pytest was called with -x."""
        if self.result is None:
            return not self.sdk.failure
        is_skipped = self.result.result is Result.NOT_APPLICABLE and not self.result.took_ms
        return is_skipped and skip_reason(self.entry, self.sdk.runner) is None

    def setup(self) -> None:
        """Fail, which pytest reports as an error, if the case was not measured."""
        if self.sdk.failure:
            pytest.fail(self.sdk.describe_failure(self.nodeid), pytrace=False)
        if self.result is None or self.was_skipped:
            pytest.fail("not run: the run stopped at the first failing check", pytrace=False)
        if self.result.result in (Result.ERROR, Result.UNTESTABLE):
            pytest.fail(self.sdk.describe(self.result, self.nodeid), pytrace=False)
        if self.result.result is Result.NOT_APPLICABLE:
            pytest.skip(_safe(" ".join(self.result.checks[0].got)))

    def runtest(self) -> None:
        """Pass or fail as the checks of the case did."""
        case = self.sdk.results[self.entry.id]
        known = dict.fromkeys(check.known for check in case.checks if check.result is Result.XFAIL)
        if has_result(case, FAILING) or (known and self.config.option.runxfail):
            pytest.fail(self.sdk.describe(case, self.nodeid), pytrace=False)
        if known:
            pytest.xfail(_safe("; ".join(known)))

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{self.sdk.name}: {self.entry.id}, {self.entry.case.title}"


def _options(config: pytest.Config, reference: str) -> ConformOptions:
    """The options of `memconform conform` with the flags that pytest was given."""
    flags = [f"--sdk={reference}", f"--output={config.getoption('memconform_output')}"]
    for name in ("profile", "case", "known"):
        flags += [f"--{name}={value}" for value in config.getoption(f"memconform_{name}")]
    if config.option.verbose < 0:
        flags.append("--quiet")
    with captured() as calls:
        command.main(flags, prog_name="memconform conform", standalone_mode=False)
    options: ConformOptions = calls[0][1]
    return options


def _safe(text: str) -> str:
    """Lines for a terminal or a CI server, without secrets and commands."""
    return disarm_commands(printable(Lines(text)))
