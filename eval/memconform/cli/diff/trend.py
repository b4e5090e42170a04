"""What `memconform diff` does with more than two results, or with a folder of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from memconform.bench.records import BenchReport, Row
from memconform.bench.stored_rows import is_bench_report, load_rows, read_report, row_label
from memconform.cli.diff.command import TrendOptions
from memconform.cli.output_files import write_report
from memconform.errors import ExitCode, NothingSelectedError, UsageError
from memconform.printing.output import echo
from memconform.reports.bench_comparison import (
    bench_trend_markdown,
    in_trend_order,
    show_bench_trend,
)
from memconform.reports.difference import show_trend, trend_markdown
from memconform.reports.progress import StepProgress
from memconform.results.loaded_runs import LoadedRun
from memconform.results.references import is_scored, load_results, read_subjects
from memconform.results.trend import TrendReport
from memconform.runs.results import RunSummary
from memconform.storage.folders import (
    ROW_MARK,
    find_result,
    result_files,
    results_below,
    split_reference,
)

_Result = TypeVar("_Result")
_Summaries = dict[str, RunSummary]
_Benches = dict[str, BenchReport]
"""A report of one row each, by the row's address."""


def run(options: TrendOptions) -> ExitCode:
    """Show results in the order of their start, by dataset, scenario, mode and SDK.

    Raises:
        NothingSelectedError: if there is none (`nothing_selected`).
        UsageError: if a RESULT other than a folder does not exist (`unknown_run`), or has no scored
            answers and no bench (`result_unreadable`).
    """
    sdk, dataset = options.sdk, options.dataset
    summaries: _Summaries = {}
    benches: _Benches = {}
    folders = [Path(each) for each in options.results if Path(each).is_dir()]
    _read_folders(folders, summaries, benches)
    for reference in options.results:
        if not Path(reference).is_dir():
            _read_named(reference, options.output, summaries, benches)
    runs = [
        summary
        for summary in summaries.values()
        if (not sdk or summary.sdk in sdk) and (not dataset or summary.dataset in dataset)
    ]
    selected = [
        report
        for report in benches.values()
        if (not dataset or not {report.suite, report.source.format}.isdisjoint(dataset))
        and (not sdk or report.rows[0].system in sdk)
    ]
    if not runs and not selected:
        raise NothingSelectedError(
            f"no matching result in {', '.join(options.results)}",
            code="nothing_selected",
            hint="give the folder of --output, or check --sdk and --data",
        )
    runs.sort(key=lambda r: (r.dataset, r.scenario, r.mode, r.sdk, r.scorer, r.started_at))
    selected = in_trend_order(selected)
    targets = (options.json_file, options.markdown)
    if runs:
        show_trend(runs, stderr="-" in targets)
    if selected:
        show_bench_trend(selected, stderr="-" in targets)
    report = TrendReport(runs=runs, benches=selected)
    write_report(report, lambda: trend_markdown(runs) + bench_trend_markdown(selected), *targets)
    return ExitCode.OK


def _read_folders(folders: list[Path], summaries: _Summaries, benches: _Benches) -> None:
    """Read the results in folders at any depth; other files are skipped."""
    paths = list(dict.fromkeys(file for folder in folders for file in results_below(folder)))
    with StepProgress("reading results", len(paths)) as step:
        for path in paths:
            step.advance()
            if not path.is_file():
                _report_skipped(path, "it is not a file")
                continue
            try:
                if is_bench_report(path):
                    report = read_report(path)
                    _add_rows(benches, report, report.rows, path)
                elif is_scored(path):
                    _add_runs(summaries, read_subjects(path), path)
            except (UsageError, OSError) as error:
                _report_skipped(
                    path, error.message if isinstance(error, UsageError) else error.strerror
                )


def _read_named(reference: str, output: Path, summaries: _Summaries, benches: _Benches) -> None:
    """Read the result that `RESULT[#SUBJECT]` names; one that cannot be read is an error."""
    name, pattern = split_reference(reference)
    path = Path(name) if result_files(Path(name)) else find_result(output, name)
    if not path.is_file() or not is_bench_report(path):
        runs = load_results([reference], output)
        _add_runs(summaries, {run.name: run for run in runs}, path)
    elif not pattern:
        report = read_report(path)
        _add_rows(benches, report, report.rows, path)
    else:
        stored = load_rows([reference], output)
        _add_rows(benches, stored[0].report, [each.row for each in stored], path)


def _add_runs(summaries: _Summaries, runs: Mapping[str, LoadedRun], path: Path) -> None:
    for run in runs.values():
        # Reading all questions validates the file.
        for _ in run.questions():
            pass
    for run in runs.values():
        _add(summaries, run.summary.run_id, run.summary, path)


def _add_rows(benches: _Benches, report: BenchReport, rows: Sequence[Row], path: Path) -> None:
    """Add a report of each row, so that one that is named twice is shown once."""
    for row in rows:
        address = f"{report.run_id}{ROW_MARK}{row_label(row)}"
        _add(benches, address, report.model_copy(update={"rows": [row]}), path)


def _add(results: dict[str, _Result], run_id: str, result: _Result, path: Path) -> None:
    if results.setdefault(run_id, result) != result:
        _report_skipped(path, f"another file contradicts it about run {run_id}")


def _report_skipped(path: Path, reason: str | None) -> None:
    echo(f"{path} is skipped: {reason}", err=True)
