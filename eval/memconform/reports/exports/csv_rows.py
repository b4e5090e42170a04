"""Results as CSV, a row for each question and check."""

from collections.abc import Iterable

from memconform.printing.escaping import Lines, printable
from memconform.printing.spreadsheets import csv_line
from memconform.reports.overview.outcomes import Outcome
from memconform.storage.sink import Masked, Sink

HEADER = ("sdk", "suite", "id", "title", "status", "detail", "message", "ms", "tags")


def write_csv(target: Sink, outcomes: Iterable[Outcome]) -> None:
    """Write outcomes as CSV (RFC 4180); texts that a spreadsheet would execute begin with `'`."""
    lines = [csv_line(HEADER, "\r\n")]
    for outcome in outcomes:
        texts = [outcome.sdk, outcome.suite, outcome.id, outcome.title, outcome.status.value]
        texts += [outcome.detail, outcome.message]
        ms = "" if outcome.ms is None else f"{outcome.ms:.3f}"
        cells = (*map(_shown, texts), ms, _shown(" ".join(outcome.tags)))
        lines.append(csv_line(cells, "\r\n"))
    target.write_masked(Masked("".join(lines).encode("utf-8", "backslashreplace")))


def _shown(text: str) -> str:
    return printable(Lines(text))
