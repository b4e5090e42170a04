"""`memconform report html`, `junit`, `ctrf`, `csv`, `markdown`, `annotations`, `badge`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from memconform.cli.commands import OUTPUT, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import schema
from memconform.cli.report_options import ReportOptions, stored_results
from memconform.errors import ExitCode

_RESULTS = """
RESULT is a result of run, bench, answer, judge, lme, wmb score, conform, mutate, fuzz or parity: a
file, a run's folder or id, or a folder of results. #SUBJECT behind one of answer, judge or lme
selects an arm, a rubric or an SDK."""

_EXIT_CODES = {
    ExitCode.OK: "written, whatever the verdict",
    ExitCode.USAGE: "usage, or a result that cannot be read and is left out",
}


def _command(
    name: str,
    summary: str,
    example: str,
    *decorators: Callable[[Any], Any],
    extra: str | None = None,
) -> click.Command:
    def write(
        *,
        results: tuple[str, ...],
        baseline: tuple[str, ...],
        output: Path,
        file: str,
        label: str = "memconform",
    ) -> ExitCode:
        options = ReportOptions(results, baseline, output, file, label)
        return carry_out(f"execute_report:{name}", options, extra=extra)

    write.__doc__ = f"{summary}\n{_RESULTS}"
    decorated: Any = write
    for decorator in reversed((stored_results, *decorators)):
        decorated = decorator(decorated)
    return click.command(
        name,
        cls=Command,
        examples=(f"memconform report {name} {example}",),
        exit_codes=_EXIT_CODES,
    )(decorated)


FORMATS = (
    _command(
        "html",
        "Write results as one HTML file that needs nothing else.",
        "results/2026-11-25 --baseline old -o report.html",
        extra="report",
    ),
    _command("junit", "Write results as JUnit XML.", "results/2026-11-25 -o junit.xml"),
    _command(
        "ctrf",
        "Write results in the Common Test Report Format.",
        "results/2026-11-25 -o ctrf.json",
        schema("reports.exports.ctrf:CtrfReport"),
    ),
    _command("csv", "Write results as CSV, a row for each question or check.", "RUN -o all.csv"),
    _command(
        "markdown",
        "Write a summary as Markdown, for a CI job or a pull request.",
        'results/2026-11-25 -o "$GITHUB_STEP_SUMMARY"',
    ),
    _command(
        "annotations",
        "Write the verdict and the first failures as GitHub annotations.",
        "results/2026-11-25 -o -",
    ),
    _command(
        "badge",
        "Write the verdict as the JSON of a shields.io endpoint badge.",
        "results/2026-11-25 -o badge.json",
        option(
            "--label",
            group=OUTPUT,
            default="memconform",
            metavar="TEXT",
            help="The left half of the badge.",
        ),
        schema("reports.exports.badge:Badge"),
    ),
)
