"""Runs `memconform bench`."""

import asyncio

from memconform.bench.events import BenchFinished
from memconform.bench.records import BenchReport
from memconform.bench.schedule import execute_bench
from memconform.bench.stored_rows import load_rows
from memconform.cli.bench.options import BenchOptions
from memconform.cli.bench.plan import plan_bench
from memconform.cli.events import dispatch
from memconform.cli.export import export_rows, parsed_export
from memconform.cli.html_report import REPORT, write_html_report
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.output_files import json_target, text_target
from memconform.client.recorder import keep_bodies
from memconform.errors import ExitCode, MemconformError, gravest
from memconform.printing.commands import resume_command
from memconform.printing.errors import render_error
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.reports.bench import BenchConsole, bench_markdown, show_bench
from memconform.storage.body_files import BodyFiles


def bench(options: BenchOptions) -> ExitCode:
    """Run a bench.

    Raises:
        MemconformError: if it cannot start.
    """
    configure_logs(options.log_level)
    return run_to_end(_bench(options))


async def _bench(options: BenchOptions) -> ExitCode:
    cancel_on_signals()
    bench = await plan_bench(options, lambda line: echo(f"  {line}", err=True))
    if options.resume is not None:
        kept = plural(len(bench.resume_state.queries), "measurement", spec=",")
        echo(f"  {kept} kept from the interrupted bench", err=True)
    with BenchConsole(bench.plan, quiet=options.quiet) as console:
        events = execute_bench(bench.plan, bench.folder, bench.resume_state)
        with keep_bodies(BodyFiles(bench.folder.path).keep_from_here):
            finished = await dispatch(events, [console.handle])
    if not isinstance(finished, BenchFinished):
        raise asyncio.CancelledError
    report = finished.report
    codes = [ExitCode(report.exit_code), *(sdk.exit_code for sdk in bench.skipped)]
    if options.require_agreement:
        agreed = agreement_code(report)
        codes.append(agreed)
        if agreed is ExitCode.INCONCLUSIVE:
            echo("agreement undecided: a query was not measured on several SDKs", err=True)
    code = gravest(codes)
    show_bench(
        report,
        bench.skipped,
        dropped=bench.plan.scan.dropped if options.verbose else (),
        verbose=options.verbose,
        quiet=options.quiet,
    )
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(report)
    code = gravest([code, _export(options, finished)])
    if options.html:
        write_html_report([finished.result], finished.result.parent / REPORT, quiet=options.quiet)
    if options.markdown is not None:
        with text_target(options.markdown) as target:
            target.write_text(bench_markdown(report))
    measured = sum(row.measured for row in report.rows)
    rows = f"{measured} of {plural(len(report.rows), 'row')} measured"
    if console.has_halted:
        echo(f"to continue: {resume_command(report.command, report.run_id)}", err=True)
    echo(
        f"{report.suite}: {rows} -> {finished.result}",
        err="-" in (options.json_file, options.markdown),
    )
    return code


def _export(options: BenchOptions, finished: BenchFinished) -> ExitCode:
    """Write the files of --export; what fails does not hide how the bench ended."""
    exports = options.export
    if all(row.not_measured == row.queries for row in finished.report.rows):
        exports = tuple(each for each in exports if parsed_export(each).form != "longmemeval")
        if exports != options.export:
            echo("no retrieval log is written: no query was measured", err=True)
    try:
        if exports:
            return export_rows(load_rows([str(finished.result)], options.output), exports, None)
    except MemconformError as error:
        echo(render_error(error), err=True)
        return error.exit_code
    return ExitCode.OK


def agreement_code(report: BenchReport) -> ExitCode:
    """Return the exit code of --require-agreement; OK if every query was compared and equal."""
    if any(agreement.equal < agreement.compared for agreement in report.alike):
        return ExitCode.FAILED
    complete = report.alike and all(a.compared == report.source.queries for a in report.alike)
    return ExitCode.OK if complete else ExitCode.INCONCLUSIVE
