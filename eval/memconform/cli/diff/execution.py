"""What `memconform diff` does with two results."""

from collections.abc import Sequence

from memconform.cli.diff.command import DiffOptions, latency_codes
from memconform.cli.lazy import carry_out
from memconform.cli.output_files import write_report
from memconform.cli.result_kinds import BenchDiffOptions, are_benches
from memconform.errors import ExitCode, gravest
from memconform.printing.output import echo
from memconform.reports.difference import diff_banner, diff_markdown, show_difference
from memconform.reports.progress import StepProgress
from memconform.results.loaded_runs import method_lines
from memconform.results.references import load_pair
from memconform.results.run_diff import DiffReport, diff_runs


def run(options: DiffOptions) -> ExitCode:
    """Compare two results and report; those of `bench` row by row.

    Raises:
        UsageError: if a result cannot be read, or the two cannot be compared.
    """
    limits = options.limits()
    pair = (options.first, options.second)
    if are_benches(pair, options.output, bench_only=(options.metric, options.view)):
        rows = (*pair, options.output, options.metric, options.view)
        targets = (options.json_file, options.markdown)
        bench = BenchDiffOptions(*rows, limits, options.seed, *targets, options.quiet)
        return carry_out("diff.benches:diff", bench)
    one, other = load_pair(*pair, options.output)
    for line in () if options.quiet else method_lines((one, other)):
        echo(f"  {line}", err=True)
    with StepProgress("comparing", other.summary.total, quiet=options.quiet) as step:
        report = diff_runs(one, other, seed=options.seed, on_row=step.advance)
    code = gravest(limit_codes(report, limits))
    report = report.model_copy(update={"exit_code": code})
    if not options.quiet:
        show_difference(report)
    targets = (options.json_file, options.markdown)
    write_report(report, lambda: diff_markdown(report), *targets)
    echo(diff_banner(report), err="-" in targets)
    return code


def limit_codes(report: DiffReport, limits: Sequence[float | None]) -> list[ExitCode]:
    """How `--fail-on` ends: a ratio of latency each, or None for regressions."""
    if report.incidents:
        return [ExitCode.DAEMON]
    if report.contrast.compared == 0:
        return [ExitCode.NOTHING_SELECTED]
    codes: list[ExitCode] = []
    for limit in limits:
        if limit is None:
            # A question that was not measured may hide a regression.
            codes += [ExitCode.FAILED] * bool(report.regressions)
            codes += [ExitCode.INCONCLUSIVE] * bool(report.not_measured)
        else:
            codes += latency_codes(
                report.latency.get("done"),
                limit,
                compared=report.contrast.compared,
                is_whole=not report.not_measured,
            )
    return codes
