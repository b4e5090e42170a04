"""What `memconform diff` does with more than two results, or with a folder of them."""

from pathlib import Path
from typing import TypeVar

from memconform.bench.records import BenchReport
from memconform.bench.stored_rows import is_bench_report, read_report
from memconform.cli.diff import TrendOptions
from memconform.errors import ExitCode, NothingSelectedError, UsageError
from memconform.printing.output import echo
from memconform.reports.bench_comparison import show_bench_trend
from memconform.reports.difference import show_trend
from memconform.reports.progress import StepProgress
from memconform.results.references import is_scored, read_subjects
from memconform.runs.results import RunSummary
from memconform.storage.folders import find_result

_Result = TypeVar("_Result")


def run(options: TrendOptions) -> ExitCode:
    """Show results in the order of their start, by dataset, scenario, mode and SDK.

    Raises:
        NothingSelectedError: if there is none (`nothing_selected`).
        UsageError: if a RESULT does not exist (`unknown_run`).
    """
    sdk, dataset = options.sdk, options.dataset
    summaries: dict[str, RunSummary] = {}
    benches: dict[str, BenchReport] = {}
    # Read result.json before its copies, so that the copies count as duplicates.
    paths = sorted(_files(options), key=lambda p: (p.name != "result.json", p))
    with StepProgress("reading results", len(paths)) as step:
        for path in paths:
            step.advance()
            try:
                if is_bench_report(path):
                    report = read_report(path)
                    _add(benches, report.run_id, report, path)
                for summary in _summaries(path):
                    _add(summaries, summary.run_id, summary, path)
            except (UsageError, OSError) as error:
                _report_skipped(
                    path, error.message if isinstance(error, UsageError) else error.strerror
                )
    runs = [
        summary
        for summary in summaries.values()
        if (not sdk or summary.sdk in sdk) and (not dataset or summary.dataset in dataset)
    ]
    selected = [
        report.model_copy(update={"rows": rows})
        for report in benches.values()
        if (not dataset or not {report.suite, report.source.format}.isdisjoint(dataset))
        and (rows := [row for row in report.rows if not sdk or row.system in sdk])
    ]
    if not runs and not selected:
        raise NothingSelectedError(
            f"no matching result in {', '.join(options.results)}",
            code="nothing_selected",
            hint="give the folder of --output, or check --sdk and --data",
        )
    if runs:
        show_trend(sorted(runs, key=lambda r: (r.dataset, r.scenario, r.mode, r.sdk, r.started_at)))
    if selected:
        show_bench_trend(selected)
    return ExitCode.OK


def _files(options: TrendOptions) -> set[Path]:
    """Result files, and those of folders at any depth."""
    files: set[Path] = set()
    for reference in options.results:
        path = Path(reference)
        files |= (
            set(path.rglob("*.json")) if path.is_dir() else {find_result(options.output, reference)}
        )
    return files


def _summaries(path: Path) -> list[RunSummary]:
    """The subjects of a result; none of a file of another kind, or of a report without answers."""
    if not is_scored(path):
        return []
    runs = read_subjects(path).values()
    for run in runs:
        # Reading all questions validates the file.
        for _ in run.questions():
            pass
    return [run.summary for run in runs]


def _add(results: dict[str, _Result], run_id: str, result: _Result, path: Path) -> None:
    if results.setdefault(run_id, result) != result:
        _report_skipped(path, f"another file contradicts it about run {run_id}")


def _report_skipped(path: Path, reason: str | None) -> None:
    echo(f"{path} is skipped: {reason}", err=True)
