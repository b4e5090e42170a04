"""Runs `memconform run`."""

import asyncio
from contextlib import aclosing

from memconform.cli.events import dispatch
from memconform.cli.interrupts import cancel_on_signals
from memconform.cli.planning import plan_runs
from memconform.cli.run_options import RunOptions
from memconform.cli.targets import json_target
from memconform.daemons.runner import SdkRunner
from memconform.errors import ExitCode, gravest, missing_extra
from memconform.parity import comparison
from memconform.parity.agreement import Agreement, compare_rankings
from memconform.parity.loaded_runs import LoadedRun
from memconform.parity.records import ParityReport, ParityVerdict
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.reports.console import ConsoleReport
from memconform.reports.machine import agreement_banner, banner, write_run_report
from memconform.reports.matrix import show_matrix
from memconform.reports.parity import parity_banner, show_parity
from memconform.runs.engine import execute
from memconform.runs.events import RunFinished
from memconform.runs.plan import Plan
from memconform.scenarios import SCENARIOS
from memconform.stats.resampling import is_slow


def run(options: RunOptions) -> ExitCode:
    """Execute the runs of a command line.

    Raises:
        MemconformError: if no run can start.
    """
    configure_logs(options.log_level)
    return asyncio.run(_run(options))


async def _run(options: RunOptions) -> ExitCode:
    cancel_on_signals()

    def progress(line: str) -> None:
        echo(f"  {line}", err=True)

    planned = await plan_runs(options, progress)
    finished: list[RunFinished] = []
    agreement: Agreement | None = None
    parity: ParityReport | None = None
    # With `--json -`, standard output holds the report only.
    to_stderr = options.json_file == "-"
    try:
        async with aclosing(planned.ready(progress)) as runs:
            async for plan, runner in runs:
                brief = len(planned.runs) > 1
                end = await _run_one(plan, runner, quiet=options.quiet, brief=brief)
                finished.append(end)
                echo(f"{banner(end.summary)} -> {end.copy}", err=to_stderr)
                if end.summary.exit_code == ExitCode.INTERRUPTED:
                    break
        if not finished:
            raise planned.skipped[0].error
        order = [runner.name for _, runner in planned.runs]
        finished.sort(key=lambda end: order.index(end.summary.sdk))
        if len(finished) > 1:
            agreement = await asyncio.to_thread(
                compare_rankings,
                [(end.summary.sdk, end.result) for end in finished],
                answers=SCENARIOS[options.scenario].text_kind == "answer",
                incidents={end.summary.sdk: end.summary.incident for end in finished},
            )
            echo(agreement_banner(agreement), err=to_stderr)
            if is_slow(finished[0].summary.total):
                slow = missing_extra(
                    "parity", "without numpy, comparing this many questions may take minutes"
                )
                echo(slow.render(), err=True)
            loaded_runs = [LoadedRun(end.summary.sdk, end.result, end.summary) for end in finished]
            parity = await asyncio.to_thread(comparison.compare_runs, loaded_runs)
            echo(parity_banner(parity), err=to_stderr)
        if options.quiet:
            show_matrix([], planned.skipped, None)
        else:
            show_matrix([end.summary for end in finished], planned.skipped, agreement)
            if parity is not None:
                show_parity(parity, brief=True)
    finally:
        # The report holds the finished runs, even if a later run was stopped by an error.
        codes = [ExitCode(end.summary.exit_code) for end in finished]
        codes += [sdk.exit_code for sdk in planned.skipped]
        if parity is not None and parity.verdict is ParityVerdict.DRIFT:
            codes.append(ExitCode.FAILED)
        if options.require_agreement:
            codes.append(agreement.exit_code if agreement else ExitCode.INCONCLUSIVE)
        code = gravest(codes)
        if options.json_file is not None and finished:
            with json_target(options.json_file) as target:
                write_run_report(
                    target,
                    [end.result for end in finished],
                    code,
                    skipped=planned.skipped,
                    agreement=agreement,
                    parity=parity,
                )
    return code


async def _run_one(plan: Plan, runner: SdkRunner, *, quiet: bool, brief: bool) -> RunFinished:
    with ConsoleReport(quiet=quiet, brief=brief) as report:
        last = await dispatch(execute(plan, runner), [report.handle])
    if not isinstance(last, RunFinished):
        raise RuntimeError("the run ended without its last event")  # noqa: TRY004
    return last
