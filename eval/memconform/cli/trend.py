"""`memconform trend`."""

from pathlib import Path

import click

from memconform.cli.grouping import Command, option
from memconform.errors import ExitCode, NothingSelectedError, UsageError
from memconform.parity.loaded_runs import load_runs
from memconform.printing.output import echo
from memconform.reports.difference import show_trend
from memconform.runs.reading import is_result
from memconform.runs.results import RunSummary

_RUNS = "Which runs"


@click.command(
    "trend",
    cls=Command,
    examples=("memconform trend", "memconform trend results --sdk go --dataset lme"),
    exit_codes={ExitCode.NOTHING_SELECTED: "no result found"},
)
@click.argument(
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default="results",
)
@option(
    "--sdk",
    group=_RUNS,
    multiple=True,
    metavar="NAME",
    help="Show only runs of this SDK. May be given several times.",
)
@option(
    "--dataset",
    group=_RUNS,
    multiple=True,
    metavar="SET",
    help="Show only runs on this dataset. May be given several times.",
)
def command(folder: Path, sdk: tuple[str, ...], dataset: tuple[str, ...]) -> ExitCode:
    """Show how results changed over dates and versions.

    FOLDER holds results, at any depth. By default it is `results`.
    """
    summaries: dict[str, RunSummary] = {}
    # Read result.json before its copies, so that the copies count as duplicates.
    for path in sorted(folder.rglob("*.json"), key=lambda p: (p.name != "result.json", p)):
        try:
            if not is_result(path):
                continue
            [run] = load_runs([str(path)], folder)
            # Reading all questions validates the file.
            for _ in run.questions():
                pass
        except (UsageError, OSError) as error:
            _report_skipped(
                path, error.message if isinstance(error, UsageError) else error.strerror
            )
            continue
        if summaries.setdefault(run.summary.run_id, run.summary) != run.summary:
            _report_skipped(path, f"another file contradicts it about run {run.summary.run_id}")
    selected = [
        summary
        for summary in summaries.values()
        if (not sdk or summary.sdk in sdk) and (not dataset or summary.dataset in dataset)
    ]
    if not selected:
        raise NothingSelectedError(
            f"no matching result of a run in {folder}",
            code="nothing_selected",
            hint="give the folder of `run --output`, or check --sdk and --dataset",
        )
    show_trend(sorted(selected, key=lambda r: (r.dataset, r.scenario, r.mode, r.sdk, r.started_at)))
    return ExitCode.OK


def _report_skipped(path: Path, reason: str | None) -> None:
    echo(f"{path} is skipped: {reason}", err=True)
