"""Writes stored results as HTML and in the formats of other programs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from memconform.cli.output_files import inert_target, json_target, text_target
from memconform.cli.report.command import ReportOptions
from memconform.errors import ExitCode, UsageError
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.reports.exports import badge as badge_format
from memconform.reports.exports.annotations import annotation_lines
from memconform.reports.exports.csv_rows import write_csv
from memconform.reports.exports.ctrf import ctrf_report, write_ctrf
from memconform.reports.exports.summary import summary_markdown
from memconform.reports.junit import write_outcomes
from memconform.reports.overview.headline import Statement, statements
from memconform.reports.overview.outcomes import Outcome, outcomes
from memconform.reports.overview.overview import Overview
from memconform.storage.sink import Masked, Sink

_Write = Callable[[Sink, Overview, Sequence[Statement], Sequence[Outcome]], None]
_Target = Callable[[str], AbstractContextManager[Sink]]


def _html(options: ReportOptions) -> ExitCode:
    # Not with the other formats: its charts need packages of the extra `report`.
    from memconform.reports.html.document import write_html  # noqa: PLC0415

    with _loaded(options) as overview:
        with inert_target(options.file) as target:
            write_html(target, overview)
        return _end(options, overview, statements(overview))


def _junit(options: ReportOptions) -> ExitCode:
    return _write(
        options,
        inert_target,
        lambda to, overview, _s, found: write_outcomes(to, found, overview.period()[0]),
    )


def _ctrf(options: ReportOptions) -> ExitCode:
    def write(
        target: Sink, overview: Overview, _: Sequence[Statement], found: Sequence[Outcome]
    ) -> None:
        write_ctrf(target, ctrf_report(found, *overview.period()))

    return _write(options, json_target, write)


def _csv(options: ReportOptions) -> ExitCode:
    return _write(options, text_target, lambda to, _o, _s, found: write_csv(to, found))


def _markdown(options: ReportOptions) -> ExitCode:
    def write(
        target: Sink,
        overview: Overview,
        verdicts: Sequence[Statement],
        found: Sequence[Outcome],
    ) -> None:
        text = summary_markdown(overview, verdicts, found)
        target.write_masked(Masked(text.encode("utf-8", "backslashreplace")))

    return _write(options, text_target, write)


def _annotations(options: ReportOptions) -> ExitCode:
    def write(
        target: Sink, overview: Overview, verdicts: Sequence[Statement], found: Sequence[Outcome]
    ) -> None:
        passing = {
            (run.name, group.name)
            for group in overview.groups
            for run in group.current
            if run.summary.exit_code == ExitCode.OK
        }
        regressed = {
            (sdk, group.name, question)
            for group in overview.groups
            for sdk, change in group.changes.items()
            for question in change.regressions
        }
        for line in annotation_lines(verdicts, found, passing, regressed):
            target.write_masked(Masked(f"{line}\n".encode("utf-8", "backslashreplace")))

    return _write(options, inert_target, write)


def _badge(options: ReportOptions) -> ExitCode:
    def write(
        target: Sink, _: Overview, verdicts: Sequence[Statement], _found: Sequence[Outcome]
    ) -> None:
        badge = badge_format.badge(verdicts[0], options.label)
        target.write_json(badge.model_dump(mode="json", by_alias=True))

    return _write(options, json_target, write)


def _write(options: ReportOptions, target: _Target, write: _Write) -> ExitCode:
    with _loaded(options) as overview:
        found = outcomes(overview)
        verdicts = statements(overview)
        with target(options.file) as sink:
            write(sink, overview, verdicts, found)
        return _end(options, overview, verdicts)


def _loaded(options: ReportOptions) -> Overview:
    overview = Overview.load(options.results, options.baseline, options.output)
    target = Path(options.file).resolve()
    for source in (*overview.results.sources, *overview.baselines.sources):
        if options.file != "-" and source.resolve() == target:
            overview.close()
            raise UsageError(
                f"--output-file would replace {source}, which is one of the results",
                code="bad_option",
                hint="give the report a name of its own",
            )
    for line in overview.not_shown:
        echo(Lines(f"not shown: {line}"), err=True)
    return overview


def _end(options: ReportOptions, overview: Overview, verdicts: Sequence[Statement]) -> ExitCode:
    """Print the verdict; a report that lacks a result is no success, as if that were named."""
    if options.file != "-":
        echo(verdicts[0].sentence())
        echo(f"-> {options.file}")
    return ExitCode.USAGE if overview.not_shown else ExitCode.OK


_WRITERS = {
    "html": _html,
    "junit": _junit,
    "ctrf": _ctrf,
    "csv": _csv,
    "markdown": _markdown,
    "annotations": _annotations,
    "badge": _badge,
}


def report(options: ReportOptions) -> ExitCode:
    """Write the report, and print its verdict and path.

    Raises:
        UsageError: if a result is missing, unreadable or contradicts itself.
        ResultsError: if the report cannot be written (`results_unwritable`).
    """
    return _WRITERS[options.form](options)
