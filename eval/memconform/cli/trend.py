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
    known: dict[str, RunSummary] = {}
    # A run's record before the day's copy of it.
    for path in sorted(folder.rglob("*.json"), key=lambda p: (p.name != "result.json", p)):
        try:
            if not is_result(path):
                continue
            [side] = load_runs([str(path)], folder)
            for _ in side.questions():
                pass
        except (UsageError, OSError) as error:
            _leave_out(path, error.message if isinstance(error, UsageError) else error.strerror)
            continue
        if known.setdefault(side.summary.run_id, side.summary) != side.summary:
            _leave_out(path, f"another file tells otherwise of its run, {side.summary.run_id}")
    runs = [
        run
        for run in known.values()
        if (not sdk or run.sdk in sdk) and (not dataset or run.dataset in dataset)
    ]
    if not runs:
        raise NothingSelectedError(
            f"{folder} holds no result of a run",
            code="nothing_selected",
            hint="give the folder of `run --output`; or mend --sdk, --dataset",
        )
    show_trend(sorted(runs, key=lambda r: (r.dataset, r.scenario, r.mode, r.sdk, r.started_at)))
    return ExitCode.OK


def _leave_out(path: Path, why: str | None) -> None:
    echo(f"{path} is skipped: {why}", err=True)
