"""`--html` of the commands that measure: the report of their own results."""

from collections.abc import Sequence
from pathlib import Path

from memconform.errors import MemconformError
from memconform.printing.console import show_link
from memconform.printing.errors import render_error
from memconform.printing.output import echo
from memconform.storage.sink import replacing

REPORT = "report.html"


def write_html_report(results: Sequence[Path], target: Path, *, quiet: bool = False) -> None:
    """Write the report of some results, and print its path, on a terminal as a link.

    A report that cannot be written is reported, and does not change how the command ends: its
    result is complete.
    """
    # Not with the verbs: its charts need packages of the extra `report`, and an overview imports
    # the records of every verb, a third of what `run` imported.
    from memconform.reports.html.document import write_html  # noqa: PLC0415
    from memconform.reports.overview.overview import Overview  # noqa: PLC0415 - same

    try:
        with (
            Overview.load(list(map(str, results)), [], target.parent, quiet=quiet) as overview,
            replacing(target.resolve()) as sink,
        ):
            write_html(sink, overview)
    except MemconformError as error:
        echo(render_error(error), err=True)
        return
    except Exception as error:  # noqa: BLE001 - the result is complete, and its exit code stands
        echo(f"{target} was not written: {type(error).__name__}: {error}", err=True)
        return
    show_link("report", target)
