"""`--export [FORMAT=]FILE` of `bench`, and the formats of `memconform report` for benches."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from memconform.bench.export import EXPORT_FORMATS, ExportFormat, require_log_format, write_export
from memconform.bench.stored_rows import StoredRow, load_rows
from memconform.cli.options import split_export
from memconform.cli.output_files import text_target
from memconform.cli.report.command import ExportOptions
from memconform.errors import ExitCode, UsageError
from memconform.printing.output import echo
from memconform.printing.plurals import plural


@dataclass(frozen=True, slots=True)
class Export:
    """A file to export to, in a format."""

    form: ExportFormat
    file: str


def parsed_export(text: str) -> Export:
    """Parse `[FORMAT=]FILE`; without a format, the file's suffix decides.

    Raises:
        UsageError: if the format is unknown, or the suffix names none (`bad_export`).
    """
    form, file = split_export(text)
    if form is None:
        form = Path(file).suffix.removeprefix(".")
    if form not in EXPORT_FORMATS or not file:
        raise UsageError(
            f"--export {text}: the format is unknown",
            code="bad_export",
            hint="write --export FILE.csv, --export FILE.jsonl or --export longmemeval=FILE",
        )
    return Export(cast("ExportFormat", form), file)


def parsed_exports(texts: Sequence[str]) -> list[Export]:
    """Parse the values of all `--export`.

    Raises:
        UsageError: as `parsed_export`, and if two of them name one file (`bad_export`).
    """
    exports = [parsed_export(text) for text in texts]
    files: set[str] = set()
    for export in exports:
        file = export.file if export.file == "-" else os.path.realpath(export.file)
        if file in files:
            raise UsageError(
                f"--export names {export.file} twice",
                code="bad_export",
                hint="the second export would replace the first: give each a file of its own",
            )
        files.add(file)
    return exports


def require_exportable(exports: Sequence[str], *, rows: int, format_name: str) -> None:
    """Check before a bench that its rows can be exported.

    Raises:
        UsageError: if a format is unknown, or does not fit the rows, or two exports have one file
            (`bad_export`).
    """
    for export in parsed_exports(exports):
        if export.form == "longmemeval":
            require_log_format(rows, format_name)


def export_rows(rows: Sequence[StoredRow], exports: Sequence[str], data: Path | None) -> ExitCode:
    """Write rows to each of the files; DAEMON if a retrieval log lacks questions.

    Programs that read such a log average over the questions that it has.

    Raises:
        UsageError: if they cannot be written in a format (`bad_export`).
        ResultsError: if a file cannot be written (`results_unwritable`).
    """
    parsed = parsed_exports(exports)
    for export in parsed:
        with text_target(export.file) as target:
            write_export(rows, export.form, target, data)
        echo(f"exported {plural(len(rows), 'row')} -> {export.file}", err=True)
    if not any(export.form == "longmemeval" for export in parsed):
        return ExitCode.OK
    partial = [stored for stored in rows if stored.row.not_measured]
    for stored in partial:
        missing = f"{stored.row.not_measured} of {plural(stored.row.queries, 'query')}"
        echo(f"{stored.name}: {missing} not measured, and not in the log", err=True)
    return ExitCode.DAEMON if partial else ExitCode.OK


def export(options: ExportOptions) -> ExitCode:
    """Export rows of stored results."""
    try:
        rows = load_rows(options.results, options.output)
    except UsageError as error:
        if error.code == "result_unreadable":
            error.hint = f"queries and retrieval logs are of results of `bench`; {error.hint}"
        raise
    return export_rows(rows, options.export, options.data)
