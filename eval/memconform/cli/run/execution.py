"""Runs `memconform run`; what not every run needs is imported where it is used."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from memconform.cli.events import dispatch
from memconform.cli.html_report import REPORT, write_html_report
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.output_files import json_target
from memconform.cli.run.command import RunOptions
from memconform.cli.run.plan import PlannedRuns, plan_runs, select_questions
from memconform.cli.scorers import open_scorer, require_answers, scorer_name
from memconform.cli.sdks import ALL, every_sdk
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.discovery import working_folder
from memconform.daemons.sdk_runner import SdkRunner
from memconform.datasets.selection import SelectedQuestions
from memconform.errors import ExitCode, UsageError, gravest
from memconform.measuring.scenarios import SCENARIOS
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.reports.console import ConsoleReport
from memconform.reports.rates import banner
from memconform.runs.events import RunFinished
from memconform.runs.plan import Plan, read_floors
from memconform.runs.schedule import execute

if TYPE_CHECKING:
    from memconform.cli.run.comparison import RunComparison

_ENDING = (ExitCode.INTERRUPTED, ExitCode.BUDGET, ExitCode.USAGE)
"""After a run that ended so, the next one would too: of a spent budget, of a wrong key."""


def run(options: RunOptions) -> ExitCode:
    """Execute the runs of a command line.

    Raises:
        MemconformError: if no run can start.
    """
    configure_logs(options.log_level)
    return run_to_end(_run(options))


async def _run(options: RunOptions) -> ExitCode:
    cancel_on_signals()

    answers = SCENARIOS[options.scenario].text_kind == "answer"
    name = scorer_name(options.scorer, options, answers=answers)
    require_answers(name, answers=answers)
    selected = select_questions(options)
    if options.dry_run:
        _show_cost(options, selected, name)
        return ExitCode.OK
    floors = read_floors(options.floor)
    async with open_scorer(name, options, floors, options.output) as scorer:
        scorer.scorer.require_scorable(selected)
        planned = await plan_runs(options, selected, scorer, _progress)
        return await _run_all(options, planned)


def _progress(line: str) -> None:
    echo(f"  {line}", err=True)


def _show_cost(options: RunOptions, selected: SelectedQuestions, scorer: str) -> None:
    """What the scorer would take; the daemons' own calls are theirs to count."""
    if scorer != "judge":
        echo(f"the {scorer} scorer calls no model; nothing was asked")
        return
    from memconform.cli.judge_session import show_forecast  # noqa: PLC0415 - for --dry-run

    every = every_sdk(options.sdk, working_folder()) if ALL in options.sdk else options.sdk
    asked = ((q, None) for q in selected for _ in range(options.repeat * len(every)))
    show_forecast(options, asked, exact=False)


async def _run_all(options: RunOptions, planned: PlannedRuns) -> ExitCode:
    finished: list[RunFinished] = []
    comparison: RunComparison | None = None
    # With `--json -`, standard output holds the report only.
    to_stderr = options.json_file == "-"
    try:
        order = [runner.name for _, runner in planned.runs]
        report = ConsoleReport(order, quiet=options.quiet)
        with report:
            await _run_each(planned, report, finished, to_stderr=to_stderr)
        if not finished:
            raise planned.skipped[0].error
        finished.sort(key=lambda end: order.index(end.summary.sdk))
        if len(finished) > 1 or planned.skipped:
            comparison = _comparison(options, finished)
            await comparison.compare()
            comparison.show(planned.skipped)
    finally:
        # The report holds the finished runs, even if a later run was stopped by an error.
        codes = [ExitCode(end.summary.exit_code) for end in finished]
        codes += [sdk.exit_code for sdk in planned.skipped]
        if comparison is not None:
            codes += comparison.exit_codes
        elif options.require_agreement:
            codes.append(ExitCode.INCONCLUSIVE)
        code = gravest(codes)
        if finished:
            _write_reports(options, finished, code, planned, comparison)
    return code


async def _run_each(
    planned: PlannedRuns, report: ConsoleReport, finished: list[RunFinished], *, to_stderr: bool
) -> None:
    """Execute the planned runs in turn; each that ends is added to `finished`.

    Raises:
        UsageError: if the only run cannot be executed; one of several is skipped.
    """
    async with aclosing(planned.ready(_progress, report.tell)) as runs:
        async for plan, runner in runs:
            try:
                end = await _run_one(plan, runner, report)
            except UsageError as error:
                if len(planned.runs) == 1:
                    raise
                planned.skipped.append(SkippedSdk(runner.name, error, is_named=True))
                continue
            finished.append(end)
            echo(f"{banner(end.summary)} -> {end.copy}", err=to_stderr)
            if end.summary.exit_code in _ENDING:
                break


def _comparison(options: RunOptions, finished: Sequence[RunFinished]) -> "RunComparison":
    from memconform.cli.run.comparison import RunComparison  # noqa: PLC0415 - of several runs

    return RunComparison(
        finished,
        required=options.require_agreement,
        to_stderr=options.json_file == "-",
        quiet=options.quiet,
    )


def _write_reports(
    options: RunOptions,
    finished: Sequence[RunFinished],
    code: ExitCode,
    planned: PlannedRuns,
    comparison: "RunComparison | None",
) -> None:
    results = [end.result for end in finished]
    if options.json_file is not None:
        from memconform.reports.machine import write_run_report  # noqa: PLC0415 - for --json

        with json_target(options.json_file) as target:
            write_run_report(
                target,
                results,
                code,
                skipped=planned.skipped,
                agreement=None if comparison is None else comparison.agreement,
                parity=None if comparison is None else comparison.parity,
            )
    if options.html:
        write_html_report(results, finished[0].copy.parent / REPORT, quiet=options.quiet)


async def _run_one(plan: Plan, runner: SdkRunner, report: ConsoleReport) -> RunFinished:
    last = await dispatch(execute(plan, runner), [report.handle])
    if not isinstance(last, RunFinished):
        raise RuntimeError("the run ended without its last event")  # noqa: TRY004
    return last
