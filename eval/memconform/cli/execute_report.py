"""Runs `memconform report html`."""

from memconform.cli.report_options import ReportOptions
from memconform.cli.targets import text_target
from memconform.errors import ExitCode
from memconform.printing.output import echo
from memconform.reports.html.document import write_html
from memconform.reports.overview.headline import statements
from memconform.reports.overview.overview import Overview


def html(options: ReportOptions) -> ExitCode:
    """Write the report, and print its verdict and path.

    Raises:
        UsageError: if a result is missing, unreadable or contradicts itself.
        ResultsError: if the report cannot be written (`results_unwritable`).
    """
    with Overview.load(options.results, options.baseline, options.output) as overview:
        with text_target(options.file) as target:
            write_html(target, overview)
        to_stderr = options.file == "-"
        found = statements(overview)
        if found:
            echo(f"{found[0].text}", err=to_stderr)
        echo(f"-> {options.file}", err=to_stderr)
    return ExitCode.OK
