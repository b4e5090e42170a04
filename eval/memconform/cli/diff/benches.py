"""`parity` and `diff` on results of `bench`."""

from collections.abc import Sequence

from memconform.bench.comparison import compare_rows, diff_rows, measure_of, paired_rows
from memconform.bench.comparison_records import BenchDiffReport, BenchParityReport
from memconform.bench.stored_rows import load_rows, load_sides
from memconform.cli.output_files import write_report
from memconform.cli.result_kinds import BenchDiffOptions, BenchParityOptions
from memconform.errors import ExitCode, gravest
from memconform.printing.output import echo
from memconform.reports.bench_comparison import (
    bench_diff_banner,
    bench_diff_markdown,
    bench_parity_banner,
    bench_parity_markdown,
    show_bench_difference,
    show_bench_parity,
)
from memconform.stats.paired_comparison import ParityVerdict


def parity(options: BenchParityOptions) -> ExitCode:
    """Compare every pair of rows.

    Raises:
        UsageError: if a result cannot be read, or rows cannot be compared.
    """
    rows = load_rows(options.references, options.output)
    measure = measure_of(rows, options.metric, options.view)
    report = compare_rows(rows, measure, margin=options.margin, alpha=options.alpha)
    codes = [ExitCode(report.exit_code)]
    if options.strict and _is_undecided(report):
        codes.append(ExitCode.INCONCLUSIVE)
    report = report.model_copy(update={"exit_code": gravest(codes)})
    if not options.quiet:
        show_bench_parity(report)
    targets = (options.json_file, options.markdown)
    write_report(report, lambda: bench_parity_markdown(report), *targets)
    echo(bench_parity_banner(report), err="-" in targets)
    return ExitCode(report.exit_code)


def _is_undecided(report: BenchParityReport) -> bool:
    return any(row.not_measured for row in report.rows) or any(
        pair.contrast.verdict is ParityVerdict.INCONCLUSIVE for pair in report.pairs
    )


def diff(options: BenchDiffOptions) -> ExitCode:
    """Report the queries that only one of two rows passes.

    Raises:
        UsageError: if a result cannot be read, or rows cannot be compared.
    """
    sides = load_sides((options.first, options.second), options.output)
    pairs = paired_rows(*sides)
    compared = [stored for pair in pairs for stored in pair]
    keys = {stored.key for stored in compared}
    unpaired = [stored for side in sides for stored in side if stored.key not in keys]
    measure = measure_of(compared, options.metric, options.view)
    report = diff_rows(pairs, measure, unpaired=unpaired, seed=options.seed)
    code = gravest([ExitCode(report.exit_code), *_limit_codes(report, options.limits)])
    report = report.model_copy(update={"exit_code": code})
    if not options.quiet:
        show_bench_difference(report)
    targets = (options.json_file, options.markdown)
    write_report(report, lambda: bench_diff_markdown(report), *targets)
    echo(bench_diff_banner(report), err="-" in targets)
    return code


def _limit_codes(report: BenchDiffReport, limits: Sequence[float | None]) -> list[ExitCode]:
    # A row that only one result has may be the one that got worse.
    codes = [ExitCode.INCONCLUSIVE] * bool(limits and report.unpaired)
    for limit in limits:
        for pair in report.pairs:
            # A query that was not measured may hide a regression, or be the one that took too long.
            undecided = bool(pair.not_measured or pair.not_measured_first)
            undecided = undecided or bool(pair.not_measured_second)
            if limit is None:
                failed = bool(pair.regressions)
            else:
                failed = pair.latency is not None and pair.latency.ratio.low > limit
                undecided = undecided or pair.latency is None
            codes += [ExitCode.FAILED] * failed + [ExitCode.INCONCLUSIVE] * undecided
    return codes
