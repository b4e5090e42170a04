"""Results as CSV, a row for each question and check."""

import csv
import io
from collections.abc import Iterable

from memconform.printing.escaping import escape_lines
from memconform.redaction import redact
from memconform.reports.overview.outcomes import Outcome
from memconform.storage.writing import Masked, Sink

HEADER = ("sdk", "suite", "id", "title", "status", "detail", "message", "ms", "tags")

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which spreadsheets recognize a formula, which could run a command."""


def write_csv(target: Sink, outcomes: Iterable[Outcome]) -> None:
    """Write outcomes as CSV (RFC 4180); texts that a spreadsheet would execute begin with `'`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(HEADER)
    for outcome in outcomes:
        cells = [outcome.sdk, outcome.suite, outcome.id, outcome.title, outcome.status.value]
        cells += [outcome.detail, outcome.message]
        row = [_inert(redact(cell)) for cell in cells]
        row.append("" if outcome.ms is None else f"{outcome.ms:.3f}")
        row.append(_inert(redact(" ".join(outcome.tags))))
        writer.writerow(row)
    target.write_masked(Masked(text.getvalue().encode("utf-8", "backslashreplace")))


def _inert(text: str) -> str:
    shown = escape_lines(text)
    return f"'{shown}" if text.startswith(_FORMULA) else shown
