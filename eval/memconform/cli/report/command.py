"""`memconform report`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.commands import OUTPUT, REFERENCE, Command, PathType, option, reject_other_flags
from memconform.cli.lazy import carry_out
from memconform.cli.options import results as results_folder
from memconform.cli.options import schema, writable
from memconform.errors import ExitCode

_FORMATS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "html": ("one page that needs nothing else", ("baseline",)),
    "junit": ("JUnit XML", ("baseline",)),
    "ctrf": ("Common Test Report Format", ("baseline",)),
    "csv": ("a row for each question, check or figure of a bench", ("baseline",)),
    "markdown": ("a summary for a CI job or a pull request", ("baseline",)),
    "annotations": ("verdict and first failures as GitHub annotations", ("baseline",)),
    "badge": (
        "the verdict, or the primary rate of a bench, as the JSON of a shields.io badge",
        ("baseline", "label"),
    ),
    "queries": (
        "every query of a bench and what became of it, as CSV, or as JSON lines in FILE.jsonl",
        (),
    ),
    "retrieval-log": ("one row of a bench, for LongMemEval's released code", ("data",)),
}
"""Each format, what it is, and which flags it has besides those of all formats."""

_FLAGS = ("results", "form", "file", "output")
"""Parameters of every format."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Which results to show, how and where."""

    form: str
    results: tuple[str, ...]
    baseline: tuple[str, ...]
    output: Path
    file: str
    label: str


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Which results to export to which files."""

    results: tuple[str, ...]
    export: tuple[str, ...]
    data: Path | None
    output: Path


@click.command(
    "report",
    cls=Command,
    examples=(
        "memconform report results/2026-11-25 --baseline old -o report.html",
        "memconform report results/2026-11-25 --format junit -o junit.xml",
        "memconform report BENCH-RUN#go/bm25 --format queries -o queries.csv",
    ),
    exit_codes={
        ExitCode.OK: "written, whatever the verdict",
        ExitCode.USAGE: "usage, or a result that cannot be read and is left out",
        ExitCode.DAEMON: "a retrieval log lacks questions that were not measured",
    },
)
@click.argument("results", type=REFERENCE, nargs=-1, required=True, metavar="RESULT...")
@option(
    "--format",
    "form",
    group=OUTPUT,
    type=click.Choice(list(_FORMATS)),
    metavar="FORMAT",
    default="html",
    is_eager=True,
    help="; ".join(f"{name}: {about}" for name, (about, _) in _FORMATS.items()) + ".",
)
@option(
    "--output-file",
    "-o",
    "file",
    group=OUTPUT,
    required=True,
    metavar="FILE",
    callback=writable,
    help="The file to write; - is standard output.",
)
@option(
    "--baseline",
    group=OUTPUT,
    multiple=True,
    type=REFERENCE,
    metavar="RESULT",
    help="Earlier results, or a folder of them: what passed there and fails now is a regression."
    " May be given several times.",
)
@option(
    "--label",
    group=OUTPUT,
    default="memconform",
    metavar="TEXT",
    help="The left half of a badge.",
)
@option(
    "--data",
    group=OUTPUT,
    type=PathType(),
    metavar="FILE",
    show_default="where it was when it was measured",
    help="For a retrieval log: the benchmark's file, with the questions and their sessions.",
)
@results_folder
@schema(
    "reports.exports.ctrf:CtrfReport",
    "reports.exports.badge:Badge",
    of="--format ctrf or badge",
    by=("form", ("ctrf", "badge")),
)
@click.pass_context
def command(  # noqa: PLR0917 - one parameter a flag
    context: click.Context,
    results: tuple[str, ...],
    form: str,
    file: str,
    baseline: tuple[str, ...],
    label: str,
    data: Path | None,
    output: Path,
) -> ExitCode:
    """Show stored results as one HTML file, or in the formats of other programs.

    RESULT is a result of run, bench, score, lme, load, conform, mutate, fuzz or parity: a file, a
    run's folder or id, or a folder of results. #SUBJECT behind one selects an arm, a rubric, an SDK
    or rows of a bench.
    """
    reject_other_flags(context, f"--format {form}", (*_FLAGS, *_FORMATS[form][1]))
    if form == "queries":
        kind = "jsonl" if file.endswith(".jsonl") else "csv"
        return carry_out("export:export", ExportOptions(results, (f"{kind}={file}",), data, output))
    if form == "retrieval-log":
        options = ExportOptions(results, (f"longmemeval={file}",), data, output)
        return carry_out("export:export", options)
    return carry_out(
        "report.execution:report",
        ReportOptions(form, results, baseline, output, file, label),
        extra="report" if form == "html" else None,
    )
